"""What the tests of terminals share: a program's end and a person's end that remember."""

from __future__ import annotations

from twisted.internet.task import Clock

from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.ring import RingScreen


class Program:
    """A stream that notes what it is told."""

    def __init__(self) -> None:
        self.typed = b""
        self.sizes: list[tuple[int, int]] = []
        self.paused = self.closed = False

    def write(self, data: bytes) -> None:
        self.typed += data

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    def close(self) -> None:
        self.closed = True


class Eye:
    """A viewer that takes all, until it is told to stall."""

    def __init__(self) -> None:
        self.seen = b""
        self.stalled = self.held = False
        self.end: tuple[str, int | None] | None = None

    def draw(self, data: bytes) -> bool:
        self.seen += data
        return not self.stalled

    def hold(self, full: bool) -> None:
        self.held = full

    def ended(self, reason: str, status: int | None) -> None:
        assert self.end is None
        self.end = reason, status

    def new(self) -> bytes:
        """:returns: what was drawn since this was last called."""
        seen, self.seen = self.seen, b""
        return seen


class Screen(RingScreen):
    """A screen model whose redraws are easy to find."""

    def redraw(self, columns: int, rows: int, history: bool = False) -> bytes:
        return b"<%d %d %d:%b>" % (columns, rows, history, self.text().encode())


class Stage:
    """A hub with all that it needs."""

    def __init__(self, queue_limit: int = 100) -> None:
        self.clock, self.program, self.screen = Clock(), Program(), Screen()
        self.hub = Hub(self.program, self.clock, self.screen, (80, 24), queue_limit=queue_limit)

    def attach(self, mode: Mode = Mode.DRIVE, columns: int = 80, rows: int = 24) -> tuple[Eye, Attachment]:
        """:returns: a viewer that has forgotten its first redraw, and its attachment."""
        eye = Eye()
        attachment = self.hub.attach(eye, mode, columns, rows)
        eye.new()
        return eye, attachment
