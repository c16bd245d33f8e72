from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.loop.backend import IterationTask, LoopStream, OutputHandler, RunningProgram
from ironcurtain.loop.container import ContainerBackend
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
        self.backend = ContainerBackend(core, "plain", world.kind, world.tools[-1])

    def iterate(self) -> Deferred[RunningProgram]:
        stream = LoopStream(lambda data: None, lambda columns, rows: None)
        task = IterationTask("work", IterationMode.HEADLESS, {}, (80, 24), stream)
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

    def test_a_home_that_cannot_be_put_aside_is_said(self) -> None:
        unprivileged(self, self.scratch)
        self.directory.chmod(0o500)
        self.addCleanup(self.directory.chmod, 0o700)
        self.assertIn("cannot be renamed", str(self.failureResultOf(self.iterate(), Unavailable).value))
