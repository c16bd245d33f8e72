from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import SessionError, Unavailable
from ironcurtain.watchers.decision import Batch, Chains
from ironcurtain.watchers.model import Watcher
from ironcurtain.watchers.record import Records, Run
from ironcurtain.watchers.trigger import Trigger
from ironcurtain.watchers.watching import TURN_SECONDS, Declined, Surroundings, Watching
from tests.audit.doubles import scratch
from tests.watchers.doubles import NOW, ToldTrigger, event, make_watcher


class WatchingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.trigger, self.chains = Clock(), ToldTrigger(), Chains()
        self.records = Records(scratch(self) / "watchers")
        self.runs: list[tuple[Batch, Deferred[None]]] = []
        self.said: list[str] = []
        self.watching = self.make(make_watcher(max_per_hour=60))

    def make(self, watcher: Watcher, make_trigger: Callable[[Watcher], Trigger] | None = None) -> Watching:
        """:returns: what follows a watcher; it is stopped after the test."""
        around = Surroundings(
            make_trigger or (lambda _: self.trigger),
            self.records,
            self.chains,
            self.clock,
            lambda: NOW + self.clock.seconds(),
            self.run_agent,
            self.said.append,
        )
        made = Watching(watcher, around)
        self.addCleanup(lambda: self.stop(made))
        return made

    def stop(self, watching: Watching) -> None:
        """Stop it."""
        self.successResultOf(Deferred.fromCoroutine(watching.stop()))

    async def run_agent(self, watcher: Watcher, batch: Batch, begun: Callable[[int], None]) -> None:
        """An agent that works until the test says so."""
        begun(len(self.runs) + 1)
        self.runs.append((batch, Deferred()))
        await self.runs[-1][1]

    def fire(self, text: str = "x") -> None:
        """Something happens, and the debounce passes."""
        self.trigger.fire(event(text))
        self.clock.advance(2)

    def fail_run(self, error: Exception) -> None:
        """The last run fails."""
        self.runs[-1][1].errback(error)
        self.clock.advance(10)

    def test_run_and_its_record(self) -> None:
        self.watching.start()
        self.fire()
        record = self.records.read("tests")
        self.assertEqual(record.running, Run(at=NOW + 2, session=1))
        self.runs[0][1].callback(None)
        record = self.records.read("tests")
        self.assertEqual((record.running, record.last), (None, Run(at=NOW + 2, session=1)))
        self.assertEqual(self.trigger.calls, ["start", "settle"])

    def test_events_while_it_runs_do_not_set_it_off_again(self) -> None:
        self.watching.start()
        self.fire()
        for _ in range(5):
            self.fire()
        self.runs[0][1].callback(None)
        self.clock.advance(100)
        self.assertEqual(len(self.runs), 1)
        self.assertEqual(self.records.read("tests").dropped, 5)
        self.fire()
        self.assertEqual(len(self.runs), 2)

    def test_three_failures_in_a_row_pause_it(self) -> None:
        self.watching.start()
        for _ in range(3):
            self.fire()
            self.fail_run(SessionError("MESSAGE_FAILED", "no model"))
        self.fire()
        self.assertEqual(len(self.runs), 3)
        self.assertEqual(self.said[-1], "watcher tests is paused: 3 runs in a row failed")
        with self.records.change("tests") as record:
            record.resume()
        self.fire("y")
        self.assertEqual([each.data["line"] for each in self.runs[3][0].events], ["y"])

    def test_pause_of_another_process_holds(self) -> None:
        self.watching.start()
        self.trigger.fire(event())
        with self.records.change("tests") as record:
            record.pause(NOW, "by a person")
        self.clock.advance(100)
        self.assertEqual(self.runs, [])

    def test_unexpected_failure_is_one_too(self) -> None:
        self.watching.start()
        self.fire()
        self.fail_run(RuntimeError("a bug"))
        self.assertEqual(self.records.read("tests").failures, 1)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_run_that_a_person_declines_is_no_failure(self) -> None:
        self.watching.start()
        self.fire()
        self.fail_run(Declined("not now"))
        self.assertEqual(self.records.read("tests").failures, 0)

    def test_run_that_killed_its_process_is_a_failure(self) -> None:
        with self.records.change("tests") as record:
            record.begin(NOW - 60, 4)
        self.watching.start()
        record = self.records.read("tests")
        self.assertEqual((record.failures, record.running), (1, None))

    def test_end_of_this_process_ends_the_run_and_is_no_failure(self) -> None:
        self.watching.start()
        self.fire()
        self.stop(self.watching)
        record = self.records.read("tests")
        self.assertEqual((record.failures, record.running), (0, None))
        self.assertEqual((self.trigger.calls, self.clock.getDelayedCalls()), (["start", "stop"], []))

    def test_run_in_another_process_drops_what_it_causes(self) -> None:
        self.watching.start()
        with self.records.change("tests") as record:
            record.running = Run(at=NOW)
        self.fire()
        with self.records.change("tests") as record:
            record.running, record.ended = None, NOW + self.clock.seconds()
        self.fire()
        self.assertEqual(self.runs, [])
        self.clock.advance(5)
        self.fire()
        self.assertEqual(len(self.runs), 1)

    def test_one_process_follows_it_at_a_time(self) -> None:
        self.watching.start()
        other = self.make(make_watcher())
        other.start()
        self.assertEqual(self.trigger.calls, ["start"])
        self.stop(self.watching)
        self.clock.advance(TURN_SECONDS)
        self.assertEqual(self.trigger.calls, ["start", "stop", "start"])

    def test_trigger_that_does_not_start_is_noted(self) -> None:
        def fail(watcher: Watcher) -> Trigger:
            raise Unavailable("it needs more")

        self.make(make_watcher(), fail).start()
        self.assertEqual(self.records.read("tests").trouble, "it needs more")
        self.assertEqual(self.said, ["watcher tests does not watch: it needs more"])

    def test_home_that_cannot_be_written_does_not_stop_its_process(self) -> None:
        (self.records.turn("tests").parent / "tests.json").mkdir()
        self.watching.start()
        self.assertIn("watcher tests does not watch: the record of watcher tests", self.said[0])

    def test_what_cannot_be_noted_does_not_run(self) -> None:
        self.watching.start()
        file = scratch(self) / "file"
        file.touch()
        self.patch(self.records, "_directory", file)
        self.fire()
        self.assertEqual(self.runs, [])
        self.assertIn("watcher tests does not run", self.said[0])

    def test_watchers_that_set_one_another_off_stop(self) -> None:
        other_trigger = ToldTrigger()
        other = self.make(make_watcher(name="other"), lambda _: other_trigger)
        self.watching.start()
        other.start()
        self.fire()
        other_trigger.fire(event("written by the first"))
        self.clock.advance(2)
        self.assertEqual(self.runs[1][0].chain, ("tests", "other"))
        self.runs[0][1].callback(None)
        self.clock.advance(3)
        self.fire("written by the second")
        self.assertEqual(len(self.runs), 2)
