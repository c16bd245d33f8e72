from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.watchers.model import Event, Kind, Watcher
from ironcurtain.watchers.schedule_trigger import MOST_MISSED, ScheduleTrigger, times
from tests.watchers.doubles import make_watcher

START = 1_700_000_400.0
"""A multiple of ten minutes."""


class ScheduleTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.events, self.told = Clock(), list[Event](), list[tuple[float, int]]()
        self.shift = 0.0

    def begin(self, watcher: Watcher, ticked: float = 0.0) -> ScheduleTrigger:
        trigger = ScheduleTrigger(watcher, self.clock, self.now, ticked, lambda *told: self.told.append(told))
        self.addCleanup(trigger.stop)
        trigger.start(self.events.append)
        return trigger

    def now(self) -> float:
        """:returns: seconds since the epoch."""
        return START + 5 + self.clock.seconds() + self.shift

    def pass_time(self, seconds: float) -> None:
        """Let time pass in pieces of a second."""
        for _ in range(int(seconds)):
            self.clock.advance(1)

    def test_interval(self) -> None:
        self.begin(make_watcher(trigger=Kind.SCHEDULE, every=600.0))
        self.pass_time(594)
        self.assertEqual(self.events, [])
        self.pass_time(1)
        self.assertEqual(len(self.events), 1)
        self.pass_time(1200)
        self.assertEqual(len(self.events), 3)
        self.assertEqual(sum(missed for _, missed in self.told), 0)

    def test_cron(self) -> None:
        self.begin(make_watcher(trigger=Kind.SCHEDULE, cron="*/5 * * * *"))
        self.pass_time(600)
        self.assertEqual(len(self.events), 2)

    def test_missed_times_are_counted_and_not_made_up_for(self) -> None:
        self.begin(make_watcher(trigger=Kind.SCHEDULE, every=600.0), ticked=START - 3001)
        self.assertEqual((self.told, self.events), ([(START + 5, 6)], []))

    def test_first_start_misses_nothing(self) -> None:
        self.begin(make_watcher(trigger=Kind.SCHEDULE, every=600.0))
        self.assertEqual(self.told, [(START + 5, 0)])

    def test_times_while_the_machine_slept_are_missed(self) -> None:
        self.begin(make_watcher(trigger=Kind.SCHEDULE, every=600.0))
        self.shift = 3000.0
        self.pass_time(60)
        self.assertEqual((self.told[-1][1], len(self.events)), (4, 1))
        self.shift += 300.0
        self.pass_time(60)
        self.assertEqual(len(self.events), 1)

    def test_clock_that_was_set_back(self) -> None:
        self.begin(make_watcher(trigger=Kind.SCHEDULE, every=600.0))
        self.shift = -86400.0
        self.pass_time(700)
        self.assertEqual(len(self.events), 1)

    def test_missed_times_are_bounded(self) -> None:
        watcher = make_watcher(trigger=Kind.SCHEDULE, every=10.0)
        self.assertEqual(len(times(watcher, 1.0, START)), MOST_MISSED)

    def test_nothing_is_left_after_the_end(self) -> None:
        self.begin(make_watcher(trigger=Kind.SCHEDULE, every=600.0)).stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
