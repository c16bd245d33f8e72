from __future__ import annotations

from base64 import b64encode
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell_integration.marks import (
    CAP,
    CommandBegan,
    CommandEnded,
    DirectoryChanged,
    InstructionTyped,
    Mark,
    MarkReader,
    PromptBegan,
    PromptEnded,
    VariableReported,
    without_signs,
)

NONCE = "5e8f"

ENDS = (b"\x07", b"\x1b\\")


def private(kind: str, content: bytes, end: bytes = b"\x07", nonce: str = NONCE) -> bytes:
    return b"\x1b]6973;%b;%b;%b%b" % (nonce.encode(), kind.encode(), b64encode(content), end)


def of_133(content: str, end: bytes = b"\x07", nonce: str = NONCE) -> bytes:
    return b"\x1b]133;%b;aid=%b%b" % (content.encode(), nonce.encode(), end)


def written(mark: Mark, end: bytes) -> bytes:
    match mark:
        case PromptBegan():
            return of_133("A", end)
        case PromptEnded():
            return of_133("B", end)
        case CommandBegan():
            return of_133("C", end)
        case CommandEnded(status):
            return of_133(f"D;{status}", end)
        case DirectoryChanged(path):
            return private("cwd", path.encode(errors="surrogateescape"), end)
        case InstructionTyped(text):
            return private("instruction", f"# {text}".encode(), end)
        case VariableReported(name, value):
            return private("variable", (name if value is None else f"{name}={value}").encode(), end)


def joined(pieces: list[bytes | Mark]) -> list[bytes | Mark]:
    """:returns: the same with neighbouring bytes as one."""
    whole: list[bytes | Mark] = []
    for piece in pieces:
        if isinstance(piece, bytes) and whole and isinstance(last := whole[-1], bytes):
            whole[-1] = last + piece
        else:
            whole.append(piece)
    return whole


def read(data: bytes) -> list[bytes | Mark]:
    return joined(MarkReader(NONCE).feed(data))


MARKS = st.one_of(
    st.sampled_from((PromptBegan(), PromptEnded(), CommandBegan())),
    st.builds(CommandEnded, st.integers(0, 255)),
    st.builds(DirectoryChanged, st.sampled_from(("/", "/home/user/a b;c", "/\u00e9\udcff"))),
    st.builds(InstructionTyped, st.sampled_from(("", "show the disk", "eins\nzwei \u20ac"))),
    st.builds(VariableReported, st.sampled_from(("PATH", "x")), st.sampled_from((None, "", "a=b\nc \u20ac"))),
)
TRICKY = st.sampled_from(
    (
        b"\x1b",
        b"\x1b]",
        b"\x1b]0;title\x07",
        b"\x1b]133;A\x07",
        b"\x1b]133;A;aid=other\x07",
        b"\x1b]133;D;0;aid=5e8f0\x07",
        b"\x1b]133;D;1000;aid=5e8f\x07",
        b"\x1b]133;A;aid=5e8f",
        b"\x1b]133;A;aid=5e8f\x1b",
        b"\x1b]133;A\n;aid=5e8f\x07",
        b"\x1b]6973;5e8f;cwd;L=\x07",
        b"\x1b]6973;other;instruction;IyB4\x07",
        b"\x1b]6973;5e8f;other;IyB4\x07",
        b"\x1b[?2004h",
        b"\x1b[?2004l",
        b"\x1b]6973;5e8f;entered\x07",
        b"\r\x1b[K",
        b"ls\r\n",
    )
)


class MarkTests(SynchronousTestCase):
    def test_each_kind(self) -> None:
        marks = (
            PromptBegan(),
            PromptEnded(),
            CommandBegan(),
            CommandEnded(130),
            DirectoryChanged("/home/user/a;b \u00e4 \udcff"),
            InstructionTyped("free some space"),
            VariableReported("LANG", "a=b"),
            VariableReported("LANG", None),
        )
        for mark in marks:
            for end in ENDS:
                self.assertEqual(read(b"x%by" % written(mark, end)), [b"x", mark, b"y"])

    def test_others_pass(self) -> None:
        for data in (
            b"\x1b]133;A\x07",
            b"\x1b]133;A;aid=other\x07",
            b"\x1b]133;A;aid=5e8f0\x07",
            b"\x1b]133;C;aid=5e8;x\x1b\\",
            b"\x1b]133;D;aid=5e8f\x07",
            b"\x1b]133;D;1000;aid=5e8f\x07",
            b"\x1b]6973;other;instruction;IyB4\x07",
            b"\x1b]6973;5e8f;other;IyB4\x07",
            b"\x1b]6973;5e8f;cwd;L=\x07",
            b"\x1b]7;file:///tmp\x07",
            b"\x1b]52;c;" + b"A" * 100_000 + b"\x07",
        ):
            self.assertEqual(read(data), [data])

    def test_what_cannot_become_a_mark_is_not_held_back(self) -> None:
        for data in (b"\x1b]0;a title that goes on", b"\x1b]133;A\r\n", b"\x1b]6974;", b"\x1b[31m", b"text"):
            self.assertEqual(read(data), [data])

    def test_what_may_become_a_mark_is_held_back_until_it_is_too_long(self) -> None:
        reader = MarkReader(NONCE)
        held = b"\x1b]133;" + b"x" * (CAP - 6)
        self.assertEqual(reader.feed(held), [])
        self.assertEqual(reader.feed(b"y"), [held + b"y"])

    def test_a_mark_that_is_too_long_is_output(self) -> None:
        long = private("instruction", b"#" + b"x" * CAP)
        self.assertEqual(read(long), [long])

    def test_a_mark_within_a_broken_one(self) -> None:
        self.assertEqual(
            read(b"\x1b]133;A;aid=" + of_133("B") + b"\x1b" + of_133("C")),
            [b"\x1b]133;A;aid=", PromptEnded(), b"\x1b", CommandBegan()],
        )

    @given(st.lists(st.one_of(MARKS, TRICKY)), st.sampled_from(ENDS), st.lists(st.integers(0, 500)))
    def test_any_slicing_gives_the_same(self, content: list[bytes | Mark], end: bytes, cuts: list[int]) -> None:
        data = b"".join(part if isinstance(part, bytes) else written(part, end) for part in content)
        reader, whole = MarkReader(NONCE), MarkReader(NONCE)
        places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
        got = [piece for start, stop in pairwise(places) for piece in reader.feed(data[start:stop])]
        got += reader.feed(b" ")
        self.assertEqual(joined(got), joined(whole.feed(data + b" ")))
        self.assertEqual(reader.bracketed_paste, whole.bracketed_paste)

    @given(st.lists(st.one_of(MARKS, st.binary().filter(lambda data: b"\x1b" not in data))), st.sampled_from(ENDS))
    def test_what_was_written_is_read(self, content: list[bytes | Mark], end: bytes) -> None:
        data = b"".join(part if isinstance(part, bytes) else written(part, end) for part in content)
        self.assertEqual(read(data), joined([part for part in content if part != b""]))

    @given(st.binary())
    def test_output_without_marks_is_unchanged(self, data: bytes) -> None:
        reader = MarkReader(NONCE)
        self.assertEqual(joined([*reader.feed(data), *reader.feed(b" ")]), [data + b" "])


