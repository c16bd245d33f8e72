"""Work that waits until less comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.backlog import BACKLOG_LIMIT, REST_SECONDS, SLICE, Backlog

TURN = 0.001


class Turns(Clock):
    """As the reactor does, it calls in the next turn what was put off by nothing."""

    def callLater(self, delay: float, callable: Callable[..., object], *args: object, **kw: object) -> IDelayedCall:
        return super().callLater(max(delay, TURN), callable, *args, **kw)


class BacklogTests(SynchronousTestCase):
    """Against a clock."""

    def setUp(self) -> None:
        self.clock, self.done = Turns(), list[int]()
        self.backlog = Backlog(self.clock)

    def add(self, number: int, size: int = 10) -> None:
        self.backlog.add(size, partial(self.done.append, number))

    def test_it_is_done_after_a_rest(self) -> None:
        self.add(1)
        self.clock.advance(REST_SECONDS * 0.9)
        self.assertEqual((self.done, bool(self.backlog)), ([], True))
        self.clock.advance(REST_SECONDS * 0.2)
        self.assertEqual((self.done, bool(self.backlog), self.backlog.size), ([1], False, 0))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_what_one_work_raises_is_not_the_others_loss(self) -> None:
        def fail() -> None:
            raise ValueError("bad")

        self.backlog.add(0, fail)
        self.add(1)
        self.assertRaises(ValueError, self.clock.advance, REST_SECONDS)
        self.clock.advance(REST_SECONDS)
        self.assertEqual(self.done, [1])

    def test_much_is_done_in_turns(self) -> None:
        for number in range(4):
            self.add(number, size=SLICE)
        self.clock.advance(REST_SECONDS)
        self.assertEqual(self.done, [0])
        self.clock.pump([TURN] * 3)
        self.assertEqual(self.done, [0, 1, 2, 3])

    def test_too_much_is_done_at_once(self) -> None:
        self.add(1, size=BACKLOG_LIMIT)
        self.add(2, size=1)
        self.add(3, size=BACKLOG_LIMIT)
        self.assertEqual((self.done, self.backlog.size), ([1, 2], BACKLOG_LIMIT))

    def test_all_of_it_at_once(self) -> None:
        self.add(1)
        self.add(2)
        self.backlog.settle()
        self.assertEqual((self.done, self.clock.getDelayedCalls()), ([1, 2], []))

    @given(st.lists(st.one_of(st.integers(0, 2 * SLICE), st.sampled_from(("settle", "rest", "wait")))))
    def test_the_order_is_kept_and_nothing_is_lost(self, steps: list[int | str]) -> None:
        self.setUp()
        added = 0
        for step in steps:
            if isinstance(step, int):
                self.add(added, size=step)
                added += 1
            elif step == "settle":
                self.backlog.settle()
            else:
                self.clock.advance(REST_SECONDS * (1 if step == "rest" else 0.5))
            self.assertEqual(self.done, list(range(len(self.done))))
            self.assertLessEqual(self.backlog.size, BACKLOG_LIMIT)
        self.backlog.settle()
        self.assertEqual(self.done, list(range(added)))
