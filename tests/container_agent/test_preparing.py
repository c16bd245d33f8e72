"""A program that takes several messages is started before there is one, in a workspace that is listed already."""

from __future__ import annotations

from collections.abc import Iterable

from twisted.internet.task import deferLater

from ironcurtain.agents.adapter import Facts
from ironcurtain.agents.streams.dialogue import WholeOutput
from ironcurtain.agents.streams.reports import Report, TurnOver
from ironcurtain.errors import IronCurtainError
from ironcurtain.session import events
from ironcurtain.session.agent_events import AgentActivity
from ironcurtain.session.model import State
from ironcurtain.session.session import Session
from tests.container_agent.worlds import ContainerTestCase, ScriptAgent, World, reactor

STARTED = 'echo $$ >> /workspace/started; {}while read -r line; do eval "$line"; done'


class LineByLine(WholeOutput):
    """Each line that the program prints is the answer to a message."""

    resident = True

    def output(self, data: bytes) -> Iterable[Report]:
        return [TurnOver(line) for line in data.decode().splitlines()]


class ResidentAgent(ScriptAgent):
    """
    A shell that runs each message.

    :ivar first: what it does before it reads any.
    """

    first = ""

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        return ("sh", "-c", STARTED.format(self.first))

    def dialogue(self, facts: Facts) -> WholeOutput:
        return LineByLine(self._answer)


class ResidentWorld(World):
    adapter_class = ResidentAgent


class PreparingTests(ContainerTestCase):
    world_class = ResidentWorld

    async def started(self, session: Session, count: int = 1) -> list[str]:
        """:returns: the process ids of the programs that were started, once there are so many."""
        file = session.paths.sandbox / "started"
        while not file.exists() or len(pids := file.read_text().split()) < count:
            await deferLater(reactor, 0.02)
        return pids

    async def test_it_is_started_before_the_first_message(self) -> None:
        session = await self.start()
        [pid] = await self.started(session)
        self.assertIs(session.state, State.READY)
        for _ in range(2):
            self.assertEqual(await self.say(session, "echo $$"), pid)
        self.assertEqual(await self.started(session), [pid])
        self.assertNotIn("started", session.paths.manifest.read_text())

    async def test_a_message_that_does_not_wait_for_it(self) -> None:
        session = await self.start()
        pid = await self.say(session, "echo $$")
        self.assertEqual(await self.started(session), [pid])
        await self.say(session, "echo again")
        self.assertEqual(self.seen(session, AgentActivity), [AgentActivity(state="starting")], "with the first message")

    async def test_one_that_ended_is_started_again_with_the_message(self) -> None:
        self.world.adapter.first = "[ -e /workspace/again ] || { touch /workspace/again; exit 3; };"  # type: ignore[attr-defined]
        session = await self.start()
        while not (session.paths.sandbox / "again").exists():
            await deferLater(reactor, 0.02)
        try:  # its end may be noticed only after the message was given to it
            await self.say(session, "echo lost")
        except IronCurtainError as e:
            self.assertEqual(str(e), "no money")
        pid = await self.say(session, "echo $$")
        self.assertEqual((await self.started(session, 2))[1:], [pid])
        self.assertEqual(self.seen(session, events.ContainerEnded), [])

    async def test_it_ends_with_a_session_that_got_no_message(self) -> None:
        session = await self.start()
        await self.world.manager.close(session, "enough")
        self.assertEqual(self.containers(), [])
        self.assertEqual(self.audit(session, "run"), [])
