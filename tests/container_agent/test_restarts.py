"""Sessions outlive the Docker Engine: it stops, its containers end with it, and it starts again."""

from __future__ import annotations

from ironcurtain.container.engine import Engine
from ironcurtain.session import events
from ironcurtain.session.model import State
from ironcurtain.session.session import Session
from tests import engine
from tests.container_agent.relay import Relay
from tests.container_agent.worlds import ContainerTestCase, reactor


class RestartTests(ContainerTestCase):
    """The agent works through messages."""

    async def begin(self) -> Session:
        """:returns: a session whose Engine can be stopped."""
        self.relay = Relay(reactor, self.top / "docker.sock")
        await self.relay.start()
        self.addCleanup(self.relay.stop)
        self.world.engine = Engine(reactor, str(self.relay.path))
        return await self.start()

    async def stop_engine(self, ended: bool = True) -> None:
        """
        :param ended: whether its containers end; with its setting live-restore they go on.
        """
        await self.relay.stop()
        for container in self.containers() if ended else ():
            engine.call("POST", f"/containers/{container['Id']}/kill")

    async def finish(self) -> None:
        """What the Engine could not do when a session was closed."""
        for container in self.containers():
            engine.call("DELETE", f"/containers/{container['Id']}?force=1")

    async def test_between_messages(self) -> None:
        for ended in (True, False):
            session = await self.begin()
            await self.say(session, "echo kept > /workspace/file")
            await self.stop_engine(ended)
            told = await self.until(session, events.ContainerEnded)
            self.assertIn("no Docker Engine answers", told.reason)
            self.assertIn("no Docker Engine answers", str(await self.fails(session.send("true"))))
            self.assertIs(session.state, State.READY)
            await self.relay.start()
            self.assertEqual(await self.say(session, "cat /workspace/file"), "kept\n")
            self.assertEqual(len(self.containers()), 1)
            await self.world.manager.close(session, "enough")
            self.assertEqual(self.containers(), [])
            await self.relay.stop()

    async def test_while_a_message_is_worked_on(self) -> None:
        session = await self.begin()
        sent = session.send("echo begun >&2; sleep 60")
        await self.until(session, events.AgentDiagnostic)
        await self.stop_engine()
        error = await self.fails(sent)
        self.assertIn("no Docker Engine answers", str(error))
        self.assertIn("The next message starts a new one", str(error))
        await self.relay.start()
        self.assertEqual(await self.say(session, "echo back"), "back\n")
        self.assertEqual(len(self.containers()), 1)
        self.assertEqual(len(self.seen(session, events.ContainerEnded)), 1)

    async def test_closing_without_it(self) -> None:
        session = await self.begin()
        (left,) = self.containers()
        self.addCleanup(self.finish)
        await self.stop_engine(ended=False)
        await self.world.manager.close(session, "enough")
        self.assertIs(session.state, State.CLOSED)
        told = self.seen(session, events.Notice)[-1].text
        self.assertIn(left["Names"][0].lstrip("/"), told)
        self.assertIn("ironcurtain gc", told)
        self.assertEqual(self.audit(session, "end")[0]["reason"], "enough")

    async def test_an_agent_in_a_terminal(self) -> None:
        self.relay = Relay(reactor, self.top / "docker.sock")
        await self.relay.start()
        self.addCleanup(self.relay.stop)
        self.addCleanup(self.finish)
        self.world.engine = Engine(reactor, str(self.relay.path))
        session = await self.start(terminal=(80, 24))
        await self.stop_engine()
        await session.ended()
        self.assertIn("no Docker Engine answers", session.reason)
