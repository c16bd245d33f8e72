"""Ask other processes, and block until they answered: for commands that do nothing else meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from http.client import HTTPConnection, HTTPException, IncompleteRead
from typing import Any, TypeVar

import msgspec

from ironcurtain.control import wire
from ironcurtain.control.calls import ANSWER_LIMIT, ControlCalls
from ironcurtain.control.host_numbers import seconds_ahead
from ironcurtain.control.owners import Owners
from ironcurtain.errors import Unavailable
from ironcurtain.home.layout import Home
from ironcurtain.operations.model import DECISION_SECONDS

T = TypeVar("T")


class _SocketConnection(HTTPConnection):
    def __init__(self, path: str, seconds: float | None) -> None:
        """:param seconds: for which one step may take; ``None``: any time."""
        super().__init__("ironcurtain", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect to the UNIX socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class BlockingClient(ControlCalls):
    """The operations of another process. None of its coroutines waits for an event loop: see :func:`result`."""

    async def _content(self, method: str, path: str, body: msgspec.Struct | None, limit: int | None = None) -> bytes:
        most = limit or ANSWER_LIMIT
        headers = self._headers_of(method, path)
        is_quick = method == "POST" and wire.UNTIL_HEADER in headers  # a session takes its time to end
        connection = _SocketConnection(self.path, DECISION_SECONDS if is_quick else None)
        try:
            data = None if body is None else msgspec.json.encode(body)
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            content = response.read(most + 1)
            if response.length and len(content) <= most:
                raise IncompleteRead(content, response.length)
        except (ConnectionRefusedError, FileNotFoundError):
            raise self._ended() from None
        except (OSError, HTTPException) as e:
            raise self._unavailable(str(e) or type(e).__name__) from None
        finally:
            connection.close()
        if len(content) > most:
            raise Unavailable(f"an answer is over {most} bytes")
        if self.host:
            self._ahead = seconds_ahead((response.headers["date"] or "").encode(), time.time())
        if response.status != 200:
            raise self._refusal(content)
        return content


class BlockingOwners(Owners[BlockingClient]):
    """For what is asked once. Each process is asked in a thread, so that one that is stopped hides no others."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, lambda path, host: BlockingClient(path, host=host))

    async def _asked(
        self,
        clients: Sequence[BlockingClient],
        ask: Callable[[BlockingClient], Coroutine[Any, Any, T]],
        seconds: Sequence[float],
    ) -> list[T | BaseException]:
        outcomes: list[T | BaseException] = [TimeoutError() for _ in clients]

        def asked(number: int) -> None:
            try:
                outcomes[number] = result(ask(clients[number]))
            except Exception as e:
                outcomes[number] = e

        threads = [threading.Thread(target=asked, args=(number,), daemon=True) for number in range(len(clients))]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for thread, limit in zip(threads, seconds, strict=True):
            thread.join(max(0.0, begun + limit - time.monotonic()))
        return list(outcomes)


def result(coroutine: Coroutine[Any, Any, T]) -> T:
    """:returns: the result of a coroutine that only waits by blocking its thread."""
    try:
        coroutine.send(None)
    except StopIteration as e:
        found: T = e.value
        return found
    raise RuntimeError("a coroutine of a blocking client waits for an event loop")
