"""Recordings that any player of asciicast v2 takes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.terminal import RecordingFile
from ironcurtain.terminal.hub import FLUSH_SECONDS, Hub
from ironcurtain.terminal.keys import TypedReader
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.recording import GATHER_SIZE, MASK, Recording
from tests.terminal.doubles import Eye, Program, Screen


class Memory:
    """A sink that keeps, or fails."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = 0
        self.broken = False

    def write(self, data: bytes) -> None:
        if self.broken:
            raise OSError(28, "No space left on device")
        self.data += data

    def close(self) -> None:
        self.closed += 1

    def lines(self) -> list[Any]:
        return [json.loads(text) for text in self.data.decode().splitlines()]


class RecordingTests(SynchronousTestCase):
    """Lines."""

    def setUp(self) -> None:
        self.memory, self.echo = Memory(), True
        self.recording = self.record()

    def record(self, **options: Any) -> Recording:
        options = {"echoes": lambda: self.echo, **options}
        return Recording(self.memory, 100.0, 80, 24, timestamp=1_700_000_000.5, title="claude-code: x", **options)

    def type(self, data: bytes, now: float = 100.0) -> None:
        self.recording.typed(now, TypedReader().feed(data), self.recording.echoes())

    def lines(self) -> list[Any]:
        """:returns: all that was recorded so far."""
        self.recording.flush()
        return self.memory.lines()

    def test_the_head(self) -> None:
        [head] = self.lines()
        self.assertEqual((head["version"], head["width"], head["height"]), (2, 80, 24))
        self.assertEqual((head["timestamp"], head["title"]), (1_700_000_000, "claude-code: x"))

    def test_events(self) -> None:
        self.recording.output(100.25, b"\x1b[31mred\x1b[0m\r\n")
        self.recording.resized(101.0, 100, 30)
        self.recording.marker(102.0, "escalation 7")
        self.type(b"ls\r", 103.0)
        self.assertEqual(
            self.lines()[1:],
            [
                [0.25, "o", "\x1b[31mred\x1b[0m\r\n"],
                [1.0, "r", "100x30"],
                [2.0, "m", "escalation 7"],
                [3.0, "i", "ls\r"],
            ],
        )

    def test_a_character_may_be_cut_in_two(self) -> None:
        for now, byte in enumerate("é中".encode(), 100):
            self.recording.output(now, bytes([byte]))
        self.recording.output(200.0, b"\xff")
        self.assertEqual([event[2] for event in self.lines()[1:]], ["é", "中", "�"])

    def test_what_the_terminal_does_not_show_is_masked(self) -> None:
        self.echo = False
        self.type(b"hunter2\r")
        self.recording.flush()
        self.assertNotIn(b"hunter2", self.memory.data)
        self.assertEqual(self.lines()[1], [0.0, "i", MASK])

    def test_where_nobody_can_tell_all_is_masked(self) -> None:
        self.recording = Recording(self.memory, 100.0, 80, 24, timestamp=0)
        self.type(b"hunter2\r")
        self.recording.flush()
        self.assertNotIn(b"hunter2", self.memory.data)

    def test_what_the_terminal_says_by_itself_is_left_out(self) -> None:
        self.type(b"\x1b[?62c\x1b[I\x1b[<0;1;1M")
        self.assertEqual(len(self.lines()), 1)

    def test_it_ends_at_its_limit_and_says_so(self) -> None:
        self.recording = self.record(limit=1000)
        self.memory.data = b""
        for _ in range(100):
            self.recording.output(101.0, b"x" * 100)
        self.assertLess(len(self.memory.data), 1100)
        self.assertEqual(self.lines()[-1][:2], [1.0, "m"])
        self.assertEqual(self.memory.closed, 1)
        self.recording.end()
        self.assertEqual(self.memory.closed, 1)

    def test_time_never_goes_back(self) -> None:
        self.recording.output(99.0, b"x")
        self.assertEqual(self.lines()[1][0], 0.0)

    def test_output_within_a_moment_is_one_event_with_the_time_of_the_first(self) -> None:
        for now, data in ((101.0, b"a"), (101.009, b"b"), (101.02, b"c")):
            self.recording.output(now, data)
        self.assertEqual(self.lines()[1:], [[1.0, "o", "ab"], [1.02, "o", "c"]])

    def test_it_is_gathered_up_to_a_limit_or_a_marker(self) -> None:
        self.recording.output(101.0, b"x")
        self.assertTrue(self.recording.waits)
        self.assertEqual(len(self.memory.lines()), 1)
        self.recording.marker(101.0, "m")
        self.assertFalse(self.recording.waits)
        self.assertEqual(len(self.memory.lines()), 3)
        self.recording.output(101.0, b"x" * GATHER_SIZE)
        self.assertFalse(self.recording.waits)
        self.assertEqual(len(self.memory.lines()), 4)

    def test_the_end_writes_what_waits(self) -> None:
        self.recording.output(101.0, b"x")
        self.recording.end()
        self.assertEqual(self.memory.lines()[1:], [[1.0, "o", "x"]])


