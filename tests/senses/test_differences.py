from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.senses.differences import find_changes
from ironcurtain.senses.model import Box
from ironcurtain.senses.wire import CHANGES_LIMIT, FindChanges
from tests.senses.pictures import plain, png

WIDTH, HEIGHT = 320, 256


def drawn(*boxes: Box) -> bytes:
    """:returns: a white screen with black boxes."""
    rows = [bytearray(b"\xff" * WIDTH * 3) for _ in range(HEIGHT)]
    for box in boxes:
        for row in rows[box.y : box.y + box.height]:
            row[box.x * 3 : (box.x + box.width) * 3] = bytes(box.width * 3)
    return png(WIDTH, HEIGHT, b"".join(rows))


def changes(before: bytes, after: bytes, region: Box | None = None, hidden: tuple[Box, ...] = ()) -> list[Box]:
    return find_changes(FindChanges(len(before), region, hidden), before + after)


class ChangesTests(SynchronousTestCase):
    def test_equal_screens_have_no_changes(self) -> None:
        self.assertEqual(changes(drawn(Box(5, 5, 99, 99)), drawn(Box(5, 5, 99, 99))), [])

    def test_changes_are_found_apart_and_the_largest_first(self) -> None:
        after = drawn(Box(0, 0, 90, 20), Box(200, 100, 100, 100))
        self.assertEqual(changes(drawn(), after), [Box(192, 96, 128, 128), Box(0, 0, 96, 32)])

    def test_blinking_caret_is_not_noticed(self) -> None:
        self.assertEqual(changes(drawn(), drawn(Box(63, 40, 2, 18))), [])

    def test_only_the_region_counts_and_what_is_hidden_does_not(self) -> None:
        after, region = drawn(Box(0, 0, 90, 90)), Box(160, 0, 160, 256)
        self.assertEqual(changes(drawn(), after, region), [])
        self.assertEqual(changes(drawn(), after, hidden=(Box(0, 0, 96, 96),)), [])
        self.assertEqual(changes(drawn(), drawn(Box(200, 0, 99, 60)), region), [Box(192, 0, 128, 64)])

    def test_everything_has_changed_if_the_size_has(self) -> None:
        self.assertEqual(changes(plain(10, 10), plain(20, 30)), [Box(0, 0, 20, 30)])

    def test_number_of_changes_is_bounded(self) -> None:
        dots = [Box(x, y, 34, 34) for x in range(0, 2000, 140) for y in range(0, 1000, 140)]
        rows = [bytearray(b"\xff" * 2048 * 3) for _ in range(1024)]
        for box in dots:
            for row in rows[box.y : box.y + box.height]:
                row[box.x * 3 : (box.x + box.width) * 3] = bytes(box.width * 3)
        found = changes(plain(2048, 1024), png(2048, 1024, b"".join(rows)))
        self.assertEqual(len(found), CHANGES_LIMIT)

    @given(st.binary(max_size=40), st.integers(0, 2**40))
    def test_what_are_no_pictures_is_refused(self, data: bytes, size: int) -> None:
        with self.assertRaises(UsageError):
            find_changes(FindChanges(size), data)
