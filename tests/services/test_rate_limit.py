from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.services.rate_limit import Pace


class PaceTests(SynchronousTestCase):
    def test_what_is_left_out_is_told_with_the_next(self) -> None:
        now = [0.5]
        pace = Pace(2, lambda: now[0])
        self.assertEqual([pace.take() for _ in range(5)], [0, 0, None, None, None])
        now[0] = 1.0
        self.assertEqual([pace.take(), pace.take(), pace.take()], [3, 0, None])

    @given(st.lists(st.integers(0, 5), max_size=50), st.integers(1, 5))
    def test_nothing_is_lost_and_no_second_has_more(self, seconds: list[int], most: int) -> None:
        times = iter(sorted(seconds))
        now = [0]
        pace = Pace(most, lambda: now[0])
        taken: dict[int, int] = {}
        told = through = 0
        for now[0] in times:
            if (out := pace.take()) is not None:
                told, through = told + out, through + 1
                taken[now[0]] = taken.get(now[0], 0) + 1
        self.assertLessEqual(max(taken.values(), default=0), most)
        self.assertLessEqual(told + through, len(seconds))
        now[0] = 6
        self.assertEqual(told + through + (pace.take() or 0), len(seconds))
