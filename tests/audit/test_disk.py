from __future__ import annotations

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain
from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import AuditUnavailable
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import ManualThread, descriptor_of, file_limit, open_files, scratch

LITTLE = 1024 * 1024
"""Bytes that fit on the disk: more than what a test writes elsewhere, since a limit of files holds for all of them."""

MUCH = {"content": [0] * 10_000}
"""About 20 kB, cheap to redact."""


@contextmanager
def tiny_disk(directory: Path) -> Iterator[None]:
    """Let a directory hold little: by a file system of its own where we may mount one, else by the limit of a file."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={LITTLE},mode=700", "none", str(directory)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        try:
            yield
        finally:
            subprocess.run(["umount", str(directory)], check=True)
    else:
        with file_limit(LITTLE):
            yield


class DiskTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.thread = Clock(), ManualThread()
        self.directory = scratch(self)
        self.path = self.directory / "audit.jsonl"

    def open(self) -> AuditLog:
        return AuditLog(self.path, "session-1", Redactor(), self.clock, lambda: 1.5e9, self.thread)

    def open_large(self) -> AuditLog:
        log = self.open()
        while self.path.stat().st_size < LITTLE:
            log.append("call", arguments=MUCH)
        return log

    def close(self, log: AuditLog) -> None:
        closing = Deferred.fromCoroutine(log.close())
        while self.thread.waiting:
            self.thread.run()
        self.successResultOf(closing)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def verify(self) -> chain.ChainReport:
        with open(self.path, "rb") as file:
            return chain.verify(file)

    def assertDead(self, log: AuditLog) -> None:
        """It stays so, although what was wrong has passed."""
        size = self.path.stat().st_size
        for _ in range(3):
            self.assertRaises(AuditUnavailable, log.append, "call")
            self.failureResultOf(log.durable(10**6), AuditUnavailable)
        self.assertEqual(self.path.stat().st_size, size)


class FullDiskTests(DiskTestCase):
    def test_a_full_disk_ends_it_and_room_lets_it_go_on(self) -> None:
        with tiny_disk(self.directory):
            log = self.open()
            written = 1
            with self.assertRaisesRegex(AuditUnavailable, "cannot be written"):
                while True:
                    written = log.append("call", arguments=MUCH)
            waiting = log.durable(written)
            self.failureResultOf(waiting, AuditUnavailable)
            self.assertDead(log)
            self.close(log)
            os.truncate(self.path, self.path.stat().st_size - 20_000)  # somebody makes room
            self.close(self.open())
            self.assertEqual(self.verify().problems, [])

    def test_a_short_write_ends_it(self) -> None:
        log = self.open_large()
        size = self.path.stat().st_size
        with file_limit(size + 40), self.assertRaisesRegex(AuditUnavailable, "disk is full"):
            log.append("call", arguments=MUCH)
        self.assertEqual(self.path.stat().st_size, size + 40)
        self.assertDead(log)
        self.close(log)
        self.close(self.open())
        report = self.verify()
        self.assertEqual((report.problems, report.recovered), ([], 1))

    def test_no_room_for_the_recovery_leaves_nothing_open(self) -> None:
        self.close(self.open_large())
        os.truncate(self.path, size := self.path.stat().st_size - 10)
        before = open_files(alone=True)
        for room in (0, 1, 30):
            with file_limit(size + room):
                self.assertRaises(AuditUnavailable, self.open)
        self.assertEqual(open_files(), before)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.close(self.open())
        self.assertEqual(self.verify().problems, [])

    def test_no_descriptor_for_reading_is_unavailable_too(self) -> None:
        self.close(self.open())
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(map(int, os.listdir("/proc/self/fd")))
        for room in (0, 1):
            filler = [os.dup(0) for _ in range(highest + 2 - len(os.listdir("/proc/self/fd")))]
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(filler, default=highest) + 1 + room, hard))
                self.assertRaises(AuditUnavailable, self.open)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for fd in filler:
                    os.close(fd)
        self.assertEqual(self.clock.getDelayedCalls(), [])


class BrokenDescriptorTests(DiskTestCase):
    def broken_by(self, path: str, flags: int, code: int) -> None:
        log = self.open()
        waiting = log.durable(log.append("call"))
        fd = os.open(path, flags)
        os.dup2(fd, descriptor_of(self.path))
        os.close(fd)
        with self.assertRaisesRegex(AuditUnavailable, os.strerror(code)):
            log.append("call")
        self.failureResultOf(waiting, AuditUnavailable)
        self.assertDead(log)
        self.thread.waiting.clear()
        self.close(log)
        self.assertEqual((self.verify().problems, self.verify().records), ([], 2))

    def test_no_space(self) -> None:
        self.broken_by("/dev/full", os.O_RDWR, errno.ENOSPC)

    def test_an_input_output_error(self) -> None:
        self.broken_by("/proc/self/mem", os.O_RDWR, errno.EIO)

    def test_a_descriptor_that_is_not_for_writing(self) -> None:
        self.broken_by("/dev/null", os.O_RDONLY, errno.EBADF)

    def test_a_failed_sync_ends_it_for_all_who_wait(self) -> None:
        log = self.open()
        waiting = [log.durable(log.append("call")) for _ in range(3)]
        self.thread.fail(OSError(errno.EIO, "Input/output error"))
        for done in waiting:
            self.failureResultOf(done, AuditUnavailable)
        self.assertDead(log)
        self.close(log)

    def test_the_first_reason_stays(self) -> None:
        log = self.open_large()
        waiting = log.durable(log.append("call"))
        with file_limit(LITTLE), self.assertRaises(AuditUnavailable) as caught:
            log.append("call")
        self.failureResultOf(waiting, AuditUnavailable)
        self.thread.fail(OSError(errno.EIO, "Input/output error"))
        with self.assertRaises(AuditUnavailable) as again:
            log.append("call")
        self.assertEqual(str(again.exception), str(caught.exception))
        self.close(log)
