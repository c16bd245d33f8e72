"""
A backend that starts a server, gets to know it, and restarts the server with growing delays until it is stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum, auto
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.backend import BackendFailed, BackendOwner, Introduction, OnProgress, RpcError
from ironcurtain.mcp_proxy.channel import MakeChannel
from ironcurtain.mcp_proxy.envelope import DISCOVER, IDENTITY, UNSUPPORTED_PROTOCOL_VERSION
from ironcurtain.mcp_proxy.link import Link
from ironcurtain.mcp_proxy.modern_link import CONFIRMED, ModernLink, error_code, unknown_version
from ironcurtain.mcp_proxy.server_fields import START_SECONDS
from ironcurtain.mcp_proxy.session import INITIALIZE, NEWEST_VERSION, VERSIONS

FIRST_DELAY = 0.5
"""Seconds before the first restart of a server; doubled after each failure."""

LONGEST_DELAY = 60.0
"""Maximum delay in seconds."""

STEADY_SECONDS = 30.0
"""A server that ran for so many seconds restarts with the first delay."""

DISCOVER_SECONDS = 10.0
"""Time limit in seconds for the answer to ``server/discover``, as in the official SDK."""

NO_HANDSHAKE = (UNSUPPORTED_PROTOCOL_VERSION, codec.METHOD_NOT_FOUND)
"""Errors by which a server refuses ``initialize`` that has no handshake."""

LogLine = Callable[[str, str], None]
"""Called with a server's name and a line of its standard error."""


class _State(Enum):
    RUNNING = auto()
    """The server runs, or waits for its restart."""
    ENDING = auto()
    """A run is being ended, which must not be cancelled."""
    STOPPED = auto()
    """The backend is stopped."""


