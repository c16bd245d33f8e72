"""Tests of ironcurtain.loop.limit_wait, and of loops that wait."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.errors import AccountLimitReached
from ironcurtain.loop.agent import LoopAgent
from ironcurtain.loop.config import SettingsLayer, configured
from ironcurtain.loop.limit_wait import LimitWait
from ironcurtain.loop.model import Iteration, IterationMode, LoopEnding, LoopLimits, LoopState, RunOutcome, loop_end
from ironcurtain.loop.program_runs import LoopWork
from tests.audit.doubles import scratch
from tests.mitm_proxy.waiting import until
from tests.session.doubles import World, request

reactor: Any = the_reactor


class LimitWaitTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.wait = LimitWait(self.clock)

    def test_it_ends_at_its_time(self) -> None:
        waiting = Deferred.fromCoroutine(self.wait.until(100.0))
        self.clock.advance(99.0)
        self.assertNoResult(waiting)
        self.clock.advance(1.0)
        self.successResultOf(waiting)

    def test_time_that_has_passed_is_not_waited_for(self) -> None:
        self.clock.advance(5.0)
        waiting = Deferred.fromCoroutine(self.wait.until(3.0))
        self.clock.advance(0.0)
        self.successResultOf(waiting)

    def test_it_can_be_ended_and_used_again(self) -> None:
        self.wait.end()
        waiting = Deferred.fromCoroutine(self.wait.until(100.0))
        self.wait.end()
        self.successResultOf(waiting)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertNoResult(Deferred.fromCoroutine(self.wait.until(200.0)))
        self.wait.end()


class EndTests(SynchronousTestCase):
    def test_account_limits_are_no_failures(self) -> None:
        outcomes = (RunOutcome.FAILED, RunOutcome.ACCOUNT_LIMIT, RunOutcome.ACCOUNT_LIMIT, RunOutcome.FAILED)
        done = tuple(Iteration(number=n, outcome=each, started_at="") for n, each in enumerate(outcomes, 1))
        self.assertIsNone(loop_end(LoopState(iterations=done), LoopLimits(iterations=9, failures=2)))


class Limited:
    """A backend whose account has reached a limit."""

    name, where = "limited", "nowhere"

    def __init__(self, clock: Any, seconds: float | None) -> None:
        self.clock, self.seconds, self.runs = clock, seconds, 0

    def shown(self, mode: IterationMode) -> tuple[str, ...]:
        return ("limited",)

    def check(self, mode: IterationMode) -> None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def run(self, task: Any, owner: Any) -> Any:
        self.runs += 1
        raise AccountLimitReached("the account has reached a limit", self.seconds or 0.0)

    def cost(self) -> float | None:
        return None

    def limit_ends(self) -> float | None:
        return None if self.seconds is None else float(self.clock.seconds()) + self.seconds


class Front:
    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, hold: Any) -> None: ...

    def output(self, data: bytes) -> None: ...

    def complained(self, data: bytes) -> None: ...

    def say(self, text: str) -> None:
        self.said.append(text)


class LoopTests(TestCase):
    async def loop(self, seconds: float | None) -> tuple[LoopAgent, Limited, Front, Deferred[Any]]:
        world = World(scratch(self), reactor=reactor)
        session = await world.manager.create(request())
        self.addCleanup(lambda: Deferred.fromCoroutine(world.manager.close(session, "the test ends")))
        core = world.agents[-1].core
        assert core is not None
        settings = configured(SettingsLayer("the test", {"event_loop.prompt": "work"})).settings
        backend, front = Limited(core.services.clock, seconds), Front()
        work = LoopWork(settings, backend, IterationMode.HEADLESS, 0, None, lambda number: succeed(None))
        agent = LoopAgent(core, reactor, work)
        await agent.start()
        return agent, backend, front, agent.run(front)

    async def test_loop_waits_until_it_is_interrupted(self) -> None:
        agent, backend, front, running = await self.loop(7200.0)
        await until(lambda: any("waiting 120:00" in said for said in front.said))
        self.assertEqual((backend.runs, agent.state.iterations[0].outcome), (1, RunOutcome.ACCOUNT_LIMIT))
        agent.interrupt("it was enough")
        self.assertEqual(await running, (LoopEnding.INTERRUPTED, "it was enough"))

    async def test_loop_goes_on_when_the_limit_ends(self) -> None:
        agent, backend, _, running = await self.loop(0.01)
        await until(lambda: backend.runs > 4)
        agent.interrupt("it was enough")
        self.assertEqual((await running)[0], LoopEnding.INTERRUPTED)

    async def test_loop_that_does_not_wait_fails(self) -> None:
        _, backend, _, running = await self.loop(None)
        self.assertEqual((await running)[0], LoopEnding.FAILURES)
        self.assertEqual(backend.runs, 3)
