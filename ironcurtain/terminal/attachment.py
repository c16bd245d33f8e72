"""One viewer of a terminal: what is drawn for it now, what waits, and what comes from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from twisted.logger import Logger

from ironcurtain.terminal.model import Mode, ProgramExit, Viewer
from ironcurtain.terminal.sequences import ABORT, RESTORE

QUEUE_LIMIT = 4 * 1024 * 1024
"""Most bytes that wait for a viewer that does not read; then they are dropped, and it is drawn afresh."""


class OutputQueue:
    """Output in its order, until there is too much of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self.size = 0
        """How many bytes wait."""
        self.lost = False
        """Whether all that waited was dropped, and all that came since: the viewer has to be drawn afresh."""

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def add(self, data: bytes) -> None:
        """Let more wait."""
        if self.lost:
            return
        self._chunks.append(data)
        self.size += len(data)
        if self.size > self._limit:
            self.lose()

    def take(self) -> bytes:
        """:returns: what has waited longest."""
        data = self._chunks.popleft()
        self.size -= len(data)
        return data

    def lose(self) -> None:
        """Drop all that waits, and what comes until :meth:`clear`."""
        self.clear()
        self.lost = True

    def clear(self) -> None:
        """Forget all that waits; what comes is kept again."""
        self._chunks.clear()
        self.size = 0
        self.lost = False


_DRIVE: Final = Mode.DRIVE  # Python 3.11 takes long to look up a member


class AttachmentHub(Protocol):
    """What an attachment needs of its hub."""

    def redraw(self, size: tuple[int, int], history: bool, draw: Callable[[bytes], None]) -> None:
        """:param draw: gets, at once or later, what draws from scratch all that there is now."""

    def typed(self, attachment: Attachment, data: bytes) -> None:
        """A person typed."""

    def sized(self, attachment: Attachment) -> None:
        """Its terminal has another size."""

    def changed(self) -> None:
        """It is full, or no longer."""

    def left(self, attachment: Attachment) -> None:
        """It is gone."""


class Attachment:
    """
    Made by :meth:`~ironcurtain.terminal.hub.Hub.attach`.

    :ivar size: columns and rows of its terminal.
    :ivar full: whether it takes no more for now.
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
        """How many bytes wait for it."""
        return self._queue.size

    def typed(self, data: bytes) -> None:
        """:param data: for the program; of an observer it goes nowhere."""
        if not self.gone and self._over is None and self.mode is _DRIVE and data:
            self._source.typed(self, data)

    def resized(self, columns: int, rows: int) -> None:
        """Its terminal has another size; for an observer the program draws nothing anew, so we do."""
        self.size = columns, rows
        if self.gone:
            return
        self._source.sized(self)
        if self.mode is Mode.OBSERVE:
            self._queue.lose()
            self._go_on()

    def drained(self) -> None:
        """It can take more: what waits is drawn, or everything afresh if too much waited."""
        self.full = False
        self._go_on()
        self._source.changed()

    def detach(self) -> None:
        """Be gone; nothing more is drawn, and the terminal is left as it is. Harmless the second time."""
        if not self.gone:
            self.gone = True
            self._queue.clear()
            self._source.left(self)

    def begin(self) -> None:
        """For the hub: show what there is."""
        self._redraw(True)

    def output(self, data: bytes) -> None:
        """For the hub: more came."""
        if self.full or self._waits:
            self._queue.add(data)
        else:
            self._draw(data)

    def notice(self, data: bytes) -> None:
        """For the hub: bytes that must be seen, even if what waits is dropped."""
        if self.full or self._waits:
            self._owed = data
        self.output(data)

    def hold(self, full: bool) -> None:
        """For the hub: whether the program reads nothing."""
        if self.mode is Mode.DRIVE:
            self._viewer.hold(full)

    def end(self, ended: ProgramExit) -> None:
        """For the hub: no more will come."""
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
        """Draw what waits, as far as it is taken."""
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
