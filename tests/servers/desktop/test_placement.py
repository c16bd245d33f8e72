"""Where elements are on the screen, by what their application and the display say of its windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.model import Bounds, Window
from ironcurtain.servers.desktop.placement import Frame, shifts

AT = Bounds(300, 200, 400, 100)


def window(bounds: Bounds, title: str = "x", content: Bounds | None = None) -> Window:
    return Window("1", "app", 7, title, bounds, False, content)


def frame(x: int, y: int, width: int, height: int, name: str = "x") -> Frame:
    return Frame(Bounds(x, y, width, height), name)


class ShiftTests(SynchronousTestCase):
    def test_window_that_knows_its_place_is_left_there(self) -> None:
        for told in (frame(300, 200, 400, 100), frame(299, 180, 402, 125)):  # without and with a frame around it
            self.assertEqual(shifts([told], [window(AT)], True), [(0, 0)])

    def test_menus_of_an_application_that_knows_its_place_are_left_there(self) -> None:
        told = [frame(300, 200, 400, 100), frame(320, 220, 80, 60, "")]
        self.assertEqual(shifts(told, [window(AT)], True), [(0, 0), (0, 0)])

    def test_window_of_an_application_that_does_not_know_is_where_the_display_says(self) -> None:
        for on_screen in (True, False):
            self.assertEqual(shifts([frame(0, 0, 400, 100)], [window(AT)], on_screen), [(300, 200)])
            self.assertEqual(shifts([frame(7, 3, 400, 100)], [window(AT)], on_screen), [(293, 197)])

    def test_even_rim_and_known_shadow_lie_around_what_is_told(self) -> None:
        self.assertEqual(shifts([frame(0, 0, 390, 90)], [window(AT)], True), [(305, 205)])
        inner = Bounds(310, 205, 380, 85)
        self.assertEqual(shifts([frame(0, 0, 380, 85)], [window(AT, content=inner)], True), [(310, 205)])
        self.assertEqual(shifts([frame(0, 0, 380, 85)], [window(AT)], True), [None])

    def test_of_equal_windows_the_title_decides_if_it_can(self) -> None:
        other = Bounds(0, 300, 400, 100)
        told = [frame(0, 0, 400, 100, "a"), frame(0, 0, 400, 100, "b"), frame(0, 0, 400, 100, "c")]
        found = shifts(told, [window(AT, "a"), window(other, "b"), window(other, "b")], False)
        self.assertEqual(found, [(300, 200), None, None])

    def test_nobody_tells_without_a_window_that_fits(self) -> None:
        self.assertEqual(shifts([frame(0, 0, 640, 480)], [window(AT)], False), [None])
        self.assertEqual(shifts([frame(0, 0, 400, 100)], [], True), [None])

    @given(*(st.integers(-100, 2000) for _ in range(2)), *(st.integers(1, 2000) for _ in range(2)))
    def test_what_is_told_in_the_window_comes_to_lie_in_the_window(
        self, x: int, y: int, width: int, height: int
    ) -> None:
        shift = shifts([frame(0, 0, width, height)], [window(Bounds(x, y, width, height))], False)
        self.assertEqual(shift, [(x, y)])
