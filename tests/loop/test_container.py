from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.loop.backend import IterationTask, LoopStream, OutputHandler, RunningProgram
from ironcurtain.loop.container import LONGEST_WAIT, ContainerBackend
from ironcurtain.loop.model import IterationMode
from tests.audit.doubles import scratch
from tests.session.doubles import World, request
from tests.trees import nest, unprivileged


class HomeTests(SynchronousTestCase):
    """What an agent leaves in its home before the next one starts."""

    def setUp(self) -> None:
        self.scratch = scratch(self)
        world = World(self.scratch)
        session = self.successResultOf(Deferred.fromCoroutine(world.manager.create(request())))
        self.addCleanup(
            lambda: self.successResultOf(Deferred.fromCoroutine(world.manager.close(session, "the test ends")))
        )
        core = world.agents[-1].core
        assert core is not None
        self.directory, self.home = core.paths.directory, core.paths.agent_home
        self.home.mkdir()
        self.world, self.given = world, (core, "plain", world.kind, world.tools[-1])
        self.backend = ContainerBackend(*self.given)

    def iterate(self, prompt: str = "work") -> Deferred[RunningProgram]:
        stream = LoopStream(lambda data: None, lambda columns, rows: None)
        task = IterationTask(prompt, IterationMode.HEADLESS, {}, (80, 24), stream)
        return Deferred.fromCoroutine(self.backend.run(task, OutputHandler(lambda data: None, lambda data: None)))

    def test_it_is_gone_whatever_the_agent_made_of_it(self) -> None:
        (self.home / "closed" / "in").mkdir(parents=True)
        (self.home / "closed" / "in" / "file").write_text("remember me")
        before = sorted(path.name for path in self.directory.iterdir() if path != self.home)
        unprivileged(self, self.scratch)
        nest(self.home)
        (self.home / "closed" / "in").chmod(0)
        (self.home / "closed").chmod(0o500)
        self.successResultOf(self.iterate())
        self.assertEqual(sorted(path.name for path in self.directory.iterdir()), before)

    def test_limit_of_the_account_is_known_if_the_loop_waits_for_it(self) -> None:
        for waits, ends in ((True, 100.0), (False, None)):
            self.backend = ContainerBackend(*self.given, waits)
            program = self.successResultOf(self.iterate("limit"))
            self.assertEqual(self.successResultOf(program.done).status, 1)
            self.assertEqual(self.backend.limit_ends(), ends)
            self.successResultOf(self.iterate("fail"))
            self.assertIsNone(self.backend.limit_ends())

    def test_agent_waits_less_by_itself_if_the_loop_waits(self) -> None:
        for waits, seconds in ((True, LONGEST_WAIT), (False, None)):
            self.backend = ContainerBackend(*self.given, waits)
            self.successResultOf(self.iterate())
            core = self.world.agents[-1].core
            assert core is not None
            self.assertEqual(core.services.settings.agents.longest_wait_seconds, seconds)

    def test_a_home_that_cannot_be_put_aside_is_said(self) -> None:
        unprivileged(self, self.scratch)
        self.directory.chmod(0o500)
        self.addCleanup(self.directory.chmod, 0o700)
        self.assertIn("cannot be renamed", str(self.failureResultOf(self.iterate(), Unavailable).value))
