"""Sessions that watchers start: as a principal of their own, under the policy."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ironcurtain.errors import SessionError
from ironcurtain.operations.operations import Operations
from ironcurtain.operations.principal import Principal, Role
from ironcurtain.services.lifecycle import to_its_end
from ironcurtain.session.model import Reply, SessionRequest
from ironcurtain.watchers.decision import Batch
from ironcurtain.watchers.message import message, summary
from ironcurtain.watchers.model import Ask, Watcher
from ironcurtain.watchers.record import RUN_SECONDS


class WatcherRuns:
    """
    A :class:`~ironcurtain.watchers.watching.Run` that starts a session in this process.

    :param clock: the reactor.
    :param answered: called with each answer.
    """

    log = Logger()

    def __init__(
        self,
        operations: Operations,
        clock: IReactorTime,
        answered: Callable[[Watcher, int, Reply], None] = lambda watcher, session, reply: None,
    ) -> None:
        self._operations, self._clock, self._answered = operations, clock, answered

    async def __call__(self, watcher: Watcher, batch: Batch, begun: Callable[[int], None]) -> None:
        """
        Start a session, give it the instruction, and end it after the answer.

        :raises IronCurtainError: that fails.
        """
        who = Principal(watcher.principal, frozenset((Role.ADMIN,)))
        request = SessionRequest(
            watcher.agent, watcher.instruction, watcher.workspace, by=who.name, budget=watcher.budget
        )
        info = await self._operations.start(who, request, attended=watcher.ask is Ask.CONSOLE)
        try:
            begun(info.number)
            self.log.info(
                "watcher {name}: session {number} begins: {what}",
                name=watcher.name,
                number=info.number,
                what=summary(batch),
            )
            text = message(watcher.instruction, batch, secrets.token_hex(8))
            reply: Deferred[Reply] = self._operations.send(who, info.id, text)
            self._answered(watcher, info.number, await reply.addTimeout(RUN_SECONDS, self._clock))
        except TimeoutError:
            raise SessionError("MESSAGE_FAILED", f"it took more than {RUN_SECONDS:g} seconds") from None
        finally:
            await to_its_end(self._operations.stop(who, info.id))
