from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.recording import CastEvent, NoRecording, Recording, read_cast
from tests.terminal.test_recording import Memory

HEAD = {"version": 2, "width": 100, "height": 30}


def cast(*lines: Any, end: str = "\n") -> bytes:
    return ("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end).encode()


class CastTests(SynchronousTestCase):
    def test_what_we_record(self) -> None:
        memory = Memory()
        recording = Recording(memory, 10.0, 100, 30, timestamp=1e9, title="claude-code: look")
        recording.output(11.5, b"hello")
        recording.marker(12.0, "filesystem.read_file allow")
        recording.resized(12.5, 80, 24)
        recording.end()
        found = read_cast(memory.data)
        self.assertEqual(
            (found.size, found.title, found.torn, found.damaged), ((100, 30), "claude-code: look", False, 0)
        )
        self.assertEqual(
            found.events,
            (
                CastEvent(1.5, output="hello"),
                CastEvent(2.0, marker="filesystem.read_file allow"),
                CastEvent(2.5, size=(80, 24)),
            ),
        )
        self.assertEqual((found.seconds, found.markers), (2.5, found.events[1:2]))

    def test_version_3_tells_the_time_since_the_event_before(self) -> None:
        head = {"version": 3, "term": {"cols": 90, "rows": 20, "type": "xterm"}, "idle_time_limit": 2}
        found = read_cast(cast(head, "# a comment", [0.5, "o", "a"], [0.25, "o", "b"], [1, "x", "0"]))
        self.assertEqual((found.size, found.idle_limit), ((90, 20), 2.0))
        self.assertEqual([event.time for event in found.events], [0.5, 0.75])

    def test_what_was_typed_and_what_nobody_knows_is_left_out(self) -> None:
        found = read_cast(cast(HEAD, [1, "i", "secret"], [2, "z", {"a": 1}], [3, "o", "x"]))
        self.assertEqual((found.events, found.damaged), ((CastEvent(3.0, output="x"),), 0))

    def test_a_marker_without_a_label(self) -> None:
        self.assertEqual(read_cast(cast(HEAD, [1, "m", ""])).markers, (CastEvent(1.0, marker="marker"),))

    def test_a_last_line_that_is_torn(self) -> None:
        whole = cast(HEAD, [1, "o", "a"], [2, "o", "bc"])
        for end in range(len(cast(HEAD, [1, "o", "a"])) + 1, len(whole) - 1):
            found = read_cast(whole[:end])
            self.assertEqual((len(found.events), found.torn, found.damaged), (1, True, 0), whole[:end])
        self.assertEqual(len(read_cast(whole[:-1]).events), 2)  # only the line's end is missing
        self.assertFalse(read_cast(whole[:-1]).torn)

    def test_damage_in_the_middle(self) -> None:
        lines = (
            "nonsense",
            [-1, "o", "x"],
            [1e300, "o", "x"],
            [1],
            [1, "o", 2],
            [1, "r", "wide"],
            '[1, "o", "\\ud800"]',
        )
        found = read_cast(cast(HEAD, *lines, [2, "o", "b"]))
        self.assertEqual((found.events, found.damaged, found.torn), ((CastEvent(2.0, output="b"),), len(lines), False))

    def test_time_does_not_run_back(self) -> None:
        found = read_cast(cast(HEAD, [2, "o", "a"], [1, "o", "b"]))
        self.assertEqual([event.time for event in found.events], [2.0, 2.0])

    def test_no_size_is_the_usual_one(self) -> None:
        self.assertEqual(read_cast(cast({"version": 2, "width": 0, "height": 99999})).size, (80, 500))

    def test_nothing_happened(self) -> None:
        self.assertEqual(read_cast(cast(HEAD)).seconds, 0.0)

    def test_what_is_none(self) -> None:
        for data, why in (
            (b"", "not a recording"),
            (b"\xff\xfe", "not a recording"),
            (b"[]", "not a recording"),
            (cast({"version": 1, "stdout": []}), "asciicast v1"),
            (cast({"version": 4}), "asciicast v4"),
        ):
            self.assertIn(why, str(self.assertRaises(NoRecording, read_cast, data)))

    @given(st.binary())
    def test_any_bytes_after_the_head(self, data: bytes) -> None:
        read_cast(cast(HEAD) + data)
