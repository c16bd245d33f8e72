"""Who comes late sees what one sees who was there all the time."""

from __future__ import annotations

import resource
from itertools import pairwise
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyghostty import Terminal  # type: ignore[import-untyped, unused-ignore]
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.ghostty import Emulator
from ironcurtain.terminal.ghostty_cells import _cell, style_record
from ironcurtain.terminal.ghostty_library import check, ffi, lib
from ironcurtain.terminal.ghostty_screen import GhosttyScreen
from tests.terminal.corpus import LINE_DRAWING, PIECES, WIDE
from tests.terminal.test_ring import QUERIES

MODES = (1, 5, 6, 7, 9, 25, 45, 66, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048)

ATTRIBUTES = (
    "bold",
    "faint",
    "italic",
    "blink",
    "inverse",
    "invisible",
    "strikethrough",
    "overline",
    "underline",
)

pieces = st.lists(st.sampled_from(PIECES), max_size=40)
outputs = st.one_of(
    *(
        st.lists(st.sampled_from([piece for piece in PIECES if piece not in without]), max_size=40)
        for without in (WIDE, LINE_DRAWING)  # the emulator gives wide letters in the other set a width that none has
    )
)


def style_of(terminal: Emulator, column: int, row: int) -> dict[str, object]:
    """:returns: attributes and colours of a cell."""
    record = style_record(terminal.style_at(column, row))
    colours = {name: colour(getattr(record, name)) for name in ("fg_color", "bg_color", "underline_color")}
    return {name: getattr(record, name) for name in ATTRIBUTES} | colours


def colour(found: Any) -> object:
    """:returns: number or parts; ``None`` for the terminal's own."""
    if found.tag == lib.GHOSTTY_STYLE_COLOR_PALETTE:
        return "palette", found.value.palette
    rgb = found.value.rgb
    return ("rgb", (rgb.r, rgb.g, rgb.b)) if found.tag == lib.GHOSTTY_STYLE_COLOR_RGB else None


PLAIN_STYLE = style_of(Emulator(2, 1), 0, 0)


def cells(terminal: Emulator) -> list[tuple[str, object]]:
    """:returns: for each cell its character, its style, and, where it has no text, its background."""
    columns, rows = terminal.size
    return [cell(terminal, column, row) for row in range(rows) for column in range(columns)]


def cell(terminal: Emulator, column: int, row: int) -> tuple[str, object]:
    """:returns: the same of one cell."""
    style, place = style_of(terminal, column, row), terminal.place(column, row)
    packed, letters, used = ffi.new("GhosttyCell*"), ffi.new("uint32_t[16]"), ffi.new("size_t*")
    check(lib.ghostty_grid_ref_cell(place, packed), "cell")
    if lib.ghostty_grid_ref_graphemes(place, letters, 16, used) or not used[0]:
        return " ", background(packed[0]) or {**style, "underline_color": None}
    text = "".join(chr(letter) for letter in letters[0 : used[0]])
    if text == " " and style == {**PLAIN_STYLE, "bg_color": style["bg_color"]}:
        return " ", style["bg_color"] or PLAIN_STYLE
    return text, style


def background(packed: int) -> object:
    """:returns: the colour of a cell that is nothing but that."""
    parameters = _cell(packed).look.background
    if parameters.startswith(b"48;5;"):
        return "palette", int(parameters[5:])
    return ("rgb", tuple(map(int, parameters[5:].split(b";")))) if parameters else None


def look(terminal: Emulator) -> dict[str, object]:
    """:returns: all that can be seen of a terminal, or felt."""
    return {
        "cells": cells(terminal),
        "text": terminal.history_and_screen()[1],
        "cursor": terminal.cursor,
        "at the margin": terminal.get("cursor_pending_wrap", "bool"),
        "shape": terminal.cursor_shape(),
        "kitty": terminal.get("kitty_keyboard_flags", "uint8_t"),
        "modes": [number for number in MODES if terminal.mode(number)],
        "insert": (terminal.mode(4, ansi=True), terminal.mode(20, ansi=True)),
        "alternate": terminal.alternate,
        "title": terminal.title,
    }


def after(terminal: Emulator, more: bytes) -> dict[str, object]:
    """:returns: how it looks once the program has written more."""
    other = terminal.copy()
    other.feed(more)
    return look(other)


