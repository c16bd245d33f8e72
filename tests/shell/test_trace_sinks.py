from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.shell.trace import SPAN_BEGINS, SinkChoice, moment
from ironcurtain.shell.trace_sinks import FileSink, JournalSink, OutputSink, SyslogSink, make_sink

NOW = 1_767_225_600.0


def line(number: int, start: float = NOW) -> bytes:
    return b'%s%d","start":"%s"}\n' % (SPAN_BEGINS, number, moment(start).encode())


class FileTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name, "ua", "traces.jsonl")
        self.sink = FileSink(self.path)

    def refused(self, why: str) -> None:
        with self.assertRaisesRegex(Unavailable, why):
            self.sink.write(line(9))
        with self.assertRaisesRegex(Unavailable, why):
            self.sink.prune(NOW, 30)

    def test_lines_are_appended_to_a_file_of_ones_own(self) -> None:
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.sink.write(line(1))
        FileSink(self.path).write(line(2))
        self.assertEqual(self.path.read_bytes(), line(1) + line(2))
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.path.parent.stat().st_mode), 0o700)

    def test_old_lines_are_removed(self) -> None:
        self.sink.prune(NOW, 30)  # there is none yet
        for number in range(4):
            self.sink.write(line(number, NOW + number * 86400))
        self.sink.prune(NOW + 31.5 * 86400, 30)
        self.assertEqual(self.path.read_bytes(), line(2, NOW + 2 * 86400) + line(3, NOW + 3 * 86400))
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_a_file_without_old_lines_stays_as_it_is(self) -> None:
        self.sink.write(line(1))
        before = self.path.stat()
        self.sink.prune(NOW, 30)
        self.assertEqual(self.path.stat().st_ino, before.st_ino)

    def test_other_files_are_left_alone(self) -> None:
        self.path.parent.mkdir()
        self.path.write_bytes(b"ssh-ed25519 AAAA\n")
        self.path.chmod(0o600)
        self.refused("no file of traces")
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

    def test_a_directory_that_cannot_be_made(self) -> None:
        self.path.parent.write_text("a file")
        with self.assertRaisesRegex(Unavailable, "no trace can be written"):
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
        with self.assertRaisesRegex(Unavailable, "journal"):
            JournalSink(os.path.join(directory.name, "none")).write(line(1))

    def test_our_output(self) -> None:
        got: list[bytes] = []
        OutputSink(got.append).write(line(1))
        self.assertEqual(got, [line(1)])

    def test_each_choice_has_its_sink(self) -> None:
        for choice, kind in (
            (SinkChoice("file", "/a"), FileSink),
            (SinkChoice("journald"), JournalSink),
            (SinkChoice("syslog"), SyslogSink),
            (SinkChoice("stdout"), OutputSink),
        ):
            self.assertIsInstance(make_sink(choice, print), kind)
