from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.watchers.decision import CHAIN_SECONDS, LONGEST_WAIT, MOST_EVENTS, Chains, Decision
from ironcurtain.watchers.model import Kind
from ironcurtain.watchers.record import HOUR, LINGER_SECONDS, Record
from tests.watchers.doubles import NOW, event, make_watcher

STEPS = st.lists(
    st.tuples(st.sampled_from(("event", "look", "end")), st.floats(0, 400, allow_nan=False)), min_size=1, max_size=200
)


class DecisionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.record = Record()
        self.decision = Decision(make_watcher(debounce=2.0, max_per_hour=2))

    def begin(self, now: float) -> None:
        self.record.begin(now, 1)

    @given(STEPS, st.integers(1, 5), st.floats(0, 60))
    def test_runs_are_single_limited_and_debounced(
        self, steps: list[tuple[str, float]], most: int, debounce: float
    ) -> None:
        decision, record = Decision(make_watcher(debounce=debounce, max_per_hour=most)), Record()
        now, runs, last, running = NOW, list[float](), 0.0, False
        for step, passed in steps:
            now += passed
            if step == "event" and decision.add(event(), now):
                self.assertFalse(running)
                last = now
            elif step == "look" and decision.take(record, now) is not None:
                self.assertFalse(running)
                self.assertTrue(now - last >= debounce - 1e-6 or now - last <= debounce * LONGEST_WAIT)
                record.begin(now, 1)
                runs.append(now)
                running = True
                self.assertLessEqual(sum(now - HOUR < at for at in runs), most)
            elif step == "end" and running:
                record.end(now, "")
                decision.ended(now)
                running = False

    def test_events_within_the_debounce_are_one_run(self) -> None:
        self.decision.add(event("a"), NOW)
        self.decision.add(event("b"), NOW + 1.5)
        self.assertEqual(self.decision.due(self.record, NOW + 1.5), NOW + 3.5)
        self.assertIsNone(self.decision.take(self.record, NOW + 3.4))
        batch = self.decision.take(self.record, NOW + 3.5)
        assert batch is not None
        self.assertEqual([each.data["line"] for each in batch.events], ["a", "b"])

    def test_clock_that_is_set_back_meanwhile_puts_a_run_off_by_the_debounce(self) -> None:
        self.decision.add(event("a"), NOW)
        past = NOW - 365 * 24 * HOUR
        self.assertEqual(self.decision.due(self.record, past), past + 2.0)
        self.assertEqual(self.decision.due(self.record, past + 1.0), past + 2.0)
        self.assertIsNotNone(self.decision.take(self.record, past + 2.0))

    def test_endless_events_do_not_put_a_run_off_for_ever(self) -> None:
        for second in range(20):
            self.decision.add(event(str(second)), NOW + second)
        self.assertEqual(self.decision.due(self.record, NOW + 20), NOW + 20)

    def test_storm_keeps_a_bounded_number_of_events(self) -> None:
        for number in range(10_000):
            self.decision.add(event(str(number)), NOW)
        batch = self.decision.take(self.record, NOW + 2)
        assert batch is not None
        self.assertEqual((len(batch.events), batch.more), (MOST_EVENTS, 10_000 - MOST_EVENTS))

    def test_equal_state_is_one_event(self) -> None:
        self.assertTrue(self.decision.add(event("a", "d1"), NOW))
        self.assertTrue(self.decision.add(event("a", "d1"), NOW + 1))
        self.assertEqual(self.decision.waiting, 1)

    def test_third_run_of_an_hour_waits(self) -> None:
        self.begin(NOW)
        self.begin(NOW + 60)
        self.decision.add(event(), NOW + 120)
        self.assertEqual(self.decision.due(self.record, NOW + 130), NOW + HOUR)

    def test_clock_that_was_set_back_stops_nothing(self) -> None:
        self.begin(NOW + 9 * HOUR)
        self.begin(NOW + 9 * HOUR)
        self.decision.add(event(), NOW)
        self.assertEqual(self.decision.due(self.record, NOW), NOW + 2)

    def test_paused_watcher_does_not_run(self) -> None:
        self.decision.add(event(), NOW)
        self.record.pause(NOW, "why")
        self.assertIsNone(self.decision.due(self.record, NOW + 10))
        self.assertIsNone(self.decision.take(self.record, NOW + 10, at_once=True))

    def test_events_during_and_right_after_its_own_run_are_dropped(self) -> None:
        self.decision.add(event(), NOW)
        self.assertIsNotNone(self.decision.take(self.record, NOW + 2))
        self.assertFalse(self.decision.add(event(), NOW + 3))
        self.decision.ended(NOW + 5)
        self.assertFalse(self.decision.add(event(), NOW + 5 + LINGER_SECONDS / 2))
        self.assertTrue(self.decision.add(event(), NOW + 5 + LINGER_SECONDS))
        self.assertEqual(self.decision.dropped, 2)

    def test_state_found_after_its_own_run_was_compared_already(self) -> None:
        self.decision.ended(NOW)
        self.assertTrue(self.decision.add(event(digest="d1"), NOW + 0.1))


class ChainTests(SynchronousTestCase):
    def test_watchers_that_set_one_another_off_stop(self) -> None:
        chains = Chains()
        chains.began(("a",))
        first = chains.current("b", NOW)
        self.assertEqual(first, ("a",))
        decision = Decision(make_watcher(name="b", debounce=0.0))
        self.assertTrue(decision.add(event(), NOW, first))
        batch = decision.take(Record(), NOW)
        assert batch is not None
        self.assertEqual(batch.chain, ("a", "b"))
        chains.began(batch.chain)
        chains.ended("a", NOW)
        self.assertFalse(Decision(make_watcher(name="a")).add(event(), NOW, chains.current("a", NOW)))

    def test_of_chains_as_long_the_one_that_a_watcher_is_in_counts(self) -> None:
        for begun in ((("c", "d"), ("a", "b")), (("a", "b"), ("c", "d")), (("c", "d", "e"), ("a", "b"))):
            chains = Chains()
            for chain in begun:
                chains.began(chain)
            self.assertEqual(chains.current("a", NOW), ("a", "b"))

    def test_chain_has_a_limit(self) -> None:
        self.assertTrue(Decision(make_watcher(name="c")).add(event(), NOW, ("a", "b")))
        self.assertFalse(Decision(make_watcher(name="d")).add(event(), NOW, ("a", "b", "c")))

    def test_run_is_no_cause_a_while_later(self) -> None:
        chains = Chains()
        chains.began(("a",))
        chains.ended("a", NOW)
        self.assertEqual(chains.current("b", NOW + CHAIN_SECONDS - 0.1), ("a",))
        self.assertEqual(chains.current("b", NOW + CHAIN_SECONDS), ())

    def test_schedule_has_no_cause_but_the_clock(self) -> None:
        decision = Decision(make_watcher(name="a", trigger=Kind.SCHEDULE))
        self.assertTrue(decision.add(event(), NOW, ("a", "b", "c")))
