"""The screen model of a terminal."""

from __future__ import annotations

from twisted.logger import Logger

from ironcurtain.terminal.model import ScreenModel
from ironcurtain.terminal.modelled_screen import ModelledScreen
from ironcurtain.terminal.ring import RingScreen
from ironcurtain.terminal.screen_process import ScreenProcess
from ironcurtain.terminal.worker import WorkerReactor

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
