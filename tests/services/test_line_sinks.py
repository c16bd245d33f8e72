from __future__ import annotations

import os
import resource
import socket
import stat
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.services.line_sinks import FileSink, JournalSink, OutputSink

BEGINS = b'{"number":'


def line(number: int) -> bytes:
    return b"%s%d}\n" % (BEGINS, number)


class FileTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name, "ua", "traces.jsonl")
        self.sink = FileSink(self.path, BEGINS)

    def refused(self, why: str) -> None:
        with self.assertRaisesRegex(Unavailable, why):
            self.sink.write(line(9))
        with self.assertRaisesRegex(Unavailable, why):
            self.sink.keep(lambda lines: lines)

    def test_lines_are_appended_to_a_file_of_ones_own(self) -> None:
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.sink.write(line(1))
        FileSink(self.path, BEGINS).write(line(2))
        self.assertEqual(self.path.read_bytes(), line(1) + line(2))
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.path.parent.stat().st_mode), 0o700)

    def test_line_that_does_not_fit_on_the_disk_leaves_nothing_behind(self) -> None:
        self.sink.write(line(1))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(line(1)) + 5, hard))
        try:
            self.assertRaisesRegex(Unavailable, "the disk is full", self.sink.write, line(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.sink.write(line(3))
        self.assertEqual(self.path.read_bytes(), line(1) + line(3))

    def test_some_lines_are_kept(self) -> None:
        self.sink.keep(lambda lines: b"")  # there is none yet
        for number in range(4):
            self.sink.write(line(number))
        self.sink.keep(lambda lines: b"".join(lines.splitlines(keepends=True)[2:]))
        self.assertEqual(self.path.read_bytes(), line(2) + line(3))
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_a_file_of_which_all_is_kept_stays_as_it_is(self) -> None:
        self.sink.write(line(1))
        before = self.path.stat()
        self.sink.keep(lambda lines: lines)
        self.assertEqual(self.path.stat().st_ino, before.st_ino)

    def test_other_files_are_left_alone(self) -> None:
        self.path.parent.mkdir()
        self.path.write_bytes(b"ssh-ed25519 AAAA\n")
        self.path.chmod(0o600)
        self.refused("something else in it")
        self.assertEqual(self.path.read_bytes(), b"ssh-ed25519 AAAA\n")

    def test_neither_links_nor_files_of_others(self) -> None:
        self.sink.write(line(1))
        self.path.chmod(0o644)
        self.refused("chmod 600")
        self.path.chmod(0o600)
        target = self.path.rename(self.path.with_name("target"))
        self.path.symlink_to(target)
        self.refused("traces.jsonl")
        self.assertEqual(target.read_bytes(), line(1))
        self.path.unlink()
        os.mkfifo(self.path, 0o600)
        self.refused("must be a file")

    def test_whether_it_can_be_written_is_known_before(self) -> None:
        self.sink.check()
        self.assertFalse(self.path.parent.exists())
        self.sink.write(line(1))
        self.sink.check()
        self.path.write_bytes(b"other")
        self.assertRaises(Unavailable, self.sink.check)

    def test_a_directory_that_cannot_be_made(self) -> None:
        self.path.parent.write_text("a file")
        with self.assertRaisesRegex(Unavailable, "cannot be written"):
            self.sink.write(line(1))


class OtherSinkTests(SynchronousTestCase):
    def test_the_journal(self) -> None:
        directory = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.bind(path)
            JournalSink(path).write(line(1))
            received = journal.recv(4096)
        self.assertEqual(received, b"MESSAGE=" + line(1) + b"PRIORITY=6\nSYSLOG_IDENTIFIER=ironcurtain\n")
        JournalSink(path).check()
        missing = JournalSink(os.path.join(directory.name, "none"))
        for attempt in (missing.check, lambda: missing.write(line(1))):
            with self.assertRaisesRegex(Unavailable, "journal"):
                attempt()

    def test_our_output(self) -> None:
        got: list[bytes] = []
        OutputSink(got.append).write(line(1))
        self.assertEqual(got, [line(1)])
