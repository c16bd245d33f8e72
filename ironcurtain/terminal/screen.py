"""The screen model of a terminal."""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import Logger

from ironcurtain.process.worker import WorkerReactor
from ironcurtain.terminal.model import ScreenModel
from ironcurtain.terminal.ring import RingScreen, replay
from ironcurtain.terminal.screen_outbox import Outbox
from ironcurtain.terminal.screen_process import ScreenProcess
from ironcurtain.terminal.screen_wire import Open, Redraw, Resize, Text
from ironcurtain.terminal.sequences import plain

BEHIND_LIMIT = 2 * 1024 * 1024
"""
Most bytes of output that wait for the process. When more would, the model leaves a gap and goes on from
the last output; what a program set in the gap, such as modes, it does not know.
"""


class ModelledScreen:
    """Feeds a model in the process, and remembers the last output for when it does not answer."""

    def __init__(self, process: ScreenProcess, columns: int, rows: int) -> None:
        self._ring = RingScreen()
        self._process: ScreenProcess | None = process
        self._number = process.number()
        self.outbox = Outbox(Open(self._number, columns, rows))
        process.add(self._number, self)

    @property
    def between(self) -> bool:
        """Whether the output is between two sequences."""
        return self._ring.between

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere."""
        self._ring.feed(data)
        if self._process is None:
            return
        self.outbox.feed(data)
        if self.outbox.waiting > BEHIND_LIMIT:
            for request in self.outbox.restart(self._ring.kept()):
                self._process.refuse(request)
        self._process.fed(self)

    def resize(self, columns: int, rows: int) -> None:
        """Have another size; lines are wrapped afresh, as terminals do."""
        if self._process is not None:
            self.outbox.put(Resize(self._number, columns, rows))

    def redraw(self, columns: int, rows: int, history: bool, draw: Callable[[bytes], None]) -> None:
        """
        Find what brings any terminal to what it should show.

        :param draw: gets it; what is under way at that moment in the output is under way after it too.
        """
        kept = self._ring.kept()
        if self._process is None or not self._process.ready:
            draw(replay(kept))
            return
        self._process.ask(
            self._number,
            lambda request: Redraw(self._number, request, columns, rows, history),
            lambda data: draw(replay(kept) if data is None else data),
        )

    def text(self, found: Callable[[str], None]) -> None:
        """:param found: gets lines that scrolled off, then the screen; wrapped lines joined."""
        kept = self._ring.kept()
        if self._process is None:
            found(plain(kept))
            return
        self._process.ask(
            self._number,
            lambda request: Text(self._number, request),
            lambda data: found(plain(kept) if data is None else data.decode("utf-8", "replace")),
        )

    def close(self) -> None:
        """No more output comes; from now on only the last output is known. Harmless the second time."""
        process, self._process = self._process, None
        if process is not None:
            process.remove(self._number)

    def process_gone(self) -> None:
        """For the process: it ended."""
        self._process = None


_log = Logger()
_processes: dict[WorkerReactor, ScreenProcess] = {}
"""One for each reactor, of which there is one."""


def open_screen(columns: int, rows: int, reactor: WorkerReactor) -> ScreenModel:
    """
    Make the exact model, or where its process cannot be started the one that only remembers.

    The exact ones live in a process of their own, which is started with the first and ends with the last of them: each
    must be closed.
    """
    process = _processes.get(reactor)
    if process is None or process.gone:
        try:
            process = _processes[reactor] = ScreenProcess(reactor)
        except OSError as e:
            _log.warn("the process of the screen models does not start: {error}", error=e)
            return RingScreen()
    return ModelledScreen(process, columns, rows)
