"""Ctrl-C and Ctrl-\\ to a program."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.loop.interrupts import WINDOW_SECONDS, Action, Interrupts


class InterruptTests(SynchronousTestCase):
    """What each press means."""

    def presses(self, *times: float) -> list[Action]:
        interrupts = Interrupts()
        return [interrupts.ctrl_c(now) for now in times]

    def test_one_is_the_programs(self) -> None:
        self.assertEqual(self.presses(0.0), [Action.FORWARD])

    def test_two_within_the_window_end_it(self) -> None:
        self.assertEqual(self.presses(5.0, 5.99), [Action.FORWARD, Action.TERMINATE])

    def test_the_window_closes(self) -> None:
        self.assertEqual(self.presses(5.0, 6.0), [Action.FORWARD, Action.FORWARD])

    def test_after_the_window_it_starts_afresh(self) -> None:
        self.assertEqual(self.presses(5.0, 6.5, 7.0), [Action.FORWARD, Action.FORWARD, Action.TERMINATE])

    def test_once_is_enough(self) -> None:
        self.assertEqual(self.presses(0.0, 0.5, 0.6, 9.0)[2:], [Action.SWALLOW, Action.SWALLOW])

    def test_ctrl_backslash_kills_in_every_state(self) -> None:
        for before in ((), (0.0,), (0.0, 0.5)):
            interrupts = Interrupts()
            for now in before:
                interrupts.ctrl_c(now)
            self.assertEqual(interrupts.ctrl_backslash(), Action.KILL)
            self.assertEqual(interrupts.ctrl_backslash(), Action.SWALLOW)
            self.assertEqual(interrupts.ctrl_c(50.0), Action.SWALLOW)

    @given(st.lists(st.integers(math.ceil(WINDOW_SECONDS), 1_000_000)))  # sums of floats are rounded
    def test_slow_presses_never_end_it(self, gaps: list[int]) -> None:
        interrupts, now = Interrupts(), 0.0
        for gap in gaps:
            now += gap
            self.assertEqual(interrupts.ctrl_c(now), Action.FORWARD)
