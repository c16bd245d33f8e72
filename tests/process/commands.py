"""Real commands under the real reactor, with time limits that are played by a clock."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.task import Clock, deferLater
from twisted.trial.unittest import TestCase

the_reactor: Any = _reactor


class PlayedTime:
    """The real reactor's processes with another's time."""

    def __init__(self, clock: Clock) -> None:
        self.spawnProcess, self.callLater, self.seconds = the_reactor.spawnProcess, clock.callLater, clock.seconds


class RealCommandCase(TestCase):
    """
    :ivar mark: a file for a command to write its pid to.
    :ivar directory: where it is, and what else a test needs.
    """

    def setUp(self) -> None:
        self.clock = Clock()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.mark = self.directory / "mark"

    async def marked(self) -> int:
        """:returns: the pid that the command wrote."""
        while not (text := self.mark.read_text() if self.mark.exists() else "").endswith("\n"):
            await deferLater(the_reactor, 0.01)
        return int(text)

    def is_alive(self, pid: int) -> bool:
        """:returns: whether a process is there, and no zombie, which whoever adopted it will take away."""
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    async def gone(self, pid: int) -> None:
        """Wait until a process is gone."""
        for _ in range(6000):
            if not self.is_alive(pid):
                return
            await deferLater(the_reactor, 0.01)
        self.fail(f"process {pid} lives")
