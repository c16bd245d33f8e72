from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.identity import ProcessIdentity, boot_id, identify, processes_above
from tests.machine import wait_until_ended

TOP = Path(__file__).parent.parent

HIDE = """
import ctypes, os, resource, subprocess
from ironcurtain.process.identity import hide_memory
dumpable = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
print(dumpable())
hide_memory()
print(dumpable(), resource.getrlimit(resource.RLIMIT_CORE), flush=True)
if os.getuid() == 0:
    os.setuid(65534)
    hide_memory()
for command in ("true", f"cat /proc/{os.getpid()}/environ"):
    print(subprocess.run(["sh", "-c", command], capture_output=True, env={"LANG": "C"}).stderr[-18:])
"""

RENAMED = """
import sys
open("/proc/self/comm", "wb").write(b"x) R \\xff (")
print("named", flush=True)
sys.stdin.read()
"""


class AliveTests(SynchronousTestCase):
    def start(self, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_ourselves(self) -> None:
        ours = identify()
        self.assertEqual((ours.pid, ours.boot_id), (os.getpid(), boot_id()))
        self.assertGreater(ours.start_time, 0)
        self.assertEqual(ours, identify(os.getpid()))
        self.assertTrue(ours.alive)

    def test_a_killed_process_is_dead_even_before_it_is_waited_for(self) -> None:
        process = self.start("sleep", "60")
        identity = identify(process.pid)
        self.assertTrue(identity.alive)
        process.send_signal(signal.SIGKILL)
        wait_until_ended(process.pid)
        self.assertFalse(identity.alive)
        process.wait()
        self.assertFalse(identity.alive)

    def test_a_pid_that_was_given_again_is_somebody_else(self) -> None:
        ours = identify()
        self.assertFalse(replace(ours, start_time=ours.start_time - 1).alive)
        self.assertFalse(replace(ours, boot_id="another boot").alive)

    def test_entries_of_others_may_know_the_pid_alone(self) -> None:
        self.assertTrue(ProcessIdentity(os.getpid(), 0, "").alive)

    def test_numbers_that_are_no_pid(self) -> None:
        for pid in (0, -1, 2**31, 2**64):
            self.assertFalse(ProcessIdentity(pid, 0, "").alive, pid)
            self.assertEqual(identify(pid).start_time, 0)

    def test_any_name_of_a_process(self) -> None:
        """A process names itself as it likes, and a file of the registry may lead us to look at it."""
        process = self.start(sys.executable, "-c", RENAMED)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), b"named\n")
        self.assertTrue(identify(process.pid).alive)
        self.assertGreater(identify(process.pid).start_time, 0)


class HideMemoryTests(SynchronousTestCase):
    def test_processes_of_the_same_user_cannot_read_ours(self) -> None:
        environ = {**os.environ, "SECRET_FOR_THE_TEST": "x"}
        done = subprocess.run(
            [sys.executable, "-c", HIDE], capture_output=True, text=True, cwd=TOP, env=environ, timeout=60
        )
        self.assertEqual(done.stdout.splitlines(), ["1", "0 (0, 0)", "b''", r"b'Permission denied\n'"], done.stderr)


class AboveTests(SynchronousTestCase):
    def test_the_parents_of_a_process(self) -> None:
        above = list(processes_above())
        self.assertEqual(above[0], os.getppid())
        child = subprocess.Popen(["sleep", "100"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(list(processes_above(child.pid)), [os.getpid(), *above])

    def test_of_none(self) -> None:
        self.assertEqual(list(processes_above(2**30)), [])
