"""The terminal of a container's main program: one connection for the container's lifetime."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from importlib import resources
from typing import Protocol

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.interfaces import IDelayedCall, IPushProducer
from twisted.logger import Logger
from zope.interface import implementer

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import ContainerDied, EngineError, EngineUnavailable
from ironcurtain.container.execution import shielded
from ironcurtain.container.streams import EngineStream
from ironcurtain.terminal.model import sane_size

BURST_SIZE = 64 * 1024
"""More bytes than this without a pause are not the redraw of a screen, for which a person waits."""

QUIET_SECONDS = 0.02
"""Length of a pause in seconds."""

PIECE_SIZE = 64 * 1024
"""A smaller piece means that there was no more to read."""

TURN_SIZE = 256 * 1024
"""Maximum bytes read between two rests; the kernel buffers not much more."""

REST_SECONDS = 0.004
"""
Length of a rest in seconds. Because of rests, output is processed in larger pieces: a megabyte costs half of the
processor time, and the reactor is free for other sessions' keys.
"""


MARK = "ironcurtain: the terminal is ready"
"""The line that :data:`wait.sh` prints once it waits; output before it is not the program's."""

KEPT = 4096
"""Maximum bytes kept of the output before that line, to explain why the line is missing."""

DRAIN_SECONDS = 5.0
"""Seconds to wait for the last output after the program's end (it normally arrives at once)."""


class OutputPace:
    """Measures the output of one program."""

    def __init__(self) -> None:
        self._burst = self._turn = 0
        self._last = 0.0

    def rest_after(self, size: int, now: float) -> bool:
        """
        :param size: size of a new piece.
        :returns: whether to stop reading for :data:`REST_SECONDS`.
        """
        if now - self._last > QUIET_SECONDS:
            self._burst = self._turn = 0
        self._last = now
        self._burst += size
        self._turn += size
        if self._burst <= BURST_SIZE or (size >= PIECE_SIZE and self._turn < TURN_SIZE):
            return False
        self._turn = 0
        return True


def waiting(argv: Sequence[str]) -> tuple[str, ...]:
    """:returns: the command of a container that runs a program only after :meth:`ContainerTerminal.go`."""
    script = resources.files("ironcurtain.container").joinpath("data/wait.sh").read_text()
    return ("/bin/sh", "-c", script, "wait", MARK, *argv)


class TerminalOwner(Protocol):
    """Receives the terminal's events: a :class:`~ironcurtain.terminal.hub.Hub`."""

    def received(self, data: bytes) -> None:
        """The program wrote output."""

    def input_full(self, full: bool) -> None:
        """The program stopped (``True``) or resumed reading its input."""


class TerminalPhase(Enum):
    """The phases of a terminal, in order; it never goes back."""

    WAITING = auto()
    """The program has not started: it gets the terminal's size when it does."""
    RUNNING = auto()
    """The program gets each new size, and waits while its output is not read."""
    DRAINING = auto()
    """The container is ending: its output is read in any case."""


