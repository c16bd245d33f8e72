"""Keys and pastes out of what is read."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell_screen.input_line import InputLine
from ironcurtain.terminal.key_reader import ESCAPE_SECONDS, Key, KeyReader

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
    b"\x1ba": "alt-a",
    "\x1bé".encode(): "alt-é",
    b"\x1b\r": "alt-enter",
    b"\x1b[15~": "unknown",
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
        return [key.name for key in found if key.name]

    def test_each_by_itself(self) -> None:
        for data, name in NAMES.items():
            self.assertEqual([(key.name, key.alone) for key in KeyReader().feed(data, 0)], [(name, name != "")], data)

    def test_each_cut_in_two(self) -> None:
        for data, name in NAMES.items():
            for cut in range(1, len(data)):
                self.reader = KeyReader()
                self.assertEqual(self.names(data[:cut], data[cut:]), [name] if name else [], data)

    def test_keys_of_one_read_are_not_alone(self) -> None:
        self.assertEqual(self.reader.feed(b"yy", 0), [Key("y", "y"), Key("y", "y")])
        self.assertEqual(self.reader.feed(b"\x1b[AA", 0), [Key("up"), Key("A", "A")])

    def test_mouse_and_reports_are_no_keys(self) -> None:
        self.assertEqual(self.names(b"\x1b[<0;10;20M", b"\x1b[24;80R", b"\x1b[I", b"\x1b]11;rgb:0/0/0\x1b\\"), [])

    def test_a_report_beside_a_key(self) -> None:
        self.assertEqual(self.reader.feed(b"\x1b[Ia", 0), [Key(""), Key("a", "a", alone=True)])

    def test_a_key_with_the_begin_of_another_is_not_alone(self) -> None:
        for begin in (b"\x1b", b"\x1b[", b"\xc3"):
            self.assertEqual(KeyReader().feed(b"a" + begin, 0), [Key("a", "a")])

    def test_ctrl_c_ends_a_paste_whose_end_does_not_come(self) -> None:
        for pressed in (b"\x03", b"\x1b[99;5u"):
            for begin in (b"\x1b[200~ls\r", b"\x1b[200~ls\r\x1b[20"):
                reader = KeyReader()
                self.assertEqual(reader.feed(begin, 0.0), [])
                self.assertEqual(reader.feed(b"a", 5.0), [])
                self.assertEqual(reader.feed(pressed, 5.9), [])  # too soon: it may be part of the paste
                paste, key = reader.feed(pressed, 7.0)
                self.assertEqual((paste.name, paste.text[:3]), ("paste", "ls\r"))
                self.assertEqual((key.name, key.alone), ("ctrl-c", True))
                self.assertEqual((reader.pasting, reader.unread), (False, b""))
                self.assertEqual(reader.feed(b"a", 8.0), [Key("a", "a", alone=True)])

    def test_ctrl_c_beside_other_bytes_of_a_paste_ends_nothing(self) -> None:
        self.assertEqual(self.reader.feed(b"\x1b[200~ls\r", 0.0), [])
        self.assertEqual(self.reader.feed(b"\x03\x03", 5.0), [])
        self.assertTrue(self.reader.pasting)

    def test_a_string_that_no_terminal_sends_is_told_from_a_report(self) -> None:
        self.assertEqual(self.names(b"\x1bPrint this", b" page\r"), ["unknown", "enter"])

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

    def test_with_another_key_in_one_read_it_can_be_alt(self) -> None:
        found = self.reader.feed(b"\x1bls", 1.0)
        self.assertEqual(found, [Key("alt-l"), Key("s", "s")])
        self.assertEqual(found[0].parts, (Key("escape"), Key("l", "l")))

    def test_twice_it_is_twice(self) -> None:
        found = [*self.reader.feed(b"\x1b\x1b", 1.0), *self.reader.tick(1.1)]
        self.assertEqual([key.name for key in found], ["escape", "escape"])


PIECES = st.one_of(
    st.sampled_from(
        [*NAMES, b"\x1b", b"\x1b\x1b[A", b"\x1b[200~a\x1bb\r", b"\x1b[201~", b"\x1b]11;x", b"\x1b\\", b"\x07"]
    ),
    st.sampled_from([b"\x1b[M", b"\x1b[M !", b"\x1b[<0;1;1M", b"\x1b[I", b"\x1b[" + b"1" * 300, b"\x1bO", b"\xf0\x9f"]),
    st.binary(max_size=4),
)


def read_as(data: bytes, cuts: list[int]) -> tuple[list[Key], bytes]:
    """:returns: the keys in data that comes in pieces at once, and what is no key yet; reports are joined."""
    reader, found = KeyReader(), list[Key]()
    for begin, end in itertools.pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        for key in reader.feed(data[begin:end], 0.0):
            if not key.name and found and not found[-1].name:
                key = replace(key, data=found.pop().data + key.data)
            found.append(replace(key, alone=False))
    return found, reader.unread


class SlicingTests(SynchronousTestCase):
    """Reads have no meaning, but for what is ``alone``; time has one for Esc."""

    @given(st.lists(PIECES, max_size=8).map(b"".join), st.lists(st.integers(0, 400), max_size=6))
    def test_any_slicing_gives_the_same_keys(self, data: bytes, cuts: list[int]) -> None:
        one, sliced = read_as(data, []), read_as(data, cuts)
        self.assertEqual([(key, key.data) for key in one[0]], [(key, key.data) for key in sliced[0]])
        self.assertEqual(one[1], sliced[1])

    @given(st.lists(PIECES, max_size=8).map(b"".join), st.lists(st.integers(0, 400), max_size=6))
    def test_no_byte_vanishes(self, data: bytes, cuts: list[int]) -> None:
        found, unread = read_as(data, cuts)
        self.assertEqual(b"".join(key.data for key in found) + unread, data)

    @given(st.lists(st.tuples(PIECES, st.floats(0, 2)), max_size=8))
    def test_no_byte_vanishes_as_time_passes(self, reads: list[tuple[bytes, float]]) -> None:
        """Esc that came late is the begin of a sequence after all: then it is counted twice."""
        reader, found, now = KeyReader(), list[Key](), 0.0
        for data, gap in reads:
            found += [*reader.tick(now), *reader.feed(data, now)]
            now += gap
        left = b"".join(key.data for key in found) + reader.unread
        self.assertEqual(left.replace(b"\x1b", b""), b"".join(data for data, _ in reads).replace(b"\x1b", b""))


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
            (("a", "up", "ctrl-x", "unknown"), "a"),
            ((*"ab cd", "alt-b", "alt-d"), "ab "),
            ((*"ab cd", "home", "alt-f", "X", "alt-backspace"), " cd"),
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
