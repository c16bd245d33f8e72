"""Ask all processes of a home under the reactor."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.defer import TimeoutError as Late

from ironcurtain.control.client import ControlClient
from ironcurtain.control.owners import Owners
from ironcurtain.home.layout import Home

T = TypeVar("T")


class ReactorOwners(Owners[ControlClient]):
    """For what goes on with a client: it follows a session, or talks with it."""

    def __init__(self, reactor: Any, home: Home) -> None:
        super().__init__(home, lambda path, host: ControlClient(reactor, path, host=host))
        self._reactor = reactor

    async def _asked(
        self,
        clients: Sequence[ControlClient],
        ask: Callable[[ControlClient], Coroutine[Any, Any, T]],
        seconds: Sequence[float],
    ) -> list[T | BaseException]:
        asking = [
            Deferred.fromCoroutine(ask(client)).addTimeout(limit, self._reactor)
            for client, limit in zip(clients, seconds, strict=True)
        ]
        results: list[tuple[bool, Any]] = await DeferredList(asking, consumeErrors=True)
        return [_outcome(success, result) for success, result in results]


def _outcome(success: bool, result: Any) -> Any:
    if success:
        return result
    return TimeoutError() if result.check(Late) else result.value
