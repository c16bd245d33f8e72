"""Processes whose parents have ended."""

from __future__ import annotations

import os
import subprocess
import sys

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.identity import ended_children
from ironcurtain.shell.orphans import GRACE_SECONDS, LOOK_SECONDS, Orphans

DAEMON = r"""
import os, sys
from twisted.internet.task import Clock
from ironcurtain.process.identity import processes_above
from ironcurtain.shell.orphans import Orphans
if sys.argv[1] == "kept":
    Orphans(Clock()).begin()
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        parent = os.getppid()
        os.write(writing, b"ready")
        while os.getppid() == parent:
            os.sched_yield()
        os.write(1, f"daemon {' '.join(map(str, processes_above()))}\n".encode())
    else:
        os.read(reading, 5)
    os._exit(0)
os.wait()
os.write(1, f"top {os.getpid()}\n".encode())
sys.stdin.read()
"""


class DaemonTests(SynchronousTestCase):
    """A process that leaves its session, and whose parent ends."""

    def above(self, kept: str) -> tuple[int, list[int]]:
        """:returns: the process that began it all, and those above the daemon."""
        command = [sys.executable, "-c", DAEMON, kept]
        with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            lines = [process.stdout.readline().split() for _ in range(2)]
            process.stdin.close()
        pids = {name: [int(pid) for pid in rest] for name, *rest in lines}
        return pids["top"][0], pids["daemon"]

    def test_it_stays_below_the_shell(self) -> None:
        top, above = self.above("kept")
        self.assertIn(top, above)

    def test_elsewhere_it_does_not(self) -> None:
        top, above = self.above("plain")
        self.assertNotIn(top, above)


class OrphansTests(SynchronousTestCase):
    """Those that have ended."""

    def setUp(self) -> None:
        self.clock, self.ended = Clock(), set[int]()
        self.orphans = Orphans(self.clock, lambda: set(self.ended))
        self.addCleanup(self.orphans.stop)

    def child(self) -> int:
        """:returns: a child that has ended."""
        if (pid := os.fork()) == 0:
            os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return pid

    def test_they_are_waited_for_unless_somebody_else_does_at_once(self) -> None:
        self.orphans.begin()
        pid = self.child()
        self.ended = {pid, 2**22 + 1}
        self.clock.advance(LOOK_SECONDS)
        self.assertIn(pid, ended_children())
        self.clock.advance(GRACE_SECONDS)
        self.assertNotIn(pid, ended_children())
        self.assertRaises(ChildProcessError, os.waitpid, pid, 0)

    def test_running_children_are_not_among_them(self) -> None:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as running:
            self.assertNotIn(running.pid, ended_children())

    def test_the_end_of_the_shell_ends_the_looks(self) -> None:
        self.orphans.begin()
        self.clock.advance(LOOK_SECONDS)
        self.orphans.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
