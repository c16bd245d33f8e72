"""Keys and pastes out of what is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell_screen.input_line import InputLine
from ironcurtain.shell_screen.keymap import ESCAPE_SECONDS, Key, KeyReader

NAMES = {
    b"a": "a",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x03": "ctrl-c",
    b"\x1a": "ctrl-z",
    b"\x1b[A": "up",
    b"\x1bOB": "down",
    b"\x1b[1;5C": "right",
    b"\x1b[3~": "delete",
    b"\x1b[5~": "page-up",
    b"\x1b[6~": "page-down",
    b"\x1b[27u": "escape",
    b"\x1b[99;5u": "ctrl-c",
    b"\x1b[27;5;99~": "ctrl-c",
    b"\x1b[99;5:3u": "",
    b"\x1b[97;5u": "ctrl-a",
    b"\x1ba": "",
    b"\x1b\x1b": "escape",
    b"\x1b[15~": "",
    "é".encode(): "é",
}


class KeyTests(SynchronousTestCase):
    """What one key gives, however it comes."""

    def setUp(self) -> None:
        self.reader = KeyReader()

    def names(self, *reads: bytes, gap: float = 0.0) -> list[str]:
        found, now = list[Key](), 0.0
        for read in reads:
            found += self.reader.feed(read, now)
            now += gap
        return [key.name for key in found]

    def test_each_by_itself(self) -> None:
        for data, name in NAMES.items():
            self.assertEqual([(key.name, key.alone) for key in KeyReader().feed(data, 0)], [(name, True)], data)

    def test_each_cut_in_two(self) -> None:
        for data, name in NAMES.items():
            if data != b"\x1b\x1b":
                for cut in range(1, len(data)):
                    self.reader = KeyReader()
                    self.assertEqual(self.names(data[:cut], data[cut:]), [name], data)

    def test_keys_of_one_read_are_not_alone(self) -> None:
        self.assertEqual(self.reader.feed(b"yy", 0), [Key("y", "y"), Key("y", "y")])
        self.assertEqual(self.reader.feed(b"\x1b[AA", 0), [Key("up"), Key("A", "A")])

    def test_mouse_and_reports_are_no_keys(self) -> None:
        self.assertEqual(self.names(b"\x1b[<0;10;20M", b"\x1b[24;80R", b"\x1b[I", b"\x1b]11;rgb:0/0/0\x1b\\"), [])

    def test_a_report_beside_a_key(self) -> None:
        self.assertEqual(self.reader.feed(b"\x1b[Ia", 0), [Key("a", "a", alone=True)])

    def test_a_paste_is_one(self) -> None:
        keys = [
            *self.reader.feed(b"\x1b[200~a\r", 0),
            *self.reader.feed(b"\x03b\x1b[201", 0),
            *self.reader.feed(b"~", 0),
        ]
        self.assertEqual(keys, [Key("paste", "a\r\x03b")])


class EscapeTests(SynchronousTestCase):
    """Esc, and the begin of a sequence."""

    def setUp(self) -> None:
        self.reader = KeyReader()

    def test_alone_it_is_a_key_after_some_time(self) -> None:
        self.assertEqual(self.reader.feed(b"\x1b", 1.0), [])
        self.assertEqual(self.reader.due, 1.0 + ESCAPE_SECONDS)
        self.assertEqual(self.reader.tick(1.0 + ESCAPE_SECONDS / 2), [])
        self.assertEqual(self.reader.tick(1.0 + ESCAPE_SECONDS), [Key("escape", alone=True)])
        self.assertIsNone(self.reader.due)

    def test_a_key_that_comes_later_is_another_one(self) -> None:
        self.reader.feed(b"\x1b", 1.0)
        self.assertEqual([key.name for key in self.reader.feed(b"a", 2.0)], ["escape", "a"])

    def test_the_rest_of_a_sequence_that_comes_late_presses_no_letters(self) -> None:
        """Else an arrow key on a slow line would press A."""
        self.reader.feed(b"\x1b", 1.0)
        self.reader.tick(1.2)
        self.assertEqual([key.name for key in self.reader.feed(b"[A", 1.3)], ["up"])

    def test_after_a_while_it_is_letters(self) -> None:
        self.reader.feed(b"\x1b", 1.0)
        self.reader.tick(1.2)
        self.assertEqual([key.name for key in self.reader.feed(b"[", 3.0)], ["["])

    def test_it_is_forgotten(self) -> None:
        self.reader.feed(b"\x1b", 1.0)
        self.reader.forget()
        self.assertEqual(self.reader.tick(2.0), [])


class LineTests(SynchronousTestCase):
    """A line that is edited."""

    def line(self, *keys: str) -> InputLine:
        line = InputLine("# ")
        for key in keys:
            line.press(Key(key, key if len(key) == 1 else ""))
        return line

    def test_editing(self) -> None:
        for keys, text in (
            ("a b", "a b"),
            (("a", "b", "backspace"), "a"),
            (("a", "b", "left", "delete"), "a"),
            (("a", "home", "b", "end", "c"), "bac"),
            (("a", "b", "left", "ctrl-u"), "b"),
            (("a", "b", "left", "ctrl-k"), "a"),
            ((*"ab cd ", "ctrl-w"), "ab "),
            (("a", "up", "ctrl-x", ""), "a"),
            (("left", "right", "backspace", "delete"), ""),
        ):
            self.assertEqual(self.line(*keys).text, text, keys)

    def test_a_paste_becomes_one_line_without_hidden_characters(self) -> None:
        line = InputLine("# ")
        line.press(Key("paste", "a\r\nb\tc\x1b[2Jd\u202ee"))
        self.assertEqual(line.text, "a b c[2Jde")

    @given(st.text("ab 日é", max_size=60), st.integers(0, 60), st.integers(0, 30))
    def test_the_cursor_is_visible(self, text: str, left: int, width: int) -> None:
        line = self.line(*text, *["left"] * left)
        shown, column = line.visible(width)
        self.assertIn(shown, line.text)
        self.assertTrue(column < max(width, 1) or column <= 1, (shown, column))

    @given(st.lists(st.binary(max_size=12), max_size=8), st.floats(0, 0.1))
    def test_no_bytes_raise(self, reads: list[bytes], gap: float) -> None:
        reader, line, now = KeyReader(), InputLine("# "), 0.0
        for read in reads:
            for key in reader.feed(read, now):
                line.press(key)
            now += gap
        self.assertTrue("".join(line.text.split()).isprintable() or not line.text)
