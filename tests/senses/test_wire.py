from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.senses.model import COUNT_LIMIT, Box, Line
from ironcurtain.senses.wire import MakePicture, ReadText, Transcribe, read_order, read_table, written_order

HEAD = b'{"factor":2,"x":100,"y":10}\n'
TABLE = """level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext
1\t1\t0\t0\t0\t0\t0\t0\t640\t480\t-1\t
4\t1\t1\t1\t1\t0\t20\t40\t200\t30\t-1\t
5\t1\t1\t1\t1\t1\t20\t40\t60\t30\t90.0\tPress
5\t1\t1\t1\t1\t2\t100\t44\t120\t20\t96.0\tOK
5\t1\t1\t1\t2\t1\t20\t80\t40\t20\t50.0\tYes
5\t1\t1\t1\t3\t1\t20\t80\t40\t20\t50.0\t\x20
"""


class OrderTests(SynchronousTestCase):
    def test_order_and_data_come_back(self) -> None:
        for order in (MakePicture(Box(1, 2, 3, 4), (Box(0, 0, 1, 1),)), ReadText("/usr/bin/tesseract"), Transcribe()):
            self.assertEqual(read_order(written_order(order, b"a\nb\0")), (order, b"a\nb\0"))

    @given(st.binary())
    def test_anything_else_is_refused(self, given: bytes) -> None:
        with self.assertRaises(UsageError):
            read_order(b"x" + given)


class TableTests(SynchronousTestCase):
    def test_words_of_a_line_are_joined_in_pixels_of_the_original(self) -> None:
        first, second = read_table(HEAD + TABLE.encode(), 100)
        self.assertEqual(first, Line("Press OK", Box(110, 30, 100, 15), 0.93))
        self.assertEqual(second, Line("Yes", Box(110, 50, 20, 10), 0.5))

    def test_long_line_is_cut(self) -> None:
        self.assertEqual(read_table(HEAD + TABLE.encode(), 4)[0].text, "Pres")

    def test_number_of_lines_is_bounded(self) -> None:
        rows = "".join(f"5\t1\t1\t1\t{number}\t1\t0\t0\t1\t1\t50\tx\n" for number in range(COUNT_LIMIT + 5))
        self.assertEqual(len(read_table(HEAD + rows.encode(), 100)), COUNT_LIMIT)

    def test_wrong_numbers_are_refused(self) -> None:
        for conf, left in (("101", "1"), ("-1", "1"), ("nan", "1"), ("50", "1e3"), ("50", "")):
            with self.assertRaisesRegex(UsageError, "table of words is wrong"):
                read_table(HEAD + f"5\t1\t1\t1\t1\t1\t{left}\t1\t1\t1\t{conf}\tx\n".encode(), 100)

    @given(st.lists(st.text(st.sampled_from("5\t\n1.-xé") | st.characters(codec="utf-8"))))
    def test_any_table_gives_lines_or_a_refusal(self, parts: list[str]) -> None:
        with contextlib.suppress(UsageError):
            for line in read_table(HEAD + "\t".join(parts).encode(), 50):
                self.assertLessEqual(len(line.text), 50)
                self.assertTrue(0 <= line.confidence <= 1)

    @given(st.binary())
    def test_any_bytes_give_lines_or_a_refusal(self, reply: bytes) -> None:
        with contextlib.suppress(UsageError):
            read_table(reply, 50)
