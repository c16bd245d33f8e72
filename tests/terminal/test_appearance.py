from __future__ import annotations

import re

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.sequences import FRESH, SHOWN_SEQUENCE_LIMIT, Appearance

COLUMNS, ROWS = 40, 10

HARMLESS = re.compile(
    r"[^\x00-\x1f\x7f-\x9f]|[\a\b\t\n\v\f\r\x0e\x0f]"
    r"|\x1b\[[\d;:]*[@A-IL-MPSTXZ`abd-gmr]|\x1b\[[012]?[JK]|\x1b\[[su]|\x1b\[\d* q|\x1b\[!p"
    r"|\x1b\[(?:4|20)(?:;(?:4|20))*[hl]"
    r"|\x1b\[\?(?:5|6|7|12|25|47|104[789])(?:;(?:5|6|7|12|25|47|104[789]))*[hl]"
    r"|\x1b[78DEHM]|\x1b#[34568]|\x1b[()][0AB]"
)
"""Everything that may come out, written down a second time."""

PIECES = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        (
            "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b_", "\x1b\\", "\a", "\x18", "\x9b", "\x9c", "\x90", "c", "\x1bc",
            "\x1b[c", "\x1b[6n", "\x1b[5n", "\x1b[>c", "\x1b[=c", "\x1bZ", "\x05", "\x1b[?6n", "\x1b[?1$p", "\x1b[18t",
            "\x1b[21t", "\x1b]52;c;QUFB\a", "\x1b]52;c;?\x1b\\", "\x1b]0;title\a", "\x1b]11;?\a", "\x1bP+q544e\x1b\\",
            "\x1b[?1000h", "\x1b[?2004h", "\x1b[>1u", "\x1b[?u", "\x1b[>4;2m", "\x1b[3J", "\x1b[5i", "\x1b[?25;1000;7l",
            "\x1b[31m", "\x1b[2J", "\x1b[5;7H", "\x1b[99999999999b", "\x1b[2;3r", "\x1b[\x07m", "8;1;1;1", "\x1b[!p",
        )
    ),
)  # fmt: skip


def shown(output: str, columns: int = COLUMNS, rows: int = ROWS) -> list[str]:
    """:returns: the lines of a terminal after some output."""
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(output)
    return list(screen.display)


class FilterTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.appearance = Appearance(COLUMNS, ROWS)

    def feed(self, *outputs: str) -> str:
        return "".join(map(self.appearance.feed, outputs))

    @given(st.lists(PIECES))
    def test_only_what_is_known_to_be_harmless_comes_out(self, pieces: list[str]) -> None:
        left = Appearance(COLUMNS, ROWS).feed("".join(pieces)).replace(FRESH, "")
        self.assertEqual(HARMLESS.sub("", left), "")

    @given(st.lists(PIECES), st.integers(1, 7))
    def test_any_slicing_gives_the_same(self, pieces: list[str], size: int) -> None:
        output = "".join(pieces)
        sliced = Appearance(COLUMNS, ROWS)
        slices = [output[i : i + size] for i in range(0, len(output), size)]
        self.assertEqual("".join(map(sliced.feed, slices)), Appearance(COLUMNS, ROWS).feed(output))

    def test_what_is_for_the_program_s_own_terminal_alone(self) -> None:
        for output in (
            "\x1b[c", "\x1b[6n", "\x1b[?6n", "\x1bZ", "\x05", "\x1b[?25$p", "\x1b[14t", "\x1b[?u", "\x1bP$qm\x1b\\",
            "\x1b]52;c;cm0gLXJm\a", "\x1b]2;title\x1b\\", "\x1b]4;1;rgb:0/0/0\a", "\x1b]8;;http://example.org\a",
            "\x1b_Gf=100;AAAA\x1b\\", "\x1b]1337;File=:AAAA\a", "\x1b]9;note\a", "\x1b[?1003h", "\x1b[?2004h",
            "\x1b[>1u", "\x1b[>4;2m", "\x1b[?1h", "\x1b=", "\x1b[3J", "\x1b[5i", "\x1b[8;50;200t", "\x1b[?3h",
            "\x1b[1;1;1;1;1T",
        ):  # fmt: skip
            self.assertEqual(self.feed(f"a{output}b"), "ab", repr(output))

    def test_a_string_that_never_ends_shows_nothing(self) -> None:
        self.assertEqual(self.feed("a\x1b]52;c;", "QUJD" * 10_000, "\x1b", "\\b"), "ab")
        self.assertEqual(self.feed("\x1b]0;x\x1b[31mred"), "\x1b[31mred")

    def test_a_sequence_that_never_ends_is_text(self) -> None:
        self.assertEqual(self.feed("a\x1b["), "a")
        self.assertEqual(self.feed("1;" * SHOWN_SEQUENCE_LIMIT, "m"), "[" + "1;" * SHOWN_SEQUENCE_LIMIT + "m")

    def test_known_modes_stay_where_others_go(self) -> None:
        self.assertEqual(self.feed("\x1b[?1000;25;2026l\x1b[4;12h"), "\x1b[?25l\x1b[4h")

    def test_numbers_stay_small(self) -> None:
        self.assertEqual(self.feed("x\x1b[99999999b"), "x\x1b[9999b")

    def test_a_reset_empties_the_terminal_gently(self) -> None:
        self.assertEqual(self.feed("a\x1bcb"), f"a{FRESH}\x1b[1;{ROWS}rb")
        self.assertNotIn("\x1bc", FRESH)

    @settings(deadline=None)
    @given(
        st.lists(
            st.one_of(
                st.text("ab é", max_size=9),
                st.sampled_from(("\r\n", "\n", "\b", "\x1b[K", "\x1b[J", "\x1b[2J", "\x1b[31m", "\x1bM", "\x1b[2;4r")),
                st.tuples(st.integers(1, ROWS), st.integers(1, COLUMNS)).map("\x1b[{0[0]};{0[1]}H".format),
                st.tuples(st.integers(1, 5), st.sampled_from("ABCDLMP@X")).map("\x1b[{0[0]}{0[1]}".format),
                st.sampled_from(("\x1b]0;t\a", "\x1b[c", "\x1b[?2004h")),
            )
        )
    )
    def test_it_looks_as_it_did(self, pieces: list[str]) -> None:
        output = "".join(pieces)
        self.assertEqual(shown(Appearance(COLUMNS, ROWS).feed(output)), shown(output))


class SizeTests(SynchronousTestCase):
    """A terminal that is larger than the one for which the output was made."""

    def larger(self, output: str) -> list[str]:
        """:returns: the lines of the part that the output was made for."""
        lines = shown(f"\x1b[1;{ROWS}r{Appearance(COLUMNS, ROWS).feed(output)}", COLUMNS + 20, ROWS + 5)
        self.assertEqual([line.strip() for line in lines[ROWS:]], [""] * 5)
        return [line[:COLUMNS] for line in lines[:ROWS]]

    def test_what_scrolls_and_where_the_cursor_ends(self) -> None:
        for output in (
            "".join(f"line {n}\r\n" for n in range(30)),
            "\x1b[999;1Hlast\x1b[1;30Hx\x1b[99dy\x1b[2;99H",
            "\x1b[99999Bb\r\nc",
            "\x1b[3;99r\x1b[99;1Hbottom\r\nmore",
            "\x1b[r\x1b[99;1Hbottom\r\nmore",
            "a\x1b[99Gb",
        ):
            self.assertEqual(self.larger(output), shown(output), repr(output))

    def test_another_size(self) -> None:
        appearance = Appearance(COLUMNS, ROWS)
        self.assertEqual(appearance.resize(20, 5), "\x1b7\x1b[1;5r\x1b8")
        self.assertEqual(appearance.feed("\x1b[9;30H"), "\x1b[5;20H")
