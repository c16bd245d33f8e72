"""One viewer of a terminal: its output queue and its input."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from twisted.logger import Logger

from ironcurtain.terminal.model import Mode, ProgramExit, Viewer
from ironcurtain.terminal.sequences import ABORT, RESTORE

QUEUE_LIMIT = 4 * 1024 * 1024
"""Maximum bytes queued for a viewer that does not read. Beyond, the queue is dropped and the screen redrawn."""


class OutputQueue:
    """A bounded queue of output."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self.size = 0
        """Number of queued bytes."""
        self.lost = False
        """Whether the queue overflowed and drops output, so that the screen has to be redrawn."""

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def add(self, data: bytes) -> None:
        """Append output."""
        if self.lost:
            return
        self._chunks.append(data)
        self.size += len(data)
        if self.size > self._limit:
            self.lose()

    def take(self) -> bytes:
        """:returns: the oldest output."""
        data = self._chunks.popleft()
        self.size -= len(data)
        return data

    def lose(self) -> None:
        """Drop the queue, and all output until :meth:`clear`."""
        self.clear()
        self.lost = True

    def clear(self) -> None:
        """Empty the queue and accept output again."""
        self._chunks.clear()
        self.size = 0
        self.lost = False


_DRIVE: Final = Mode.DRIVE  # looking up an enum member is slow in Python 3.11


class AttachmentHub(Protocol):
    """The hub, as an attachment uses it."""

    def redraw(self, size: tuple[int, int], history: bool, draw: Callable[[bytes], None]) -> None:
        """:param draw: called, now or later, with output that draws the complete current state."""

    def typed(self, attachment: Attachment, data: bytes) -> None:
        """Take a viewer's input."""

    def sized(self, attachment: Attachment) -> None:
        """Its terminal has another size."""

    def changed(self) -> None:
        """Take note that an attachment became full, or is no longer full."""

    def left(self, attachment: Attachment) -> None:
        """Take note that an attachment was detached."""


class Attachment:
    """
    Made by :meth:`~ironcurtain.terminal.hub.Hub.attach`.

    :ivar size: columns and rows of its terminal.
    :ivar full: whether it cannot take more output now.
    """

    log = Logger()

    def __init__(
        self,
        source: AttachmentHub,
        viewer: Viewer,
        mode: Mode,
        size: tuple[int, int],
        limit: int,
    ) -> None:
        self._source, self._viewer = source, viewer
        self._queue = OutputQueue(limit)
        self._over: ProgramExit | None = None
        self._owed = b""
        self._waits = False
        self.mode, self.size = mode, size
        self.full = self.gone = False

    @property
    def waiting(self) -> int:
        """Number of queued bytes."""
        return self._queue.size

    def typed(self, data: bytes) -> None:
        """:param data: input for the program; ignored if the viewer is an observer."""
        if not self.gone and self._over is None and self.mode is _DRIVE and data:
            self._source.typed(self, data)

    def resized(self, columns: int, rows: int) -> None:
        """Take the terminal's new size. The program does not redraw for an observer, so the hub does."""
        self.size = columns, rows
        if self.gone:
            return
        self._source.sized(self)
        if self.mode is Mode.OBSERVE:
            self._queue.lose()
            self._go_on()

    def drained(self) -> None:
        """Resume output: write the queue, or redraw the screen if the queue overflowed."""
        self.full = False
        self._go_on()
        self._source.changed()

    def detach(self) -> None:
        """Detach. Nothing more is drawn, and the terminal is left as it is. Can be called twice."""
        if not self.gone:
            self.gone = True
            self._queue.clear()
            self._source.left(self)

    def begin(self) -> None:
        """For the hub: draw the current state."""
        self._redraw(True)

    def output(self, data: bytes) -> None:
        """For the hub: take new output."""
        if self.full or self._waits:
            self._queue.add(data)
        else:
            self._draw(data)

    def notice(self, data: bytes) -> None:
        """For the hub: write bytes that must not be dropped with the queue."""
        if self.full or self._waits:
            self._owed = data
        self.output(data)

    def hold(self, full: bool) -> None:
        """For the hub: pause input while the program does not read (``full``)."""
        if self.mode is Mode.DRIVE:
            self._viewer.hold(full)

    def end(self, ended: ProgramExit) -> None:
        """For the hub: the program's output has ended."""
        self._over = ended
        self._go_on()

    def _redraw(self, history: bool) -> None:
        self._waits = True
        self._source.redraw(self.size, history, self._redrawn)

    def _redrawn(self, data: bytes) -> None:
        self._waits = False
        self._draw(data)
        self._go_on()

    def _go_on(self) -> None:
        """Write the queue until the viewer is full."""
        if self.full or self._waits or self.gone:
            return
        if self._queue.lost:
            self._queue.clear()
            owed, self._owed = self._owed, b""
            self._draw(ABORT + owed if owed else b"")
            self._redraw(False)
            return
        while self._queue and not self.full:
            self._draw(self._queue.take())
        if not self._queue:
            self._owed = b""
        if self._over is not None and not self.full:
            self._finish(self._over)

    def _finish(self, ended: ProgramExit) -> None:
        self._draw(RESTORE)
        if not self.gone:
            self.gone = True
            self._viewer.ended(ended.reason, ended.status)

    def _draw(self, data: bytes) -> None:
        if self.gone:
            return
        try:
            full = not self._viewer.draw(data)
        except Exception:
            self.log.failure("a viewer failed and is detached")
            self.detach()
            return
        if full is not self.full:
            self.full = full
            self._source.changed()
