"""A loop that is starting, and is given up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import deferLater
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.loop.agent import LoopAgent
from ironcurtain.loop.config import SettingsLayer, configured
from ironcurtain.loop.host import HostBackend
from ironcurtain.loop.model import IterationMode, LoopEnding
from ironcurtain.loop.program_runs import LoopWork
from ironcurtain.terminal import screen
from ironcurtain.terminal.emulator_process import EmulatorProcess
from tests.audit.doubles import scratch
from tests.product import children
from tests.session.doubles import World, request

reactor: Any = the_reactor

SILENT = (sys.executable, "-S", "-c", "import time; time.sleep(1000)")
"""In place of the process of the screen models: never ready."""


class GivenUpTests(TestCase):
    """The screen model does not get ready, and somebody does not want to wait."""

    async def test_nothing_is_left(self) -> None:
        self.patch(screen, "EmulatorProcess", partial(EmulatorProcess, command=SILENT))
        world = World(scratch(self), reactor=reactor)
        session = await world.manager.create(request())
        core = world.agents[-1].core
        assert core is not None
        before = set(children())
        settings = configured(SettingsLayer("the test", {"event_loop.prompt": "work"})).settings
        backend = HostBackend(reactor, "", ("true",), {"PATH": "/bin:/usr/bin"}, "/")
        work = LoopWork(settings, backend, IterationMode.INTERACTIVE, 0, None, lambda number: succeed(None))
        agent = LoopAgent(core, reactor, work)
        starting = Deferred.fromCoroutine(agent.start())
        self.assertEqual(len(set(children()) - before), 2)
        starting.cancel()
        await self.assertFailure(starting, CancelledError)
        while set(children()) - before:
            await deferLater(reactor, 0.01)
        await world.manager.close(session, "the test ends")


class _SilentFrontEnd:
    def begin(self, hold: Callable[[bool], None]) -> None: ...

    def output(self, data: bytes) -> None: ...

    def complained(self, data: bytes) -> None: ...

    def say(self, text: str) -> None: ...


class InterruptedSnapshotTests(SynchronousTestCase):
    """A loop is ended while the snapshot before an iteration is taken."""

    def test_the_iteration_does_not_begin(self) -> None:
        world = World(scratch(self))
        self.successResultOf(Deferred.fromCoroutine(world.manager.create(request())))
        core = world.agents[-1].core
        assert core is not None
        settings = configured(SettingsLayer("the test", {"event_loop.prompt": "work"})).settings
        backend = HostBackend(world.clock, "", ("true",), {"PATH": "/bin:/usr/bin"}, "/")
        taken: list[int] = []

        def take(number: int) -> Deferred[None]:
            taken.append(number)
            return Deferred()

        agent = LoopAgent(core, world.clock, LoopWork(settings, backend, IterationMode.HEADLESS, 0, None, take))
        self.successResultOf(Deferred.fromCoroutine(agent.start()))
        ending = agent.run(_SilentFrontEnd())
        self.assertNoResult(ending)
        agent.interrupt("it was enough")
        self.assertEqual(self.successResultOf(ending), (LoopEnding.INTERRUPTED, "it was enough"))
        self.assertEqual((taken, list(agent.state.iterations)), ([1], []))
