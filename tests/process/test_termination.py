"""Whoever ends a command that never started ends nothing else."""

from __future__ import annotations

import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

PREPARED = """
import signal
from twisted.internet.task import Clock
from ironcurtain.process.piped import PipedCommand, exit_status
from ironcurtain.process.termination import Termination, signal_group
from ironcurtain.terminal.pty import LocalPty
clock = Clock()
piped = PipedCommand(None, clock, exit_status, lambda data: None)
pty = LocalPty(None, clock)
"""

WAYS = (
    "piped.drop()",
    "piped.kill()",
    "piped.stop(); clock.advance(60)",
    "pty.kill()",
    "pty.stop(); clock.advance(60)",
    "pty.signal_foreground(signal.SIGINT)",
    "Termination(clock, lambda: {0}).kill()",
    "signal_group(0, signal.SIGKILL)",
)


class NeverStartedTests(SynchronousTestCase):
    def test_caller_and_its_group_live_on(self) -> None:
        for way in WAYS:
            code = f"{PREPARED}{way}\nprint('alive')"
            done = subprocess.run(
                [sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True, check=False
            )
            self.assertEqual((done.returncode, done.stdout), (0, "alive\n"), (way, done.stderr))
