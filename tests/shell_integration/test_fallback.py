from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell_integration.fallback import FallbackInput, FallbackPrefix
from ironcurtain.text.columns import cells

KEYS = (
    *(b"#", b"##", b"\\", b"\r", b"\n", b"a", "€".encode(), b"\x7f", b"\x03", b"\x15"),
    *(b"\x1b", b"\x1b[A", b"\x1b[200~", b"\x1b[201~"),
)
PASTED = b"\x1b[200~%b\x1b[201~"


def typed(data: bytes, in_foreground: bool = True) -> FallbackInput:
    """:returns: what comes of single keys."""
    prefix = FallbackPrefix()
    parts = [prefix.feed(bytes((byte,)), in_foreground) for byte in data]
    return FallbackInput(
        b"".join(part.forwarded for part in parts),
        b"".join(part.echo for part in parts),
        tuple(text for part in parts for text in part.instructions),
    )


def shown(echo: bytes) -> str:
    """:returns: what a terminal shows of it in its last line."""
    line: list[str] = []
    at = 0
    for character in echo.decode():
        if character == "\b":
            at -= 1
            continue
        line[at:] = [character, *[""] * (cells(character) - 1)]
        at = len(line)
    return "".join(line).rstrip()


class InstructionTests(SynchronousTestCase):
    def instructed(self, data: bytes, *instructions: str, forwarded: bytes = b"\r") -> None:
        got = typed(data)
        self.assertEqual((got.instructions, got.forwarded), (instructions, forwarded))

    def test_enter_sends(self) -> None:
        self.assertEqual(typed(b"## free space\r"), FallbackInput(b"\r", b"## free space\r\n", ("free space",)))

    def test_several(self) -> None:
        self.instructed(b"##a\r##b\nls\r##c\r", "a", "b", "c", forwarded=b"\r\rls\r\r")

    def test_none_within_a_line(self) -> None:
        for data in (b"echo ## x\r", b" ## x\r", b"\x1b[A## x\r", b"\x1bOA##\r", b"\t##x\r", b"#x##\r", b"a\x7f##\r"):
            self.instructed(data, forwarded=data)

    def test_a_single_sign_is_the_shells(self) -> None:
        for data in (b"# x\r", b"#\r", b"\\n\r", b"\\#x\r", b"\\\r", b"#\x1b[A\r", b"#\x03", b"#\x15"):
            got = typed(data)
            self.assertEqual((got.forwarded, got.instructions, shown(got.echo)), (data, (), ""))

    def test_a_backslash_makes_it_the_shells(self) -> None:
        got = typed(b"\\## x\r")
        self.assertEqual((got.forwarded, got.instructions, shown(got.echo)), (b"## x\r", (), ""))

    def test_backspace_edits(self) -> None:
        self.instructed(b"##ab\x7fc\r", "ac")
        self.instructed("##x€\x7fy\r".encode(), "xy")
        self.instructed(b"##\x7f\x7f##x\r", "x")
        self.instructed(b"##\x7f\x7fls\r", forwarded=b"ls\r")
        self.instructed(b"##\x7fls\r", forwarded=b"#ls\r")
        self.instructed(b"\x7f##x\r", "x", forwarded=b"\x7f\r")
        self.assertEqual(shown(typed("##日x\x08\x08a".encode()).echo), "##a")

    def test_cancelled(self) -> None:
        self.instructed(b"##a\x03##b\r", "b", forwarded=b"\x03\r")
        self.instructed(b"##a\x15##b\r", "b")
        self.assertEqual(shown(typed("##a 日\x15".encode()).echo), "")

    def test_a_line_that_the_shell_gave_up(self) -> None:
        self.instructed(b"ls\x03##a\r", "a", forwarded=b"ls\x03\r")
        self.instructed(b"ls\x15##a\r", "a", forwarded=b"ls\x15\r")

    def test_other_keys_do_nothing_in_it(self) -> None:
        self.instructed(b"##a\x1b[A\x1b[1;5Cb\tc\x1bOP\x1bxd\r", "abcd")

    def test_a_command_has_the_terminal(self) -> None:
        self.assertEqual(typed(b"## x\r", in_foreground=False), FallbackInput(b"## x\r", b"", ()))

    def test_after_a_command_a_line_begins(self) -> None:
        prefix = FallbackPrefix()
        self.assertEqual(prefix.feed(b"less\r", True).forwarded, b"less\r")
        self.assertEqual(prefix.feed(b"jq", False).forwarded, b"jq")
        self.assertEqual(prefix.feed(b"##a\r", True).instructions, ("a",))

    def test_a_command_that_takes_the_terminal_gets_what_was_held_back(self) -> None:
        prefix = FallbackPrefix()
        prefix.feed(b"#", True)
        self.assertEqual(prefix.feed(b"x", False), FallbackInput(b"#x", b"\b \b", ()))


class PasteTests(SynchronousTestCase):
    def test_a_paste_is_the_shells(self) -> None:
        for data in (PASTED % b"## a\r## b\r", PASTED % b"##a" + b"##b", b"#" + PASTED % b"# a"):
            got = typed(data + b"\r##c\r")
            self.assertEqual((got.forwarded, got.instructions), (data + b"\r\r", ("c",)))

    def test_a_paste_into_an_instruction_is_its_text(self) -> None:
        got = typed(b"##a " + PASTED % b"b\rc" + b" d\r")
        self.assertEqual(got, FallbackInput(b"\r", b"##a b c d\r\n", ("a b\nc d",)))


class SlicingTests(SynchronousTestCase):
    @given(st.lists(st.sampled_from(KEYS)))
    def test_any_slicing_gives_the_same(self, keys: list[bytes]) -> None:
        data = b"".join(keys)
        self.assertEqual(FallbackPrefix().feed(data, True), typed(data))
