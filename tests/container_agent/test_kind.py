from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from twisted.internet import reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase

from ironcurtain.container.engine import Engine
from ironcurtain.container.image_plans import Basis
from ironcurtain.container_agent.kind import ContainerKind
from ironcurtain.errors import Unavailable
from ironcurtain.terminal.screen import Screens
from tests.audit.doubles import scratch
from tests.container_agent.worlds import ScriptAgent, SmallImages
from tests.session.doubles import World, request


class Silent(Protocol):
    """An Engine that does not answer."""

    def __init__(self) -> None:
        self.asked: Deferred[None] = Deferred()
        self.over: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        """Tell."""
        self.asked.callback(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell."""
        self.over.callback(None)


class ImageTests(TestCase):
    async def test_without_an_image_nothing_more_is_waited_for(self) -> None:
        silent, path = Silent(), str(scratch(self) / "engine.sock")
        port = await UNIXServerEndpoint(reactor, path).listen(Factory.forProtocol(lambda: silent))
        self.addCleanup(lambda: maybeDeferred(port.stopListening))
        world = World(scratch(self), reactor=reactor)
        session = await world.manager.create(request())
        core = world.agents[-1].core
        assert core is not None

        class NoImages(SmallImages):
            async def ensure(self, agent: str, progress: Callable[[str], None], basis: Basis) -> str:
                await silent.asked
                raise Unavailable("no image")

        engine = Engine(reactor, path)
        kind = ContainerKind(
            ScriptAgent(), lambda: engine, NoImages, world.services, reactor, {}, Screens(cast(Any, reactor))
        )
        self.addCleanup(engine.close)
        looking = Deferred.fromCoroutine(kind._image_and_processors(core, engine, Basis()))
        await self.assertFailure(looking, Unavailable)
        assert silent.transport is not None
        silent.transport.loseConnection()
        await silent.over
        await world.manager.close(session, "the test ends")
        world.watcher.stop()
