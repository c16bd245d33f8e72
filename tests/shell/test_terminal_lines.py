from __future__ import annotations

import time
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.terminal_lines import TAIL, WIDEST, TerminalLines, as_read

PIECES = st.lists(
    st.sampled_from(
        [
            *(b"a", b"xyz", "\N{LATIN SMALL LETTER E WITH ACUTE}".encode(), "\u6f22".encode(), b"\r", b"\n", b"\r\n"),
            *(b"\b", b"\t", b"\x1b[K", b"\x1b[1K", b"\x1b[2K", b"\x1b[A", b"\x1b[3C", b"\x1b[2D", b"\x1b[P"),
            *(b"\x1b[4@", b"\x1b[J", b"\x1b[2J", b"\x1b[H", b"\x1b[31m", b"\x1b]0;title\x07", b"\x1bP1q\x1b\\"),
            *(b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b", b"\x9b", b"\xc2\x9b0m", b"\x00", b"\xff", b"\x1b[99999C"),
        ]
    ),
    max_size=40,
)


def shown(output: bytes, columns: int = 0) -> list[str]:
    lines = TerminalLines(200, columns)
    lines.feed(output)
    return lines.lines()


class TakeTests(SynchronousTestCase):
    """Lines that were not taken before."""

    def test_only_new_lines_come_and_the_one_with_the_cursor_again(self) -> None:
        lines = TerminalLines(200, 80)
        lines.feed(b"one\r\n$ # look\r\n")
        self.assertEqual(lines.take(), ["one", "$ # look"])
        self.assertEqual(lines.take(), [])
        lines.feed(b"$ ls")
        self.assertEqual(lines.take(), ["$ ls"])
        lines.feed(b" -l\r\na\r\n")
        self.assertEqual(lines.take(), ["$ ls -l", "a"])
        self.assertEqual(lines.lines(), ["one", "$ # look", "$ ls -l", "a"])

    def test_after_a_flood_the_last_ones_come(self) -> None:
        lines = TerminalLines(3, 80)
        for count in (5, 50, 5 * TAIL):
            lines.take()
            lines.feed(b"x\r\n" * count + b"end\r\n")
            self.assertEqual(lines.take(), ["x", "x", "end"])
            self.assertEqual(lines.take(), [])

    @given(PIECES, PIECES)
    def test_what_is_taken_is_the_end_of_all_lines(self, before: list[bytes], after: list[bytes]) -> None:
        lines = TerminalLines(200, 10)
        for piece in before:
            lines.feed(piece)
        lines.take()
        for piece in after:
            lines.feed(piece)
        new, whole = lines.take(), lines.lines()
        self.assertTrue(not new or whole[-1].endswith(new[-1]), (new, whole))
        self.assertLessEqual(len(new), len(whole))


class LineTests(SynchronousTestCase):
    def test_what_is_left_of_output(self) -> None:
        for output, expected in (
            (b"one\r\ntwo\r\n", ["one", "two"]),
            (b"one\n\ntwo", ["one", "", "two"]),
            (b"10%\r50%\r100%\r\n", ["100%"]),
            (b"working...\r\x1b[Kdone\r\n", ["done"]),
            (b"longer\rab\r\n", ["abnger"]),
            (b"ab\x1b[2Kcd", ["  cd"]),
            (b"abcd\x1b[2D\x1b[1K", ["   d"]),
            (b"abc\b \b\bX", ["aX"]),
            (b"abc\x1b[2D\x1b[P", ["ac"]),
            (b"abc\x1b[2D\x1b[2@X", ["aX bc"]),
            (b"abc\x1b[3D\x1b[2X", ["  c"]),
            (b"a\tb", ["a       b"]),
            (b"a\x1b[3Cb\x1b[1GX", ["X   b"]),
            (b"\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[m", ["red x"]),
            (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", ["alink"]),
            (b"\x1bPq#0\x1b\\a\x1b_G\x1b\\b\x1b^x\x1b\\c\x1bXs\x1b\\d", ["abcd"]),
            (b"\x1b(B\x1b=\x1b>\x1b[>1ua", ["a"]),
            ("\u009b31mred\u009d0;t\u009cx".encode(), ["redx"]),
            (b"a\x07\x00\x0e\x0fb", ["ab"]),
            (b"before\r\n\x1b[?1049h\x1b[Hvim\r\n~\x1b[?1049l\x1b[Kafter", ["before", "after"]),
            (b"\x1b[?1;47hx\x1b[?25h\x1b[?47lb", ["b"]),
            (b"1\r\n2\r\n\x1b[2A\x1b[Kone\r\n\x1b[Ktwo\r\n", ["one", "two"]),
            (b"a\r\nb\r\nc\x1b[2A\x1b[J", ["a"]),
            (b"$ ls\r\nx\r\n\x1b[H\x1b[2J$ ", ["$ ls", "x", "$"]),
            (b"\xff\xe6\xbc", ["\ufffd"]),
            ("\u6f22\u5b57\b\bX".encode(), ["\u6f22X"]),
        ):
            self.assertEqual(shown(output), expected, output)

    def test_a_line_that_is_wrapped_is_one_line(self) -> None:
        self.assertEqual(shown(b"$ echo abcdef\r\nx", 5), ["$ echo abcdef", "x"])
        # Readline, at the right margin, goes on in the next row by a space and a carriage return.
        self.assertEqual(shown(b"$ abc \rdef", 5), ["$ abcdef"])
        # And it goes up to the first row to write a wrapped line anew.
        self.assertEqual(shown(b"$ abcdef\r\x1b[A$ xyz \r\x1b[K", 5), ["$ xyz"])

    def test_the_width_may_change(self) -> None:
        lines = TerminalLines(200, 3)
        lines.feed(b"abcdef\r\n")
        lines.resize(80)
        lines.feed(b"ghijkl\rX")
        self.assertEqual(lines.lines(), ["abcdef", "Xhijkl"])

    def test_only_the_last_lines_are_kept(self) -> None:
        lines = TerminalLines(3)
        lines.feed(b"".join(b"%d\r\n" % number for number in range(1000)))
        self.assertEqual(lines.lines(), ["997", "998", "999"])
        lines.feed(b"1000")
        self.assertEqual(lines.lines(), ["998", "999", "1000"])
        none = TerminalLines(0)
        none.feed(b"a\r\nb")
        self.assertEqual(none.lines(), [])

    def test_a_line_without_end_is_bounded(self) -> None:
        lines = TerminalLines(3)
        lines.feed(b"x" * 20 * WIDEST)
        self.assertEqual([len(line) for line in lines.lines()], [7 * WIDEST])
        [line] = shown(b"\x1b[99999C\x1b[99999Cx")
        self.assertEqual(len(line), WIDEST)

    def test_of_a_flood_only_the_end_is_read(self) -> None:
        lines, chunk = TerminalLines(), b"\x1b[32m+\x1b[0m added\r\n" * 4096
        began = time.process_time()
        for _ in range(1000):  # 80 MB
            lines.feed(chunk)
        lines.feed(b"end")
        self.assertEqual(lines.lines(), ["+ added"] * 199 + ["end"])
        self.assertLess(time.process_time() - began, 10)  # reading all of it takes minutes

    def test_memory_is_bounded(self) -> None:
        for reads in (False, True):
            lines = TerminalLines(20, 80)
            tracemalloc.start()
            self.addCleanup(tracemalloc.stop)
            for number in range(500):
                lines.feed(b"%d and some more text of a line\r\n" % number * 100)
                if reads:
                    lines.lines()
            self.assertLess(tracemalloc.get_traced_memory()[0], 8 * TAIL if not reads else TAIL)

    def test_a_flood_may_change_the_screen(self) -> None:
        flood = b"x\r\n" * TAIL
        for output, expected in (
            (b"\x1b[?1049h" + flood, []),
            (b"\x1b[?1049h\x1b[?1049l" + flood, ["x"] * 200),
            (b"\x1b[?1049h" + flood + b"\x1b[?1049l\r\nback", ["back"]),
        ):
            lines = TerminalLines()
            for at in range(0, len(output), 4096):
                lines.feed(output[at : at + 4096])
            self.assertEqual([line for line in lines.lines() if line], expected)

    @given(PIECES, st.sampled_from([0, 1, 5, 80]), st.data())
    def test_any_slicing_gives_the_same(self, pieces: list[bytes], columns: int, data: st.DataObject) -> None:
        output = b"".join(pieces)
        whole = shown(output, columns)
        sliced = TerminalLines(200, columns)
        for cut in sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=6))):
            sliced.feed(output[:cut])
            sliced.lines()
            output = output[cut:]
        sliced.feed(output)
        self.assertEqual(sliced.lines(), whole)
        self.assertTrue(all(line.isprintable() for line in whole), whole)

    @given(st.binary(max_size=300), st.integers(0, 8), st.sampled_from([0, 1, 2, 80]))
    def test_anything_is_read(self, output: bytes, limit: int, columns: int) -> None:
        lines = TerminalLines(limit, columns)
        lines.feed(output)
        self.assertLessEqual(len(lines.lines()), limit)
        self.assertNotIn("\x1b", "".join(lines.lines()))


class OutputTests(SynchronousTestCase):
    def test_all_of_a_command_is_kept(self) -> None:
        output = b"".join(b"\x1b[1m%d\x1b[0m\r\n" % number for number in range(30_000))
        self.assertEqual(as_read(output), "\n".join(map(str, range(30_000))))
        self.assertEqual(as_read(b""), "")
        for columns in (0, 1, 80):
            long = 5 * TAIL + 1
            self.assertEqual(as_read(b"x" * long + b"\r\nend", columns), "x" * long + "\nend")