class BracketedPasteTests(SynchronousTestCase):
    def test_it_follows_the_line_editor(self) -> None:
        reader = MarkReader(NONCE)
        self.assertFalse(reader.bracketed_paste)
        self.assertEqual(reader.feed(b"\x1b[?2004h$ "), [b"\x1b[?2004h$ "])
        self.assertTrue(reader.bracketed_paste)
        reader.feed(b"x\x1b[?2004l\r\nx\x1b[?2004h\x1b[?2004l")
        self.assertFalse(reader.bracketed_paste)

    def test_in_single_bytes(self) -> None:
        reader = MarkReader(NONCE)
        for byte in b"\x1b[?2004h":
            self.assertFalse(reader.bracketed_paste)
            reader.feed(bytes((byte,)))
        self.assertTrue(reader.bracketed_paste)


class AlternateScreenTests(SynchronousTestCase):
    def test_it_follows_programs_in_any_slicing(self) -> None:
        for number in (b"1049", b"1047", b"47"):
            reader = MarkReader(NONCE)
            for byte in b"vim\x1b[?%bh~" % number:
                reader.feed(bytes((byte,)))
            self.assertTrue(reader.alternate)
            self.assertEqual(reader.feed(b"\x1b[?%bl\x1b[?2004h$ " % number), [b"\x1b[?%bl\x1b[?2004h$ " % number])
            self.assertFalse(reader.alternate)


class RedrawingTests(SynchronousTestCase):
    """What bash writes at Enter, when it clears the line, calls the hook, draws it again, and ends it."""

    CLEARED = b"\r\x1b[K\x1b[A\x1b[K\r"
    ENTERED = b"\x1b]6973;5e8f;entered\x07"
    BEFORE = b"unended\x1b[?2004h$ " + of_133("B") + b"ls"
    AFTER = b"\x1b[?2004l\rfile\r\n$"

    def seen(self, data: bytes, size: int) -> list[bytes | Mark]:
        reader = MarkReader(NONCE)
        return joined([piece for at in range(0, len(data), size) for piece in reader.feed(data[at : at + size])])

    def test_it_is_left_out(self) -> None:
        drawn = b"\r$ " + of_133("B") + b"ls\r\n-l\r\n\r\x1b[A\r\n"
        data = self.BEFORE + self.CLEARED + self.ENTERED + drawn + self.AFTER
        expected = [b"unended\x1b[?2004h$ ", PromptEnded(), b"ls\x1b[A\r\n" + self.AFTER]
        for size in (1, 2, 3, 7, len(data)):
            self.assertEqual(self.seen(data, size), expected)

    def test_what_is_drawn_without_end_is_output(self) -> None:
        data = self.BEFORE + self.CLEARED + self.ENTERED + b"x" * CAP
        for size in (1000, len(data)):
            self.assertEqual(self.seen(data, size)[-1], b"ls" + b"x" * CAP)

    def test_nothing_is_left_out_where_pastes_have_no_brackets(self) -> None:
        data = b"$ " + of_133("B") + b"ls" + self.CLEARED + self.ENTERED + b"$ ls\r\n."
        self.assertEqual(self.seen(data, 5), [b"$ ", PromptEnded(), b"ls" + self.CLEARED + b"$ ls\r\n."])

    def test_what_clears_a_line_is_output_elsewhere(self) -> None:
        reader = MarkReader(NONCE)
        self.assertEqual(reader.feed(b"50%\r\x1b[K"), [b"50%\r\x1b[K"])
        reader.feed(of_133("B"))
        self.assertEqual(reader.feed(b"ls\r\x1b[K"), [b"ls"])
        self.assertEqual(reader.feed(b"x"), [b"\r\x1b[Kx"])


class TextTests(SynchronousTestCase):
    def test_signs_and_blanks_go(self) -> None:
        for typed, text in {
            "# free some space": "free some space",
            "#": "",
            "##  x  ": "x",
            "# one\n\n#two\r\n": "one\n\ntwo",
            "# tag #tag": "tag #tag",
            "# #tag": "#tag",
        }.items():
            self.assertEqual(without_signs(typed), text)
