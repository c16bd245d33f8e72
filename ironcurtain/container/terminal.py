"""The terminal of a container's main program: one connection for as long as the container lives."""

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
"""More than so many bytes without a pause are no screen drawn afresh, which a person waits for."""

QUIET_SECONDS = 0.02
"""How long a pause is."""

PIECE_SIZE = 64 * 1024
"""A smaller piece is all that there was to read."""

TURN_SIZE = 256 * 1024
"""Most bytes that are taken between two rests; the kernel keeps not much more."""

REST_SECONDS = 0.004
"""
How long a rest is. All who pass output on work in larger pieces then: a megabyte from a container costs
half of the processor time, and other sessions' keys find the reactor free.
"""


MARK = "ironcurtain: the terminal is ready"
"""What :data:`wait.sh` writes once it waits; what stands before it is no output of the program."""

KEPT = 4096
"""Most bytes of what comes before the mark that are kept, to say why it did not come."""

DRAIN_SECONDS = 5.0
"""How long the last output is waited for once the program has ended (it is there at once)."""


class OutputPace:
    """Hears of the output of one program, piece by piece."""

    def __init__(self) -> None:
        self._burst = self._turn = 0
        self._last = 0.0

    def rest_after(self, size: int, now: float) -> bool:
        """
        :param size: of a piece that came.
        :returns: whether nothing should be read now for :data:`REST_SECONDS`.
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
    """:returns: the command of a container that runs a program only when :meth:`ContainerTerminal.go` lets it."""
    script = resources.files("ironcurtain.container").joinpath("data/wait.sh").read_text()
    return ("/bin/sh", "-c", script, "wait", MARK, *argv)


class TerminalOwner(Protocol):
    """Who hears from the terminal: a :class:`~ironcurtain.terminal.hub.Hub`."""

    def received(self, data: bytes) -> None:
        """The program wrote something."""

    def input_full(self, full: bool) -> None:
        """Whether the program reads nothing, so that no more should be written."""


class TerminalPhase(Enum):
    """How far a terminal has come; none is left for one above it."""

    WAITING = auto()
    """The program has not started: it gets the terminal's size when it does."""
    RUNNING = auto()
    """The program is told each new size, and waits while its output is not taken."""
    DRAINING = auto()
    """The container ends: its output is taken in any case."""


@implementer(IPushProducer)
class ContainerTerminal:
    """
    A stream for a hub. Set :attr:`owner` before it is opened.

    :ivar size: columns and rows that the program's terminal has, or gets when it starts.
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
        """What was written before the program may start, where something went wrong: its last bytes."""
        return self._early[-KEPT:].decode("utf-8", "replace")

    async def open(self, container: str) -> None:
        """
        Connect; before the container starts, so that nothing that it says is lost.

        :param container: its full id.
        """
        self._container = container
        self._stream = await self._engine.attach(container, self._received)
        self._stream.register_producer(self)
        self._stream.ended.addCallback(self._lost)

    async def go(self) -> None:
        """
        Let the program start, in a terminal of the right size.

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
        """Give output from now on in any case: the Engine does not end a container whose output waits to be read."""
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
        """What is typed."""
        if self._stream is not None and not self._stream.ended.called:
            self._stream.write(data)

    def pause(self) -> None:
        """Give no more output for now."""
        if self._phase is not TerminalPhase.DRAINING:
            self._taken = self._taken or Deferred()

    def resume(self) -> None:
        """Give output again."""
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.callback(None)

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now; the program gets SIGWINCH."""
        self.size = sane_size(columns, rows)
        if self._phase is TerminalPhase.RUNNING and not self._resizing:
            self._resizing = True
            Deferred.fromCoroutine(self._resize())

    def close(self) -> None:
        """Nobody reads it any more."""
        if self._stream is not None:
            self._stream.abort()

    def pauseProducing(self) -> None:
        """For the connection: the program does not read what is typed."""
        self.owner.input_full(True)

    def resumeProducing(self) -> None:
        """For the connection: it has read."""
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

    def _lost(self, _: None) -> None:
        if self._resting is not None:
            self._resting.cancel()
        if not self._marked.called:
            self._marked.callback(False)

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
