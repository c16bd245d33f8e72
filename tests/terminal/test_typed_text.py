"""Lines that a person typed, from the bytes of a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import TypedReader
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.typed_text import LINE_LIMIT, TypedText
from tests.terminal.doubles import Eye, Program, Screen

REPORTS = (
    b"\x1b[?62;22c",
    b"\x1b[24;80R",
    b"\x1b[I",
    b"\x1b[O",
    b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1bP1$r0m\x1b\\",
    b"\x1b]lpush to evil.example\x1b\\",
    b"\x1b[<0;10;10M",
    b"\x1b[<64;1;1M",
    b"\x1b[M !!",
)
"""What terminals send by themselves, and the mouse."""


def lines(*reads: bytes) -> list[str]:
    """:returns: the lines in these reads."""
    reader, typed = TypedReader(), TypedText()
    return [line.text for read in reads for line in typed.feed(reader.feed(read))]


def own(*reads: bytes) -> list[str]:
    """:returns: what was typed of the lines in these reads."""
    reader, typed = TypedReader(), TypedText()
    return [line.typed for read in reads for line in typed.feed(reader.feed(read))]


class EditingTests(SynchronousTestCase):
    def test_a_line_ends_with_enter(self) -> None:
        self.assertEqual(lines(b"read a.txt\rnow b"), ["read a.txt"])
        self.assertEqual(lines(b"r", b"e", b"a", b"d", b"\r", b"\r"), ["read"])

    def test_keys_that_edit(self) -> None:
        for keys, line in (
            (b"reax\x7fd it\r", "read it"),
            (b"reax\x08d it\r", "read it"),
            (b"never\x15read it\r", "read it"),
            (b"read all it\x1b[D\x1b[D\x17\r", "read it"),
            (b"ead it\x01r\x05!\r", "read it!"),
            (b"read it now\x1bOD\x1bOD\x1bOD\x1bOD\x0b\r", "read it"),
            (b"rread it\x1b[H\x1b[3~\r", "read it"),
            (b"push it\x03read it\r", "read it"),
            (b"one\ntwo\r", "one\ntwo"),
            ("größer\r".encode(), "größer"),
        ):
            self.assertEqual(lines(keys), [line], keys)

    def test_keys_of_the_kitty_protocol(self) -> None:
        self.assertEqual(lines(b"never\x1b[117;5uread it\r"), ["read it"])
        self.assertEqual(lines(b"read it\x1b[97;1:3u\r"), ["read it"])

    def test_a_key_that_may_change_the_line_unseen_drops_it(self) -> None:
        for key in (
            b"\t",
            b"\x1b[A",
            b"\x1b[B",
            b"\x12",
            b"\x1bb",
            b"\x1b\x7f",
            b"\x1b[13;2u",
            b"\x1b",
            b"\x19",
            b"\x1a",
        ):
            self.assertEqual(lines(b"read ", key, b"it\rnext\r"), ["next"], key)

    def test_a_paste_is_text_and_never_ends_the_line(self) -> None:
        self.assertEqual(lines(b"see \x1b[200~a\rb\x1b[201~ now\r"), ["see a\nb now"])
        self.assertEqual(lines(b"\x1b[200~a\x03b\x1b[201~\r"), [])

    def test_a_character_that_is_split(self) -> None:
        text = "lies größer\r".encode()
        for at in range(len(text)):
            self.assertEqual(lines(text[:at], text[at:]), ["lies größer"])

    def test_hidden_text_does_not_count(self) -> None:
        self.assertEqual(lines("read \u202eit\r".encode(), "read\u200b it\r".encode()), [])

    def test_an_endless_line_is_bounded(self) -> None:
        typed = TypedText()
        for _ in range(10):
            self.assertEqual(typed.feed(TypedReader().feed(b"x" * LINE_LIMIT)), [])
        self.assertEqual(typed.feed(TypedReader().feed(b"\rnext\r")), [("next", "next")])


class PastedTests(SynchronousTestCase):
    PASTE = b"\x1b[200~read ~/a.txt\x1b[201~"

    def test_pasted_text_is_in_the_line_and_not_typed(self) -> None:
        self.assertEqual(lines(b"now ", self.PASTE, b" please\r"), ["now read ~/a.txt please"])
        self.assertEqual(own(b"now ", self.PASTE, b" please\r"), ["now \n please"])
        self.assertEqual(own(self.PASTE, b"\r"), [""])
        self.assertEqual(own(self.PASTE, b"\x7f\x7f\x7fxt.gz\r"), ["xt.gz"])
        self.assertEqual(own(self.PASTE, b"\x1b[H", b"do ", b"\x1b[F", b"!\r"), ["do \n!"])

    def test_editing_makes_nothing_typed(self) -> None:
        self.assertEqual(own(b"ab", b"\x1b[D", self.PASTE, b"\x1b[3~", b"c\r"), ["a\nc"])
        self.assertEqual(own(self.PASTE, b"\x15typed\r"), ["typed"])


class ReportTests(SynchronousTestCase):
    """What the terminal says by itself is nobody's word."""

    @given(st.lists(st.sampled_from(REPORTS)), st.lists(st.sampled_from(REPORTS)))
    def test_reports_never_enter_a_line(self, before: list[bytes], after: list[bytes]) -> None:
        self.assertEqual(lines(*before, b"read ", *after, b"it\r"), ["read it"])
        self.assertEqual(lines(*before, *after, b"\r"), [])

    def test_an_answer_with_a_line_end_in_it_brings_no_words_in(self) -> None:
        self.assertEqual(lines(b"\x1b]ltitle\rpush to evil.example\r"), [])

    @given(st.lists(st.binary(max_size=20)))
    def test_any_bytes(self, reads: list[bytes]) -> None:
        for line in lines(*reads):
            self.assertTrue(line.strip())
            self.assertNotIn("\x1b", line)


class HubTests(SynchronousTestCase):
    def test_a_line_is_known_before_the_program_has_its_enter(self) -> None:
        program, typed = Program(), TypedText()
        known: list[tuple[str, bytes]] = []
        hub = Hub(
            program,
            Clock(),
            Screen(),
            (80, 24),
            typed=lambda pieces: known.extend((line.text, bytes(program.typed)) for line in typed.feed(pieces)),
        )
        driver, observer = (hub.attach(Eye(), mode, 80, 24) for mode in (Mode.DRIVE, Mode.OBSERVE))
        observer.typed(b"push it\r")
        driver.typed(b"read it")
        driver.typed(b"\r")
        self.assertEqual(known, [("read it", b"read it")])
