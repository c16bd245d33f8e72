"""A terminal is as before, whatever a program did to it."""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st
from pyghostty import Terminal  # type: ignore[import-untyped, unused-ignore]
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.ghostty import DrawnPart, Emulator
from ironcurtain.terminal.ghostty_screen import draw_cells
from ironcurtain.terminal.sequences import CLEAR, RESTORE
from tests.product import Product
from tests.terminal.corpus import PIECES
from tests.tmux import Tmux

MODES = (1, 5, 7, 9, 25, 45, 47, 66, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1045, 1047, 1049)
MORE_MODES = (2004, 2026, 2031, 2048, 5522)


def modes(terminal: Emulator) -> dict[str, object]:
    """:returns: all that is not text."""
    return {
        **{str(number): terminal.mode(number) for number in MODES + MORE_MODES},
        "insert": terminal.mode(4, ansi=True),
        "newline": terminal.mode(20, ansi=True),
        "kitty": terminal.get("kitty_keyboard_flags", "uint8_t"),
        "cursor": terminal.cursor_shape(),
        "alternate": terminal.alternate,
    }


class RestoreTests(SynchronousTestCase):
    """Modes, colours, margins; and text and cursor that stay."""

    @given(st.lists(st.sampled_from(PIECES), max_size=40))
    def test_every_mode_is_as_before(self, pieces: list[bytes]) -> None:
        terminal, fresh = Emulator(20, 8), Emulator(20, 8)
        terminal.feed(b"".join(pieces) + RESTORE)
        self.assertEqual(modes(terminal), modes(fresh))

    @given(st.lists(st.sampled_from(PIECES), max_size=40))
    def test_what_is_written_next_is_plain(self, pieces: list[bytes]) -> None:
        terminal, fresh = Emulator(20, 8), Emulator(20, 8)
        terminal.feed(b"".join(pieces) + RESTORE + CLEAR + b"lqk\r\n" * 9 + b"x")
        fresh.feed(b"lqk\r\n" * 9 + b"x")
        self.assertEqual(_drawn(terminal), _drawn(fresh))

    def test_text_and_cursor_stay(self) -> None:
        terminal = Emulator(20, 8)
        terminal.feed(b"one\r\n\x1b[31mtwo\x1b[3;5r\x1b[2;3H\x1b[?1000h\x1b[?25l")
        before = terminal.contents(), terminal.cursor
        terminal.feed(RESTORE)
        self.assertEqual((terminal.contents(), terminal.cursor), before)

    def test_the_screen_below_the_alternate_one_comes_back(self) -> None:
        for mode in (47, 1047, 1049):
            terminal = Emulator(20, 8)
            terminal.feed(b"shell$ agent\r\n\x1b[?%dh\x1b[2J\x1b[Hfull screen\x1b[>1u\x1b[?1003h" % mode)
            terminal.feed(RESTORE)
            self.assertEqual(terminal.contents(), "shell$ agent", mode)
            self.assertEqual(terminal.cursor[1] == 1, mode == 1049, mode)

    def test_a_sequence_under_way_is_ended(self) -> None:
        for begun in (b"\x1b[3", b"\x1b]0;title", b"\x1bPq#0", b"\x1b_G", b"\x1b", b"\xe4\xb8"):
            terminal = Emulator(20, 8)
            terminal.feed(b"a" + begun + RESTORE + b"b")
            self.assertEqual(terminal.contents().replace("�", ""), "ab", begun)

    def test_another_emulator_agrees(self) -> None:
        """It knows fewer sequences, and must show none of the others as text."""
        screen = pyte.Screen(20, 8)
        stream = pyte.ByteStream(screen)
        stream.feed(b"text\x1b[4h\x1b[?25l\x1b[1;31m\x1b(0\x1b[?6h")
        stream.feed(RESTORE.replace(b"\x1b[!p", b"").replace(b"\x1b[>4;0m", b"").replace(b"\x1b[<99u", b"") + CLEAR)
        stream.feed(b"q")
        self.assertEqual((screen.display[0].rstrip(), screen.cursor.hidden), ("q", False))
        self.assertEqual(screen.buffer[0][0].fg, "default")

    def test_nothing_in_it_is_a_question(self) -> None:
        answers: list[bytes] = []
        terminal = Terminal(20, 8)
        terminal.on_reply(answers.append)
        terminal.feed(RESTORE + CLEAR)
        self.assertEqual(answers, [])


class TmuxTests(SynchronousTestCase):
    """A terminal that remembers where the cursor was when a program last entered its own screen."""

    def test_the_cursor_stays(self) -> None:
        product = Product()
        self.addCleanup(product.close)
        terminal = Tmux(product)
        self.addCleanup(terminal.close)
        (product.person / "bytes").write_bytes(b"\x1b[?1049h\x1b[?1049lone\r\ntwo\r\n" + RESTORE + b"three\r\n")
        terminal.type(f"clear; cat {product.person}/bytes")
        self.assertRegex(terminal.wait("^three$"), "(?m)^one\ntwo\nthree$")


def _drawn(terminal: Emulator) -> bytes:
    drawn = draw_cells(terminal) + terminal.draw(DrawnPart.CURSOR)
    return drawn.replace(b"\x1b(B", b"").replace(b"\x1b)B", b"")
