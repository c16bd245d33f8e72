from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.files.locks import FileLock, Held, locked

TOP = Path(__file__).parent.parent

HOLD = """
import sys, time
from pathlib import Path
from ironcurtain.files.locks import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from ironcurtain.files.locks import FileLock
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for take in (FileLock.acquire, FileLock.wait):
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    lock = FileLock(path)
    try:
        take(lock)
    except OSError as e:
        print("refused", e.errno, lock.held)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    again = FileLock(path)
    again.acquire()
    again.release()
print("free")
"""


class FileLockTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = self.directory / "lock"

    def hold_elsewhere(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=TOP
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), b"held\n")
        return process

    def test_one_process_at_a_time(self) -> None:
        other = self.hold_elsewhere()
        lock = FileLock(self.path)
        held = self.assertRaises(Held, lock.acquire)
        self.assertEqual((held.holder, held.exit_status), (str(other.pid), 69))
        self.assertIn(f"process {other.pid}", str(held))
        self.assertFalse(lock.held)

    def test_the_kernel_frees_it_when_the_holder_is_killed(self) -> None:
        other = self.hold_elsewhere()
        other.send_signal(signal.SIGKILL)
        other.wait()
        lock = FileLock(self.path)
        lock.acquire()
        self.addCleanup(lock.release)
        self.assertEqual(self.path.read_text(), f"{os.getpid()}\n")

    def test_an_executed_child_does_not_keep_it(self) -> None:
        lock = FileLock(self.path)
        lock.acquire()
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        lock.release()
        again = FileLock(self.path)
        again.acquire()
        again.release()

    def test_two_objects_of_one_process_exclude_each_other(self) -> None:
        one, other = FileLock(self.path), FileLock(self.path)
        one.acquire()
        self.assertRaises(Held, other.acquire)
        self.assertRaises(RuntimeError, one.acquire)
        one.release()
        one.release()
        other.acquire()
        other.release()

    def test_the_section_is_exclusive_and_freed_on_errors(self) -> None:
        with self.assertRaises(ZeroDivisionError), locked(self.path):
            self.assertRaises(Held, FileLock(self.path).acquire)
            raise ZeroDivisionError
        with locked(self.path):
            pass

    def test_only_the_owner_may_read_it_and_a_link_is_refused(self) -> None:
        with locked(self.path):
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        link = self.directory / "link"
        link.symlink_to(self.path)
        self.assertRaises(OSError, FileLock(link).acquire)

    def test_rubbish_in_the_file_is_no_holder(self) -> None:
        self.path.write_bytes(b"\xff\x1b[2J")
        with self.path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertEqual(self.assertRaises(Held, FileLock(self.path).acquire).holder, "")

    def test_a_lock_that_cannot_be_written_is_free_again(self) -> None:
        """Or the next section of the same process would wait for itself, for ever."""
        done = subprocess.run(
            [sys.executable, "-c", FULL_DISK, str(self.path)], capture_output=True, text=True, cwd=TOP, timeout=60
        )
        self.assertEqual(done.stdout.splitlines()[-1:], ["free"], done.stderr)
