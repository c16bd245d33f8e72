"""
Screen models of terminals: an exact one, whose terminal emulator runs in its own process; and a fallback that repeats
the last output.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from twisted.logger import Logger

from ironcurtain.process.worker import WorkerReactor
from ironcurtain.terminal.emulator_process import EmulatorProcess, Purpose
from ironcurtain.terminal.emulator_wire import (
    EmulatorOutbox,
    OpenScreen,
    ReadScreen,
    RedrawScreen,
    ResizeTerminal,
    ScanReport,
)
from ironcurtain.terminal.model import ScreenModel
from ironcurtain.terminal.sequences import CLEAR, RESTORE, SEQUENCE, SEQUENCE_LIMIT, plain, unfinished

RING_LIMIT = 256 * 1024
"""Maximum number of bytes of output kept (some twenty full screens of a busy program)."""

PIECE = 4096
"""Pieces smaller than this are joined (each piece costs some 60 bytes)."""

_SAID_ONCE = re.compile(
    rb"[\x05\x07]|\x1bZ|\x1b\[[\x30-\x3f]*[cntx]|\x1b\[[?>][\d;]*[Su]|\x1b\[\?[\d;:]*m|\x1b\[>[\d;]*q"
    rb"|\x1b\[[\x30-\x3f]*(?:\$p|\$w|\*y|&w|'\|)|\x1b[PX^_].*|\x1b\](?![0128];).*",
    re.DOTALL,
)
"""
Sequences that must not be sent to a terminal again: queries, since their answers become input for the program (xterm's
ctlseqs: identity, status, size, modes, settings), persistent settings (colours, clipboard, pictures), bells and
notifications.
"""

_SAYS = re.compile(SEQUENCE.pattern + rb"|[\x05\x07]", re.DOTALL)


class RingScreen:
    """
    Keeps the last output and shows it again.

    Parts of a full-screen program's screen that were drawn earlier are missing until the program redraws, which most do
    after a change of size.
    """

    def __init__(self, limit: int = RING_LIMIT) -> None:
        self._limit = limit
        self._pieces: deque[bytearray | bytes] = deque()
        self._size = 0
        self._lost = False

    @property
    def between(self) -> bool:
        """Whether the output does not end in an incomplete sequence."""
        return not unfinished(self._last(SEQUENCE_LIMIT))

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere. Large pieces are stored without a copy, which would be slow."""
        if len(data) > self._limit:
            data, self._lost = data[-self._limit :], True
        self._size += len(data)
        if len(data) >= PIECE:
            self._pieces.append(data)
        elif self._pieces and isinstance(last := self._pieces[-1], bytearray) and len(last) < PIECE:
            last += data
        else:
            self._pieces.append(bytearray(data))
        while self._size - len(self._pieces[0]) >= self._limit:
            self._size -= len(self._pieces.popleft())
            self._lost = True

    def resize(self, columns: int, rows: int) -> None:
        """Ignored: stored output does not depend on the size."""

    def redraw(self, columns: int, rows: int, history: bool, draw: Callable[[bytes], None]) -> None:
        """:param draw: called at once with the last output, without sequences that must not be repeated."""
        draw(replay(self.kept()))

    def text(self, found: Callable[[str], None]) -> None:
        """:param found: called at once with the last output as plain text."""
        found(plain(self.kept()))

    def close(self) -> None:
        """Keep what is stored."""

    def kept(self) -> bytes:
        """:returns: the last output; if some is missing, from the beginning of a line."""
        data = self._last(self._limit)
        return data[data.find(b"\n") + 1 :] if self._lost or self._size > self._limit else data

    def _last(self, size: int) -> bytes:
        found: list[bytes | bytearray] = []
        for piece in reversed(self._pieces):
            found.append(piece)
            size -= len(piece)
            if size <= 0:
                break
        data = b"".join(reversed(found))
        return data[-size:] if size < 0 else data


def replay(kept: bytes) -> bytes:
    """:returns: output that can be repeated on any terminal, without sequences that must not be repeated."""
    end = unfinished(kept)
    whole = kept[: len(kept) - len(end)]
    return RESTORE + CLEAR + _SAYS.sub(lambda said: b"" if _SAID_ONCE.fullmatch(said[0]) else said[0], whole) + end


BEHIND_LIMIT = 2 * 1024 * 1024
"""
Maximum bytes of output queued for the process. Beyond it, the model skips output and continues with the last output;
modes that a program set in the gap are unknown.
"""


class ModelledScreen:
    """Feeds a model in the process, and keeps the last output for the case that the process does not answer."""

    def __init__(self, process: EmulatorProcess, columns: int, rows: int) -> None:
        self._ring = RingScreen()
        self._process: EmulatorProcess | None = process
        self._number = process.number()
        self.outbox = EmulatorOutbox(OpenScreen(self._number, columns, rows))
        process.add(self._number, self)

    @property
    def between(self) -> bool:
        """Whether the output does not end in an incomplete sequence."""
        return self._ring.between

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere."""
        self._ring.feed(data)
        if self._process is None:
            return
        self.outbox.feed(data)
        if self.outbox.waiting > BEHIND_LIMIT:
            for request in self.outbox.restart(self._ring.kept()):
                self._process.refuse(request)
        self._process.fed(self)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size; lines are rewrapped, as terminals do."""
        if self._process is not None:
            self.outbox.put(ResizeTerminal(self._number, columns, rows))

    def redraw(self, columns: int, rows: int, history: bool, draw: Callable[[bytes], None]) -> None:
        """
        Generate a redraw for any terminal.

        :param draw: called with the redraw, which ends in the same incomplete sequence as the output.
        """
        kept = self._ring.kept()
        if self._process is None or not self._process.ready:
            draw(replay(kept))
            return
        self._process.ask(
            self._number,
            lambda request: RedrawScreen(self._number, request, columns, rows, history),
            lambda data: draw(replay(kept) if data is None else data),
        )

    def text(self, found: Callable[[str], None]) -> None:
        """:param found: called with scrollback, then the screen; wrapped lines joined."""
        kept = self._ring.kept()
        if self._process is None:
            found(plain(kept))
            return
        self._process.ask(
            self._number,
            lambda request: ReadScreen(self._number, request),
            lambda data: found(plain(kept) if data is None else data.decode("utf-8", "replace")),
        )

    def close(self) -> None:
        """No more output follows. From now on only the last output is known. Can be called twice."""
        process, self._process = self._process, None
        if process is not None:
            process.remove(self._number)

    def reported(self, report: ScanReport) -> None:
        """Ignored: a screen reports nothing."""

    def process_gone(self, why: str) -> None:
        """For the process: it ended."""
        self._process = None


class Screens:
    """
    Creates screen models. The exact ones share a process, which starts with the first and ends with the last of them,
    so each must be closed.

    :ivar process: the process that was started last.
    """

    log = Logger()

    def __init__(self, reactor: WorkerReactor) -> None:
        self._reactor = reactor
        self.process: EmulatorProcess | None = None

    def open(self, columns: int, rows: int) -> ScreenModel:
        """:returns: an exact model, or the fallback if no process can be started."""
        if self.process is None or self.process.gone:
            try:
                self.process = EmulatorProcess(self._reactor, Purpose.SCREENS)
            except OSError as e:
                self.log.warn("the process of the screen models could not be started: {error}", error=e)
                return RingScreen()
        return ModelledScreen(self.process, columns, rows)
