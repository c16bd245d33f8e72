"""Tests for loops that run by themselves in a daemon, as other hosts of a fleet start them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.trial.unittest import TestCase

from ironcurtain.errors import UsageError
from ironcurtain.home.sections import Budget
from ironcurtain.loop.config import configured, values_of
from ironcurtain.loop.kind import NAME, LoopKind, LoopOptions
from ironcurtain.loop.model import IterationMode
from ironcurtain.operations import LOCAL_ROLES, Principal
from ironcurtain.operations.operations import Operations
from ironcurtain.session.events import StateChanged, TurnStarted
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import SessionInfo, SessionRequest
from tests.audit.doubles import scratch
from tests.mitm_proxy.waiting import until
from tests.session.doubles import World

ADA = Principal("local:ada@laptop", LOCAL_ROLES)


class Unchanged:
    """A project that nothing happens to."""

    async def start(self) -> None: ...
    async def settled(self) -> None: ...
    async def before_turn(self, turn: int | None) -> None: ...
    async def stop(self) -> None: ...


class AloneTests(TestCase):
    def setUp(self) -> None:
        from twisted.internet import reactor

        self.world = World(scratch(self), reactor=reactor)  # output is read by a process
        self.addCleanup(self.world.watcher.stop)
        kinds: dict[str, Any] = {"plain": replace(self.world.kind, in_container=True)}
        kinds[NAME] = LoopKind(reactor, {}, kinds, self.world.services).kind(lambda core: Unchanged())
        manager = SessionManager(kinds, self.world.services, lambda request: request.workspace)
        self.operations = Operations(manager)

    async def begin(self, agent: str = "plain", budget: Budget | None = None, **more: Any) -> SessionInfo:
        settings = values_of(configured().settings)
        settings |= {"loop.agent": agent, "event_loop.prompt": "Go on.", "event_loop.max_iterations": 2}
        given: dict[str, Any] = {"mode": IterationMode.HEADLESS, "idle_seconds": 30.0, "alone": True}
        options = LoopOptions(settings=settings, **(given | more))
        request = SessionRequest(NAME, "Go on.", None, {NAME: msgspec.to_builtins(options)}, budget=budget)
        return await self.operations.start(ADA, request)

    def session(self, number: int) -> SessionInfo:
        return self.operations.session(ADA, number)

    async def test_it_begins_by_itself_and_ends_its_session(self) -> None:
        info = await self.begin()
        self.assertEqual(info.state, "ready")
        await until(lambda: self.session(info.number).state == "closed")
        self.assertEqual(self.session(info.number).turns, 2)
        self.assertIn("the loop ended: ", self.session(info.number).reason)
        known = [stamped.event for stamped in self.operations.events(ADA, info.number, 0)]
        ready = known.index(StateChanged(state="ready"))
        self.assertEqual([event for event in known[:ready] if isinstance(event, TurnStarted)], [])

    async def test_it_is_stopped_like_any_session(self) -> None:
        info = await self.begin()
        await self.operations.stop(ADA, info.number)
        await until(lambda: self.session(info.number).state == "closed")
        self.assertEqual(self.session(info.number).reason, "ended by local:ada@laptop")

    async def test_limit_of_the_host_that_gave_it_counts(self) -> None:
        info = await self.begin(budget=Budget(seconds=1e-3))
        await until(lambda: self.session(info.number).state == "closed")
        self.assertEqual(self.session(info.number).turns, 1)

    async def test_loop_of_commands_or_with_a_terminal_is_refused(self) -> None:
        for more in ({"agent": ""}, {"mode": IterationMode.OBSERVE}, {"alone": False}):
            with self.assertRaises(UsageError):
                await self.begin(**more)
        self.assertEqual(self.operations.sessions(ADA), [])
