"""What a project wants to be run before the first message, in a sandbox of bubblewrap."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from ironcurtain.container.engine import Engine
from ironcurtain.container.image_choices import find_choices
from ironcurtain.container.project_choices import ProjectChoices
from ironcurtain.container.project_commands import ProjectCommands
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.sections import Agents
from ironcurtain.session import events
from ironcurtain.session.session import Session
from tests.container_agent.test_without_docker import IN_BUBBLEWRAP, demand
from tests.container_agent.worlds import ContainerTestCase, reactor
from tests.machine import UID

COMMANDS = """{
    // as a project has it
    "image": "node:22",
    "onCreateCommand": "id -u >>log; tail -n +3 /proc/net/dev | cut -d: -f1 >>log",
    "postCreateCommand": ["sh", "-c", "echo created >>$0/log", "${containerWorkspaceFolder}"],
    "postStartCommand": {"one": "echo started >>log", "two": "%s"},
    "initializeCommand": "echo never >>log"
}"""


class SetupTests(ContainerTestCase):
    def setUp(self) -> None:
        demand()
        super().setUp()
        self.world.engine = Engine(reactor, str(self.top / "nothing.sock"))
        self.project = Path(tempfile.mkdtemp(prefix="ic", dir="/var/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.project)
        if os.geteuid() == 0:
            os.chown(self.project, UID, UID)
        self.write("true")

    def write(self, second: str) -> None:
        """Write the project's file, in which another command is run at each start."""
        (self.project / ".devcontainer.json").write_text(COMMANDS % second)

    def decide(self, agreed: bool) -> None:
        """Answer the question about the commands."""
        choices = ProjectChoices(self.home, ContainerSettings(), find_choices({}, ContainerSettings()), {})
        commands = ProjectCommands(self.home, choices)
        proposal = commands.propose(str(self.project))
        assert proposal is not None
        commands.answer(proposal, agreed=agreed)

    def log(self) -> list[str]:
        """:returns: what the commands wrote in the workspace."""
        file = self.project / "log"
        return file.read_text().split() if file.exists() else []

    def notices(self, session: Session) -> str:
        """:returns: what the person was told."""
        return "\n".join(notice.text for notice in self.seen(session, events.Notice))

    async def test_commands_run_after_a_yes_once_a_session_or_in_each_sandbox(self) -> None:
        session = await self.start(options=IN_BUBBLEWRAP, workspace=self.project)
        self.assertEqual(await self.say(session, "echo hi"), "hi\n")
        self.assertEqual(self.log(), [])
        self.assertIn(
            f"not run: look at them, and decide, with: ironcurtain images project {self.project}", self.notices(session)
        )
        await self.world.manager.close(session, "enough")

        self.decide(True)
        session = await self.start(options=IN_BUBBLEWRAP, workspace=self.project)
        self.assertEqual(self.log(), [])
        self.assertEqual(await self.say(session, "cat log"), f"{UID}\n    lo\ncreated\nstarted\n")
        await self.say(session, "true")
        self.assertEqual(self.log(), [str(UID), "lo", "created", "started"])
        await self.fails(self.say(session, "kill -9 2; sleep 100"))
        await self.say(session, "true")
        self.assertEqual(self.log()[3:], ["started", "started"])
        await self.world.manager.close(session, "enough")
        again = await self.start(resume=session.id)
        await self.say(again, "true")
        self.assertEqual(self.log()[3:], ["started"] * 3)
        self.assertEqual(self.audit(again, "project-command")[0]["member"], "onCreateCommand")
        self.assertEqual({each["status"] for each in self.audit(again, "project-command-end")}, {0})

    async def test_one_that_does_not_end_is_ended(self) -> None:
        self.write("echo waiting; sleep 7777")
        self.decide(True)
        world = self.another(self.with_settings(agents=Agents(turn_seconds=3)))
        world.engine = self.world.engine
        session = await self.start(world, options=IN_BUBBLEWRAP, workspace=self.project)
        self.assertEqual(await self.say(session, "cat /proc/[0-9]*/comm | grep -c sleep || true"), "0\n")
        said = (
            "postStartCommand two of the project was ended after 3 s (agents.turn_seconds), and no further one is run"
        )
        self.assertIn(f"{said}: waiting", self.notices(session))

    async def test_after_one_that_fails_no_further_one_runs_and_the_session_goes_on(self) -> None:
        self.write("echo some words; exit 3")
        self.decide(True)
        session = await self.start(options=IN_BUBBLEWRAP, workspace=self.project)
        self.assertEqual(await self.say(session, "echo hi"), "hi\n")
        said = "postStartCommand two of the project failed with status 3, and no further one is run: some words"
        self.assertIn(said, self.notices(session))
        self.write("true; evil")
        await self.fails(self.say(session, "kill -9 2; sleep 100"))
        await self.say(session, "true")
        self.assertIn("not run: look at them", self.notices(session))
        self.assertEqual(self.log().count("started"), 1)
