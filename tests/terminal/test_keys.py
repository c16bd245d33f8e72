"""Which keys are ours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.keys import DETACH, INTERRUPT, QUIT, ForwardedInput, KeyPressed, Keys

ALL = (INTERRUPT, QUIT, DETACH)
QUITS = (b"\x1c", b"\x1b[92;5u", b"\x1b[92;5:1u", b"\x1b[92;69u", b"\x1b[92;133u", b"\x1b[27;5;92~", b"\x1b[92::92;5u")


def meant(*reads: bytes) -> list[ForwardedInput | KeyPressed]:
    keys = Keys(ALL)
    return [what for read in reads for what in keys.feed(read)] + keys.release()


def forwarded(what: list[ForwardedInput | KeyPressed]) -> bytes:
    return b"".join(one.data for one in what if isinstance(one, ForwardedInput))


class ReservedTests(SynchronousTestCase):
    """Keys that are ours, in all ways in which terminals send them."""

    def test_ctrl_backslash(self) -> None:
        for read in QUITS:
            self.assertEqual(meant(read), [KeyPressed("quit")], read)

    def test_ctrl_c(self) -> None:
        for read in (b"\x03", b"\x1b[99;5u", b"\x1b[27;5;99~", b"\x1b[1089::99;5u"):
            self.assertEqual(meant(read), [KeyPressed("interrupt")], read)

    def test_a_key_that_is_let_go_is_none(self) -> None:
        self.assertEqual(meant(b"\x1b[92;5:3u"), [ForwardedInput(b"\x1b[92;5:3u")])

    def test_other_modifiers_are_other_keys(self) -> None:
        for read in (b"\x1b[92u", b"\x1b[92;7u", b"\x1b[99;6u", b"\x1b[27;3;99~"):
            self.assertEqual(meant(read), [ForwardedInput(read)], read)

    def test_only_what_was_asked_for_is_reserved(self) -> None:
        self.assertEqual(Keys((QUIT,)).feed(b"\x03"), [ForwardedInput(b"\x03")])
        self.assertEqual(Keys((QUIT,)).feed(b"\x1d"), [ForwardedInput(b"\x1d")])


class ReadTests(SynchronousTestCase):
    """A key counts only as a read by itself, outside of a paste."""

    def test_within_a_longer_read_it_is_data(self) -> None:
        for read in (b"a\x1c", b"\x1cb", b"\x03\x03\x00", b"\x7fELF\x1c\x03\x1d"):
            self.assertEqual(meant(read), [ForwardedInput(read)])

    def test_several_in_one_read_are_several(self) -> None:
        """Whoever reads late finds what was pressed since."""
        self.assertEqual(meant(b"\x03\x03"), [KeyPressed("interrupt")] * 2)
        self.assertEqual(
            meant(b"\x1b[99;5u\x1b[99;5:3u\x1c"),
            [KeyPressed("interrupt"), ForwardedInput(b"\x1b[99;5:3u"), KeyPressed("quit")],
        )
        self.assertEqual(meant(b"\x1b[200~", b"\x03\x03")[-1], ForwardedInput(b"\x03\x03"))

    def test_they_say_what_was_sent(self) -> None:
        for read in QUITS:
            (key,) = Keys(ALL).feed(read)
            self.assertEqual(key.data, read)

    def test_in_a_paste_it_is_data(self) -> None:
        reads = (b"\x1b[200~", b"\x1c", b"\x03", b"\x1d", b"d", b"\x1b[201~")
        self.assertEqual(forwarded(meant(*reads)), b"".join(reads))
        self.assertEqual(meant(*reads, b"\x1c")[-1], KeyPressed("quit"))

    def test_marks_of_a_paste_may_be_cut(self) -> None:
        self.assertEqual(forwarded(meant(b"x\x1b[20", b"0~y", b"\x1c")), b"x\x1b[200~y\x1c")
        self.assertEqual(forwarded(meant(b"\x1b[20", b"0", b"~y", b"\x1c")), b"\x1b[200~y\x1c")
        self.assertEqual(meant(b"\x1b[200~y\x1b[2", b"01~", b"\x1c")[-1], KeyPressed("quit"))

    @given(
        st.lists(st.sampled_from([b"", b"a", b"\x1c", b"\x03", b"\x1d", b"d", b"\x1b[200~", b"\x1b[20", b"1~", *QUITS]))
    )
    def test_nothing_is_lost_but_reserved_keys(self, reads: list[bytes]) -> None:
        keys = Keys((DETACH,))
        got = [what for read in reads for what in keys.feed(read)] + keys.release()
        detached = got.count(KeyPressed("detach"))
        self.assertEqual(len(forwarded(got)), len(b"".join(reads)) - 2 * detached)
        if not detached:
            self.assertEqual(forwarded(got), b"".join(reads))

    @given(st.lists(st.binary(min_size=2)))
    def test_reads_of_several_bytes_pass(self, reads: list[bytes]) -> None:
        self.assertEqual(forwarded(Keys(()).feed(b"".join(reads))), b"".join(reads))


class PairTests(SynchronousTestCase):
    """Ctrl-] and then d."""

    def test_both(self) -> None:
        for first in (b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~"):
            for second in (b"d", b"\x1b[100u", b"\x1b[100;1:1u", b"\x1b[100;129u"):
                self.assertEqual(meant(first, second), [KeyPressed("detach")])

    def test_both_in_one_read(self) -> None:
        """Whoever reads late finds both."""
        self.assertEqual(meant(b"\x1dd"), [KeyPressed("detach")])
        self.assertEqual(meant(b"\x1dd."), [ForwardedInput(b"\x1dd.")])
        self.assertEqual(meant(b"\x1b[200~", b"\x1dd"), [ForwardedInput(b"\x1b[200~"), ForwardedInput(b"\x1dd")])

    def test_letting_go_does_not_part_them(self) -> None:
        self.assertEqual(meant(b"\x1b[93;5:1u", b"\x1b[93;5:3u", b"\x1b[100;1:1u"), [KeyPressed("detach")])

    def test_the_terminal_may_answer_in_between(self) -> None:
        """A program asks for it when it starts; only keys that a person presses part a pair."""
        first, second = b"\x1d", b"d"
        for answer in (b"\x1b[?62;4c", b"\x1b[I", b"\x1b[3;5R", b"\x1bP>|tmux 3.3a\x1b\\", b"\x1b]11;rgb:00/00/00\x07"):
            expected = [ForwardedInput(answer), KeyPressed("detach")]
            self.assertEqual(meant(first, answer, second), expected)
            self.assertEqual(meant(first, answer + second), expected)
            self.assertEqual(meant(answer + first, second), expected)
            self.assertEqual(meant(answer + first + second), expected)

    def test_the_first_is_held_back(self) -> None:
        keys = Keys(ALL)
        self.assertEqual(keys.feed(b"\x1d"), [])
        self.assertTrue(keys.holding)
        self.assertEqual(keys.release(), [ForwardedInput(b"\x1d")])
        self.assertFalse(keys.holding)
        self.assertEqual(keys.feed(b"d"), [ForwardedInput(b"d")])

    def test_followed_by_something_else(self) -> None:
        self.assertEqual(meant(b"\x1d", b"x"), [ForwardedInput(b"\x1d"), ForwardedInput(b"x")])
        self.assertEqual(meant(b"\x1d", b"\x1d"), [ForwardedInput(b"\x1d"), ForwardedInput(b"\x1d")])
        self.assertEqual(meant(b"\x1d", b"\x1d", b"d"), [ForwardedInput(b"\x1d"), KeyPressed("detach")])
        self.assertEqual(meant(b"\x1d", b"\x1c"), [ForwardedInput(b"\x1d"), KeyPressed("quit")])
        self.assertEqual(forwarded(meant(b"\x1d", b"\x1b[93;5:3u", b"x")), b"\x1d\x1b[93;5:3ux")
