"""Examples of what a person sees, and the terminals that lack something."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.messages import InstructionDone
from ironcurtain.view.look import Look, look_for
from tests.shell_screen.doubles import AgentMode
from tests.shell_screen.frames import SIZES, STATES, note, picture_file, pictures, planned, running, stepping


class PictureTests(SynchronousTestCase):
    """Run ``tests/shell_screen/frames.py`` after a change, and look at the difference."""

    maxDiff = None

    def test_examples(self) -> None:
        for size in SIZES:
            self.assertEqual(pictures(size), picture_file(size).read_text(), size)

    def test_without_unicode_only_ascii_is_written(self) -> None:
        self.assertTrue(pictures("ascii").isascii())

    def test_no_row_of_a_live_area_is_as_wide_as_the_terminal(self) -> None:
        """A character in the last column leaves some terminals in a state that others do not have."""
        for columns in (20, 33, 40, 80):
            for name, state in STATES.items():
                mode = AgentMode(columns, 24)
                state(mode)
                before = len(mode.terminal.lines)
                mode.write(mode.screen.remove())
                live = mode.terminal.lines[before:]
                self.assertTrue(all(len(line) < columns for line in live), (columns, name))


class ColorTests(SynchronousTestCase):
    """Risks and verdicts are told in words; colours repeat them."""

    def test_risk_and_verdict_have_colors(self) -> None:
        mode = AgentMode()
        planned(mode)
        self.assertIn(b"\x1b[32monly reads\x1b[0m", mode.written)
        self.assertIn(b"\x1b[31mdestroys data\x1b[0m", mode.written)
        self.assertIn(b"\x1b[33mneeds your approval\x1b[0m", mode.written)

    def test_no_color(self) -> None:
        mode = AgentMode(look=look_for({"TERM": "xterm-256color", "NO_COLOR": "1"}))
        stepping(mode)
        used = set(re.findall(rb"\x1b\[([\d;]*)m", mode.written))
        self.assertEqual(used - {b"0", b"1", b"2"}, set())

    def test_what_the_environment_says(self) -> None:
        self.assertEqual(look_for({"TERM": "xterm", "LANG": "C.UTF-8"}), Look())
        self.assertEqual(look_for({"TERM": "vt100-m", "LANG": "C.UTF-8"}), Look(color=False))
        self.assertEqual(look_for({"TERM": "xterm", "LANG": "de_DE.latin-1"}), Look(unicode=False))
        self.assertEqual(look_for({"LANG": "x.unknown"}), Look(unicode=False, color=False, dumb=True))

    def test_the_encoding_is_that_of_the_locale(self) -> None:
        for locale in (
            {"LANG": "de_DE.UTF-8@euro"},
            {"LC_CTYPE": "UTF-8", "LANG": "C"},
            {"LC_ALL": "", "LANG": "C.utf8"},
        ):
            self.assertEqual(look_for({"TERM": "xterm", **locale}), Look())
        for locale in ({}, {"LC_ALL": "C", "LANG": "C.UTF-8"}, {"LANG": "de_DE"}, {"LANG": "zh_CN.gb18030"}):
            self.assertEqual(look_for({"TERM": "xterm", **locale}), Look(unicode=False))


class DumbTests(SynchronousTestCase):
    """A terminal without escape sequences."""

    def setUp(self) -> None:
        self.mode = AgentMode(look=Look(color=False, dumb=True))

    def test_no_escape_sequence_is_written(self) -> None:
        for state in STATES.values():
            self.mode = AgentMode(look=Look(color=False, dumb=True))
            state(self.mode)
            self.assertNotIn(b"\x1b", self.mode.written.replace(b"\x1b[31mworking\x1b[K", b""), state.__name__)

    def test_nothing_is_drawn_again_while_time_passes(self) -> None:
        planned(self.mode)
        before = self.mode.written
        self.mode.passes(5)
        self.assertEqual(self.mode.written, before)

    def test_what_is_typed_is_echoed(self) -> None:
        note(self.mode)
        before = self.mode.written
        self.mode.press(b"s", b"\x7f", b"\x7f")
        self.assertEqual(self.mode.written[len(before) :], b"s\b \b\b \b")
        self.assertTrue(self.mode.text.endswith("note: keep the cache of pi"), self.mode.text[-80:])

    def test_a_command_begins_on_a_line_of_its_own(self) -> None:
        running(self.mode)
        self.mode.output(b"more\r\n")
        self.mode.receive(InstructionDone())
        self.assertIn("\nmore\n+ done", self.mode.text.replace("╰", "+"))