class RedrawTests(SynchronousTestCase):
    """A viewer's terminal after a redraw, and the one that saw everything."""

    def setUp(self) -> None:
        self.screen = GhosttyScreen(20, 8)

    def redrawn(self, before: bytes = b"", size: tuple[int, int] = (20, 8), history: bool = False) -> Emulator:
        viewer = Emulator(*size)
        viewer.feed(before)
        viewer.feed(self.screen.redraw(*size, history))
        return viewer

    def at_an_empty_margin(self) -> bool:
        """Whether the next letter wraps with none at the margin: a change of screens (47) brings that about."""
        terminal = self.the_emulator()
        return bool(terminal.get("cursor_pending_wrap", "bool")) and cell(terminal, *terminal.cursor)[0] == " "

    def continues_in_an_empty_row(self) -> bool:
        """Whether a row that continues is above an empty one, as after an insertion: a redraw ends its line there."""
        rows = pairwise(self.the_emulator().rows())
        return any(row.wraps and not below.cells[0].letter for row, below in rows)

    def the_emulator(self) -> Emulator:
        return self.screen._emulator

    @example(output=[b"\x1b[48;5;20m", b"\x1b[5;10H", b"\x1b[K"], before=[])
    @example(output=[b"\x1b]0;title\x07", b"\x1bc"], before=[b"\x1b]0;title\x07"])
    @example(output=[b"\x1b[?1047h"], before=[b"\x1b[?47h", b"\x1b[>1u", b"\x1b[?47l"])  # flags of the other screen
    @given(outputs, pieces)
    def test_it_looks_the_same(self, output: list[bytes], before: list[bytes]) -> None:
        self.screen = GhosttyScreen(20, 8)
        for piece in output:
            self.screen.feed(piece)
        assume(not self.at_an_empty_margin())
        viewer = self.redrawn(b"".join(before))
        if not self.the_emulator().title:  # a reset (ESC c) also clears it
            viewer.feed(b"\x1b]0;\x07")  # a redraw without a title leaves the viewer's
        self.assertEqual(look(viewer), look(self.the_emulator()))

    @example(output=[b"x" * 50, b"\x1b[1J", b"hello"], more=b"\x1b8Q")
    @given(outputs, st.sampled_from((b"Q", b"\x1b8Q", b"\r\nQ", b"\x1b[?1049lQ", b"\x1b[?47lQ", b"\tQ")))
    def test_and_goes_on_the_same(self, output: list[bytes], more: bytes) -> None:
        self.screen = GhosttyScreen(20, 8)
        for piece in output:
            self.screen.feed(piece)
        assume(not self.at_an_empty_margin() and not self.continues_in_an_empty_row())
        viewer = self.redrawn()
        wanted, got = after(self.the_emulator(), more), after(viewer, more)
        if self.the_emulator().mode(6):  # whether lines count from the margin is not saved with the cursor
            wanted, got = after(self.the_emulator(), b"Q"), after(viewer, b"Q")
        # Erased rows can still be one line for who copies them, which nothing shows and no output brings about.
        unknown = {"modes": 0, "text": ""}
        self.assertEqual({**got, **unknown}, {**wanted, **unknown})

    def test_long_lines_stay_one_line_for_who_copies_or_resizes_them(self) -> None:
        for text in ("x" * 50, "x" * 19 + "中" + "y" * 30, "x" * 18 + "中" + "y" * 30, "x" * 20 + " " * 15 + "y" * 10):
            self.screen = GhosttyScreen(20, 8)
            self.screen.feed(text.encode())
            self.assertEqual(self.redrawn().contents(), text)

    def test_each_screen_has_a_saved_cursor(self) -> None:
        for switch in (47, 1047, 1049):
            self.screen = GhosttyScreen(20, 8)
            self.screen.feed(b"\x1b[3;3H\x1b7\x1b[Hbelow\x1b[?%dh\x1b[5;5H\x1b7\x1b[Habove" % switch)
            viewer = self.redrawn()
            for more in (b"\x1b8x", b"\x1b[?%dl\x1b8y" % switch):
                for terminal in (viewer, self.screen):
                    terminal.feed(more)
                self.assertEqual(look(viewer), look(self.the_emulator()), (switch, more))

    def test_a_sequence_or_character_may_be_under_way(self) -> None:
        for whole in (b"\x1b[31mx", b"\x1b]0;title\x07x", "中x".encode(), b"\x1bPq#0\x1b\\x", b"\x1b_Ga=T\x1b\\x"):
            for cut in range(len(whole)):
                self.screen = GhosttyScreen(20, 8)
                self.screen.feed(b"a" + whole[:cut])
                self.assertEqual(self.screen.between, cut in (0, len(whole) - 1), (whole, cut))
                viewer = self.redrawn()
                for terminal in (viewer, self.screen):
                    terminal.feed(whole[cut:])
                self.assertEqual(look(viewer), look(self.the_emulator()), (whole, cut))

    def test_lines_that_scrolled_off_come_too(self) -> None:
        self.screen.feed(b"".join(b"\x1b[3%dmline %d\r\n" % (i % 8, i) for i in range(30)) + b"y" * 50 + b"\x1b[2;2H")
        viewer = self.redrawn(history=True)
        self.assertEqual(look(viewer), look(self.the_emulator()))
        self.assertEqual(viewer.contents().splitlines()[:22], [f"line {i}" for i in range(22)])
        self.assertNotIn("line 3\n", self.redrawn().contents())

    def test_so_many_of_them_and_no_new_memory_for_more(self) -> None:
        self.screen = GhosttyScreen(200, 50)
        lines = b"".join(b"\x1b[3%dm%6d\x1b[0m a line of a build\r\n" % (i % 8, i) for i in range(5000))
        self.screen.feed(lines)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self.screen.feed(lines)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, 500)  # 3700 if lines are counted
        kept = self.redrawn(size=(200, 50), history=True).contents().splitlines()
        self.assertEqual(kept[-1], "  4999 a line of a build")
        self.assertTrue(500 < len(kept) < 1000, len(kept))

    def test_under_an_alternate_screen_too(self) -> None:
        self.screen.feed(b"".join(b"line %d\r\n" % i for i in range(30)) + b"$ vi\r\n\x1b[?1049h\x1b[Hfile")
        viewer = self.redrawn(history=True)
        self.assertEqual(viewer.contents(), "file")
        viewer.feed(b"\x1b[?1049l")
        self.assertIn("line 3\nline 4\n", viewer.contents())
        self.assertTrue(viewer.contents().endswith("$ vi"))

    def test_a_larger_terminal_has_it_in_its_corner(self) -> None:
        self.screen.feed(b"".join(b"line %d\r\n" % i for i in range(30)) + b"end")
        viewer = self.redrawn(size=(40, 20), history=True)
        _, expected = self.the_emulator().history_and_screen()
        self.assertEqual((viewer.history_and_screen(), viewer.cursor), (("", expected), self.the_emulator().cursor))

    def test_a_smaller_one_has_lines_wrapped(self) -> None:
        self.screen.feed(b"0123456789abcdef\r\nx")
        viewer = self.redrawn(size=(10, 4))
        rows = ["".join(cell.shown for cell in row.cells).rstrip() for row in viewer.rows()]
        self.assertEqual(rows, ["0123456789", "abcdef", "x", ""])
        self.assertEqual(self.the_emulator().size, (20, 8))

    def test_nothing_is_asked_again(self) -> None:
        answers: list[bytes] = []
        for query in QUERIES:
            self.screen.feed(b"a" + query + b"\x1b[?1049h" + query + b"b")
        viewer = Terminal(20, 8)
        viewer.on_reply(answers.append)
        viewer.feed(self.screen.redraw(20, 8, True))
        self.assertEqual(answers, [])

    def test_a_picture_under_way_costs_only_exactness(self) -> None:
        self.screen.feed(b"text\x1bPq" + b"x" * 2_000_000)
        self.assertIn(b"text", self.screen.redraw(20, 8))
        self.screen.feed(b"\x1b\\")
        self.assertEqual(look(self.redrawn()), look(self.the_emulator()))

    def test_text_in_a_title_is_only_text(self) -> None:
        self.screen.feed(b"\x1b]0;a\x01b" + "é".encode() * 200 + b"\x07")
        title = self.redrawn().title.decode()
        self.assertRegex(title, "^abé+$")
        self.assertLess(len(title), 110)

    @given(st.lists(st.binary(max_size=40)), st.tuples(st.integers(-5, 2000), st.integers(-5, 2000)))
    def test_no_bytes_and_no_size_break_it(self, output: list[bytes], size: tuple[int, int]) -> None:
        screen = GhosttyScreen(20, 8)
        for data in output:
            screen.feed(data)
            screen.resize(*size)
        screen.redraw(20, 8, True)
        screen.text()


class TextTests(SynchronousTestCase):
    """What is found by who searches the screen."""

    def test_wrapped_and_coloured(self) -> None:
        screen = GhosttyScreen(10, 4)
        screen.feed(b"12345\x1b[31m67LOOP\x1b[0m_COMPLETE\r\n")
        self.assertIn("LOOP_COMPLETE", screen.text())

    def test_scrolled_off(self) -> None:
        screen = GhosttyScreen(20, 4)
        screen.feed(b"LOOP_COMPLETE\r\n" + b"x\r\n" * 50)
        self.assertIn("LOOP_COMPLETE", screen.text())

    def test_on_either_screen(self) -> None:
        screen = GhosttyScreen(10, 4)
        screen.feed(b"below\x1b[?1049h\x1b[H12345LOOP_COMPLETE")
        self.assertIn("LOOP_COMPLETE", screen.text())
        self.assertIn("below", screen.text())
        screen.feed(b"\x1bPq" + b"x" * 2_000_000)
        self.assertIn("LOOP_COMPLETE", screen.text())
