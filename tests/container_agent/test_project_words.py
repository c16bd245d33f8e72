from __future__ import annotations

from ironcurtain.container.image_plans import Basis
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.session import events
from tests.container_agent.worlds import ContainerTestCase, SmallImages, World


class WordyImages(SmallImages):
    """Images for projects that set variables."""

    def choose(self, workspace: str, settings: ContainerSettings) -> Basis:
        """:returns: what a devcontainer.json can say."""
        environment = {"OF_PROJECT": f"<{workspace}>", "HOME": "/evil", "BIN": "${containerWorkspaceFolder}/bin"}
        return Basis(environment=environment, words=("FILE is used",))


class WordyWorld(World):
    """One whose projects do."""

    images_class = WordyImages


class ProjectWordsTests(ContainerTestCase):
    world_class = WordyWorld

    async def test_a_project_sets_variables_but_none_of_ours_and_is_named(self) -> None:
        session = await self.start()
        said = await self.say(session, 'echo "$OF_PROJECT $HOME $BIN"')
        self.assertEqual(said, "<> /home/agent /workspace/bin\n")
        self.assertIn("FILE is used", [notice.text for notice in self.seen(session, events.Notice)])