@implementer(IPushProducer)
class ContainerTerminal:
    """
    A stream for a hub. Set :attr:`owner` before opening it.

    :ivar size: columns and rows of the program's terminal, now or when it starts.
    """

    log = Logger()
    owner: TerminalOwner

    def __init__(self, engine: Engine, columns: int, rows: int) -> None:
        self._engine = engine
        self._container = ""
        self._stream: EngineStream | None = None
        self._taken: Deferred[None] | None = None
        self._pace = OutputPace()
        self._resting: IDelayedCall | None = None
        self._early = bytearray()
        self._marked: Deferred[bool] = Deferred()
        self._phase, self._resizing = TerminalPhase.WAITING, False
        self._sent_size = (0, 0)
        self.size = sane_size(columns, rows)

    @property
    def said(self) -> str:
        """The last output before the program's start, for error messages."""
        return self._early[-KEPT:].decode("utf-8", "replace")

    async def open(self, container: str) -> None:
        """
        Connect, before the container starts, so that no output is lost. Can be called again for another container, if
        the program did not start in the first one.

        :param container: its full id.
        """
        marked: Deferred[bool] = Deferred()
        self._container, self._early[:], self._marked = container, b"", marked
        self._stream = await self._engine.attach(container, self._received)
        self._stream.register_producer(self)
        self._stream.ended.addCallback(self._lost, marked)

    async def go(self) -> None:
        """
        Start the program, in a terminal of the right size.

        :raises ContainerDied: the container ended before.
        """
        if not await self._marked:
            raise ContainerDied("the container ended before the agent could start")
        assert self._stream is not None
        await self._tell_size()
        if self._phase is TerminalPhase.WAITING:
            self._phase = TerminalPhase.RUNNING
        self._stream.write(b"go\n")

    def flow(self) -> None:
        """Read output in any case from now on: the Engine does not end a container with unread output."""
        self._phase = TerminalPhase.DRAINING
        self.resume()

    async def drained(self) -> None:
        """The program has ended: wait for its last output."""
        if self._stream is None:
            return
        self.flow()
        try:
            await shielded(self._stream.ended).addTimeout(DRAIN_SECONDS, self._engine.clock)
        except TimeoutError:
            self.log.info("the last output of {container} may be missing", container=self._container)
            self._stream.abort()

    def write(self, data: bytes) -> None:
        """Send input."""
        if self._stream is not None and not self._stream.ended.called:
            self._stream.write(data)

    def pause(self) -> None:
        """Stop reading output for now."""
        if self._phase is not TerminalPhase.DRAINING:
            self._taken = self._taken or Deferred()

    def resume(self) -> None:
        """Resume reading output."""
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.callback(None)

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size; the program gets SIGWINCH."""
        self.size = sane_size(columns, rows)
        if self._phase is TerminalPhase.RUNNING and not self._resizing:
            self._resizing = True
            Deferred.fromCoroutine(self._resize())

    def close(self) -> None:
        """Discard further output."""
        if self._stream is not None:
            self._stream.abort()

    def pauseProducing(self) -> None:
        """For the connection: the program does not read its input."""
        self.owner.input_full(True)

    def resumeProducing(self) -> None:
        """For the connection: the program reads its input again."""
        self.owner.input_full(False)

    def stopProducing(self) -> None:
        """For the connection: it is lost."""

    async def _resize(self) -> None:
        try:
            await self._tell_size()
        except (EngineError, EngineUnavailable) as e:
            self.log.info("a terminal was not resized: {error}", error=e)  # its container has just ended
        finally:
            self._resizing = False

    async def _tell_size(self) -> None:
        while self._sent_size != self.size:
            self._sent_size = columns, rows = self.size
            await self._engine.resize(self._container, rows, columns)

    def _lost(self, _: None, marked: Deferred[bool]) -> None:
        if self._resting is not None:
            self._resting.cancel()
        if not marked.called:
            marked.callback(False)

    def _received(self, data: bytes) -> Deferred[None] | None:
        if self._marked.called:
            self.owner.received(data)
        else:
            self._early += data
            before, mark, rest = bytes(self._early).partition(MARK.encode() + b"\r\n")
            if mark:
                self._early[:] = before
                self._marked.callback(True)
                if rest:
                    self.owner.received(rest)
        return self._taken or self._rest(len(data))

    def _rest(self, size: int) -> Deferred[None] | None:
        rests = self._pace.rest_after(size, self._engine.clock.seconds())
        if not rests or self._phase is TerminalPhase.DRAINING or self._resting is not None:
            return None
        rested: Deferred[None] = Deferred()
        self._resting = self._engine.clock.callLater(REST_SECONDS, self._rested, rested)
        return rested

    def _rested(self, rested: Deferred[None]) -> None:
        self._resting = None
        rested.callback(None)