class RestartingBackend:
    """
    :param prepare: returns how to reach the next run of the server; called before each run.
    :param log_line: called with each line about the server, such as its standard error.
    :param start_seconds: time limit in seconds from a server's start until it is ready.
    :param call_seconds: as for :class:`~ironcurtain.mcp_proxy.servers_config.CommandServer`.
    """

    log = Logger()

    def __init__(
        self,
        name: str,
        clock: IReactorTime,
        prepare: Callable[[], Awaitable[MakeChannel]],
        log_line: LogLine,
        start_seconds: float = START_SECONDS,
        call_seconds: float | None = None,
    ) -> None:
        self.name, self._start_seconds = name, start_seconds
        self.introduction: Introduction | None = None
        self._clock, self._prepare, self._log_line, self._call_seconds = clock, prepare, log_line, call_seconds
        self._owner: BackendOwner | None = None
        self._link: Link | None = None
        self._starting: Link | None = None
        """The run that is not ready yet."""
        self._modern: ModernLink | None = None
        """For requests to a server without a handshake."""
        self._ended: Deferred[str] = Deferred()
        self._running: Deferred[None] | None = None
        self._state, self._paused = _State.RUNNING, False

    @property
    def oddity(self) -> str:
        """See :class:`~ironcurtain.mcp_proxy.backend.Backend`."""
        return self._starting.oddity if self._starting is not None else ""

    async def start(self, owner: BackendOwner) -> None:
        """Start the server in the background, and restart it whenever it goes down."""
        self._owner = owner
        self._running = Deferred.fromCoroutine(self._run(owner))

    async def stop(self) -> None:
        """Stop the server for good, with all its processes."""
        ending, self._state = self._state is _State.ENDING, _State.STOPPED
        running, self._running = self._running, None
        if running is not None:
            running.addErrback(lambda failure: failure.trap(CancelledError) and None)
            if not ending:  # if a run is being ended, let it end; no other run begins
                running.cancel()
            await running

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: OnProgress | None = None
    ) -> Deferred[bytes]:
        """
        Send a request to the server.

        :returns: fires with the raw JSON result. Cancelling it sends the server a cancellation.
        :raises BackendFailed: there is no answer.
        :raises RpcError: the answer is an error.
        """
        if self._link is None:
            raise BackendFailed(f"MCP server {self.name} is down; it is being restarted")
        if self._modern is not None:
            return Deferred.fromCoroutine(self._modern.request(method, params, on_progress))
        return self._link.request(method, params, on_progress)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send the server a notification; ignored while it is down."""
        if self._link is not None:
            self._link.notify(method, params)

    def pause(self) -> None:
        """Stop reading from the server for now."""
        self._paused = True
        if self._link is not None:
            self._link.pause()

    def resume(self) -> None:
        """Resume reading from the server."""
        self._paused = False
        if self._link is not None:
            self._link.resume()

    def notified(self, method: str, params: bytes | None) -> None:
        """For the link: the server sent a notification."""
        if self._owner is not None and self.introduction is not None and method != CONFIRMED:
            self._owner.notified(self, method, params)

    async def asked(self, method: str, params: bytes | None) -> bytes:
        """For the link: the server sent a request."""
        if self._owner is None:
            raise BackendFailed(f"MCP server {self.name} is being stopped")
        return await self._owner.asked(self, method, params)

    def error_line(self, line: str) -> None:
        """For the link: there is a line for the log."""
        self._log_line(self.name, line)

    def ended(self, why: str) -> None:
        """For the link: this run ended."""
        self._link, self.introduction = None, None
        self._ended.callback(why)

    async def _run(self, owner: BackendOwner) -> None:
        delay = FIRST_DELAY
        while not self._is_stopped:
            started = self._clock.seconds()
            why = await self._one_run(owner)
            if self._is_stopped:
                break
            if self._clock.seconds() - started >= STEADY_SECONDS:
                delay = FIRST_DELAY
            self._log_line(self.name, why)
            self.log.warn("MCP server {name} {why}; restart in {delay} s", name=self.name, why=why, delay=delay)
            await deferLater(self._clock, delay)
            delay = min(2 * delay, LONGEST_DELAY)

    async def _one_run(self, owner: BackendOwner) -> str:
        link: Link | None = None
        why = "did not start"
        try:
            capabilities, make_channel = await owner.capabilities(self), await self._prepare()
            self._ended = Deferred()
            self._starting = link = Link(self.name, self._clock, make_channel, self)
            await link.start()
            await Deferred.fromCoroutine(self._introduce(link, capabilities, owner)).addTimeout(
                self._start_seconds, self._clock
            )
            if not self._is_stopped:  # the last step of a handshake cannot be cancelled
                why = await self._ended
        except CancelledError:
            raise
        except Late:
            why = f"was not ready within {self._start_seconds:g} s{_instead(self.oddity)}"
        except IronCurtainError as e:
            why = f"did not start: {str(e).removeprefix(f'MCP server {self.name}').lstrip(': ')}{_instead(self.oddity)}"
        except OSError as e:
            why = f"did not start: {e.strerror}"
        except Exception:
            self.log.failure("MCP server {name} could not be started", name=self.name)
            why = "did not start: see the log"
        finally:
            self._link, self._starting, self.introduction = None, None, None
            self._state = _State.STOPPED if self._is_stopped else _State.ENDING
            owner.went_down(self, why)
            if link is not None:
                await link.stop()
            self._state = _State.STOPPED if self._is_stopped else _State.RUNNING
        return why

    @property
    def _is_stopped(self) -> bool:
        return self._state is _State.STOPPED

    async def _introduce(self, link: Link, capabilities: Mapping[str, Any], owner: BackendOwner) -> None:
        modern = ModernLink(link, capabilities, self.asked)
        found = await self._discovered(modern) if link.opening == DISCOVER else None
        met = None if found is not None else await self._handshake(link, capabilities)
        said = found or met or await modern.discover()
        link.silence = self._call_seconds  # the handshake has a limit of its own
        theirs, instructions = said.get("capabilities"), said.get("instructions")
        self._link, self._starting, self._modern = link, None, modern if met is None else None
        self.introduction = Introduction(
            theirs if isinstance(theirs, dict) else {}, instructions if isinstance(instructions, str) else "", link.pid
        )
        if self._paused:
            link.pause()
        if met is None:
            modern.listen()
        await owner.came_up(self)

    async def _discovered(self, modern: ModernLink) -> dict[str, Any] | None:
        """:returns: what the server sends about itself; ``None`` if it may have a handshake."""
        try:
            try:
                return await self._in_time(modern.discover())
            except RpcError as e:
                if error_code(e) != UNSUPPORTED_PROTOCOL_VERSION:
                    raise
                return await self._in_time(modern.discover())  # once more, as the official SDK does
        except (RpcError, BackendFailed, Late):
            return None

    def _in_time(self, discovering: Coroutine[Any, Any, dict[str, Any]]) -> Deferred[dict[str, Any]]:
        return Deferred.fromCoroutine(discovering).addTimeout(DISCOVER_SECONDS, self._clock)

    async def _handshake(self, link: Link, capabilities: Mapping[str, Any]) -> dict[str, Any] | None:
        """:returns: what the server sends about itself; ``None`` if it has no handshake."""
        hello = {"protocolVersion": NEWEST_VERSION, "capabilities": capabilities, "clientInfo": IDENTITY}
        try:
            said = codec.decode(await link.request(INITIALIZE, hello))
        except RpcError as e:
            if error_code(e) not in NO_HANDSHAKE:
                raise
            return None
        if not isinstance(said, dict) or said.get("protocolVersion") not in VERSIONS:
            raise unknown_version(self.name, said.get("protocolVersion") if isinstance(said, dict) else None)
        link.notify("notifications/initialized")
        return said


def _instead(oddity: str) -> str:
    return f"; instead of messages it sent {oddity}" if oddity else ""
