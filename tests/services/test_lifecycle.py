from __future__ import annotations

from collections.abc import Awaitable, Callable

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.services.lifecycle import STOP_SECONDS, Lifecycle, StartFailed, to_its_end

NAMES = ("a", "b", "c", "d")


class Parts:
    """Parts that tell what happens to them, and whose starts end when the test says so."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.up: set[str] = set()
        self.starting: dict[str, Deferred[None]] = {}

    def start(self, name: str) -> Callable[[], Awaitable[str]]:
        async def start() -> str:
            self.starting[name] = Deferred()
            await self.starting[name]
            self.up.add(name)
            self.events.append(f"+{name}")
            return name

        return start

    async def stop(self, name: str) -> None:
        self.up.remove(name)
        self.events.append(f"-{name}")

    async def start_all(self, lifecycle: Lifecycle) -> None:
        for name in NAMES:
            self.events.append(f"?{name}")
            assert await lifecycle.start(name, self.start(name), self.stop) == name


class StartTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.parts = Clock(), Parts()
        self.lifecycle = Lifecycle(self.clock)

    def begin(self, succeed: int) -> Deferred[None]:
        """Start all parts, of which the first so many come up."""
        starting = Deferred.fromCoroutine(self.parts.start_all(self.lifecycle))
        for name in NAMES[:succeed]:
            self.parts.starting[name].callback(None)
        return starting

    def stop(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self.lifecycle.stop())

    def test_one_after_the_other_and_back(self) -> None:
        self.successResultOf(self.begin(4))
        self.successResultOf(self.stop())
        self.assertEqual(" ".join(self.parts.events), "?a +a ?b +b ?c +c ?d +d -d -c -b -a")

    def test_the_next_waits_for_the_one_before(self) -> None:
        starting = self.begin(1)
        self.assertEqual(set(self.parts.starting), {"a", "b"})
        self.assertNoResult(starting)
        starting.addErrback(lambda _: None)
        starting.cancel()

    def test_a_failure_at_any_step_leaves_nothing(self) -> None:
        for step, name in enumerate(NAMES):
            self.setUp()
            starting = self.begin(step)
            self.parts.starting[name].errback(Unavailable("no engine"))
            failure = self.failureResultOf(starting, StartFailed)
            self.assertEqual((failure.value.part, failure.value.exit_status), (name, 69))
            self.assertIn("no engine", str(failure.value))
            self.assertEqual(self.parts.up, set())
            self.assertEqual(
                [event for event in self.parts.events if event[0] == "-"], [f"-{n}" for n in reversed(NAMES[:step])]
            )

    def test_a_cancel_at_any_step_leaves_nothing(self) -> None:
        for step, name in enumerate(NAMES):
            self.setUp()
            starting = self.begin(step)
            starting.cancel()
            self.failureResultOf(starting, CancelledError)
            self.assertTrue(self.parts.starting[name].called)
            self.assertEqual((self.parts.up, self.parts.events[-1:]), (set(), ["-a" if step else "?a"]))

    def test_a_stop_at_any_step_leaves_nothing(self) -> None:
        for step, name in enumerate(NAMES):
            self.setUp()
            starting = self.begin(step)
            stopping = self.stop()
            if not self.parts.starting[name].called:
                self.parts.starting[name].callback(None)
            self.failureResultOf(starting, StartFailed, CancelledError)
            self.successResultOf(stopping)
            self.assertEqual(self.parts.up, set())

    def test_stopping_waits_for_the_part_that_is_starting(self) -> None:
        """What is reported as stopped is down; a part never outlives those it stands on."""
        starting = self.begin(1)
        starting.addErrback(lambda _: None)
        stopping = self.stop()
        if self.parts.starting["b"].called:
            self.successResultOf(stopping)
            return
        self.assertNoResult(stopping)
        self.parts.starting["b"].callback(None)
        self.successResultOf(stopping)
        self.assertEqual(self.parts.events[-2:], ["-b", "-a"])

    def test_stopped_while_one_starts_each_part_still_waits_for_the_one_after_it(self) -> None:
        slow, calls = Deferred[None](), list[str]()

        async def stop(name: str) -> None:
            calls.append(name)
            if name == "b":
                await slow

        async def start_all() -> None:
            for name in NAMES:
                await self.lifecycle.start(name, self.parts.start(name), stop)

        starting = Deferred.fromCoroutine(start_all())
        for name in NAMES[:2]:
            self.parts.starting[name].callback(None)
        stopping = self.stop()
        self.assertEqual(calls, ["b"])
        self.assertNoResult(stopping)
        slow.callback(None)
        self.assertEqual(calls, ["b", "a"])
        self.successResultOf(stopping)
        self.failureResultOf(starting, CancelledError)

    def test_after_the_end_nothing_starts(self) -> None:
        self.successResultOf(self.stop())
        self.failureResultOf(self.begin(0), StartFailed)
        self.assertEqual(self.parts.starting, {})

    def test_a_failure_before_the_first_wait(self) -> None:
        async def start() -> str:
            raise ZeroDivisionError

        failing = Deferred.fromCoroutine(self.lifecycle.start("x", start, self.parts.stop))
        self.assertEqual(self.failureResultOf(failing, StartFailed).value.exit_status, 1)


class StopTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.lifecycle = Lifecycle(self.clock)
        self.down: list[str] = []

    def add(self, name: str, stop: Callable[[str], Awaitable[None]]) -> None:
        async def start() -> str:
            return name

        self.successResultOf(Deferred.fromCoroutine(self.lifecycle.start(name, start, stop)))

    async def well(self, name: str) -> None:
        self.down.append(name)

    def stop(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self.lifecycle.stop())

    def test_one_that_fails_does_not_keep_the_others_up(self) -> None:
        async def badly(name: str) -> None:
            raise OSError(name)

        self.add("a", self.well)
        self.add("b", badly)
        self.successResultOf(self.stop())
        self.assertEqual(self.down, ["a"])
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)

    def test_one_that_hangs_is_left_behind_in_time(self) -> None:
        async def hang(_: str) -> None:
            await Deferred[None]()

        self.add("a", self.well)
        self.add("b", hang)
        stopping = self.stop()
        self.clock.advance(STOP_SECONDS - 0.1)
        self.assertNoResult(stopping)
        self.clock.advance(0.1)
        self.successResultOf(stopping)
        self.assertEqual((self.down, self.clock.getDelayedCalls()), (["a"], []))
        self.assertEqual(len(self.flushLoggedErrors()), 1)

    def test_one_that_will_not_be_cancelled_is_left_behind_as_well(self) -> None:
        async def stubborn(_: str) -> None:
            while True:
                try:
                    await Deferred[None]()
                except CancelledError:
                    continue

        self.add("a", self.well)
        self.add("b", stubborn)
        stopping = self.stop()
        self.clock.advance(STOP_SECONDS)
        self.flushLoggedErrors()
        self.successResultOf(stopping)
        self.assertEqual(self.down, ["a"])

    def test_a_second_call_waits_for_the_first(self) -> None:
        gate: Deferred[None] = Deferred()

        async def slowly(name: str) -> None:
            await gate
            self.down.append(name)

        self.add("a", slowly)
        first, second = self.stop(), self.stop()
        self.assertNoResult(second)
        gate.callback(None)
        self.successResultOf(first)
        self.successResultOf(second)
        self.successResultOf(self.stop())
        self.assertEqual(self.down, ["a"])

    def test_cancelling_ends_only_the_waiting(self) -> None:
        gate: Deferred[None] = Deferred()

        async def slowly(name: str) -> None:
            await gate
            self.down.append(name)

        self.add("a", self.well)
        self.add("b", slowly)
        first, second = self.stop(), self.stop()
        first.cancel()
        self.failureResultOf(first, CancelledError)
        gate.callback(None)
        self.successResultOf(second)
        self.assertEqual(self.down, ["b", "a"])

    @given(st.lists(st.sampled_from(("well", "badly", "hang")), max_size=6))
    def test_all_go_down_in_bounded_time(self, kinds: list[str]) -> None:
        self.setUp()

        async def badly(name: str) -> None:
            self.down.append(name)
            raise OSError

        async def hang(name: str) -> None:
            self.down.append(name)
            await Deferred[None]()

        stops = {"well": self.well, "badly": badly, "hang": hang}
        for number, kind in enumerate(kinds):
            self.add(str(number), stops[kind])
        stopping = self.stop()
        self.clock.pump([STOP_SECONDS] * kinds.count("hang"))
        self.successResultOf(stopping)
        self.assertEqual(self.down, [str(number) for number in reversed(range(len(kinds)))])
        self.assertEqual(len(self.flushLoggedErrors()), len(kinds) - kinds.count("well"))


class ToItsEndTests(SynchronousTestCase):
    """A clean-up that nothing cuts short."""

    def setUp(self) -> None:
        self.work: Deferred[str] = Deferred()
        self.done = False

        async def clean_up() -> str:
            told = await self.work
            self.done = True
            return told

        self.waiting = Deferred.fromCoroutine(to_its_end(clean_up()))

    def test_however_often_it_is_cancelled(self) -> None:
        for _ in range(3):
            self.waiting.cancel()
            self.assertNoResult(self.waiting)
        self.work.callback("all gone")
        self.assertEqual((self.successResultOf(self.waiting), self.done), ("all gone", True))

    def test_a_failure_is_reported(self) -> None:
        self.waiting.cancel()
        self.work.errback(Unavailable("stuck"))
        self.failureResultOf(self.waiting, Unavailable)

    def test_work_that_is_done(self) -> None:
        async def nothing() -> int:
            return 7

        self.assertEqual(self.successResultOf(Deferred.fromCoroutine(to_its_end(nothing()))), 7)