class Asking(Program):
    """Shows what is typed again when it has a whole line, as what asks for a password does."""

    shows = False

    def write(self, data: bytes) -> None:
        super().write(data)
        self.shows = data.endswith(b"\r")


class HubRecordingTests(SynchronousTestCase):
    """What a hub records."""

    def setUp(self) -> None:
        self.memory, self.clock = Memory(), Clock()
        recording = Recording(self.memory, 0.0, 80, 24, timestamp=0, echoes=lambda: True)
        self.hub = Hub(Program(), self.clock, Screen(), (80, 24), recording=recording)

    def test_all_of_it(self) -> None:
        attachment = self.hub.attach(Eye(), Mode.DRIVE, 90, 30)
        self.hub.received(b"out")
        attachment.typed(b"in")
        self.hub.bell("files__write_file")
        self.hub.ended(ProgramExit(0))
        events = [event[1:] for event in self.memory.lines()[1:]]
        self.assertEqual(events, [["r", "90x30"], ["o", "out"], ["i", "in"], ["m", "files__write_file"]])
        self.assertEqual(self.memory.closed, 1)

    def test_events_keep_their_order_and_time(self) -> None:
        attachment = self.hub.attach(Eye(), Mode.DRIVE, 80, 24)
        self.hub.received(b"much")
        self.clock.advance(0.02)
        attachment.typed(b"in")
        self.hub.mark("a call")
        self.hub.received(b"more")
        self.clock.advance(FLUSH_SECONDS)
        self.assertEqual(
            self.memory.lines()[1:], [[0.0, "o", "much"], [0.02, "i", "in"], [0.02, "m", "a call"], [0.02, "o", "more"]]
        )

    def test_what_was_typed_right_before_leaving(self) -> None:
        attachment = self.hub.attach(Eye(), Mode.DRIVE, 80, 24)
        attachment.typed(b"in")
        attachment.detach()
        self.hub.ended(ProgramExit(0))
        self.assertEqual(self.memory.lines()[1:], [[0.0, "i", "in"]])

    def test_what_counts_is_whether_it_was_shown_when_it_was_typed(self) -> None:
        program = Asking()
        recording = Recording(self.memory, 0.0, 80, 24, timestamp=0, echoes=lambda: program.shows)
        hub = Hub(program, self.clock, Screen(), (80, 24), recording=recording)
        hub.attach(Eye(), Mode.DRIVE, 80, 24).typed(b"hunter2\r")
        hub.ended(ProgramExit(0))
        self.assertEqual(program.typed, b"hunter2\r")
        self.assertNotIn(b"hunter2", self.memory.data)

    def test_it_is_written_soon(self) -> None:
        self.hub.received(b"out")
        self.clock.advance(FLUSH_SECONDS)
        self.assertEqual(self.memory.lines()[1:], [[0.0, "o", "out"]])
        self.hub.received(b"more")
        self.clock.advance(FLUSH_SECONDS)
        self.assertEqual(len(self.memory.lines()), 3)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_full_disk_ends_the_recording_and_not_the_session(self) -> None:
        eye = Eye()
        self.hub.attach(eye, Mode.DRIVE, 80, 24)
        self.memory.broken = True
        self.hub.received(b"1")
        self.clock.advance(FLUSH_SECONDS)
        self.memory.broken = False
        self.hub.received(b"2")
        self.clock.advance(FLUSH_SECONDS)
        self.assertTrue(eye.seen.endswith(b"12"))
        self.assertEqual(len(self.memory.lines()), 1)


class FileTests(SynchronousTestCase):
    """The file."""

    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def test_only_its_owner_reads_it(self) -> None:
        path = self.directory / "terminal.cast"
        sink = RecordingFile(path)
        sink.write(b"one\n")
        sink.write(b"two\n")
        sink.close()
        self.assertEqual((path.read_bytes(), path.stat().st_mode & 0o777), (b"one\ntwo\n", 0o600))

    def test_nothing_is_overwritten_or_followed(self) -> None:
        (self.directory / "there").write_text("x")
        os.symlink(self.directory / "elsewhere", self.directory / "link")
        for name in ("there", "link"):
            self.assertRaises(FileExistsError, RecordingFile, self.directory / name)
