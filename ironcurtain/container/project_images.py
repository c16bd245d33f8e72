"""The images of agents, each for the project of a session."""

from __future__ import annotations

from collections.abc import Mapping

from ironcurtain.container.engine import Engine
from ironcurtain.container.image_builder import Progress
from ironcurtain.container.image_choices import find_choices, load_recipes
from ironcurtain.container.image_plans import Basis
from ironcurtain.container.images import AgentImages
from ironcurtain.container.project_choices import ProjectChoices
from ironcurtain.container.published_images import PublishedImages
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.layout import Home


class ProjectImages:
    """
    :param settings: for builds; what they stand on is chosen with the settings of each session.
    :param environ: the environment, which overrides both.
    :raises ConfigurationError: a file or variable about images is wrong.
    """

    def __init__(self, engine: Engine, home: Home, settings: ContainerSettings, environ: Mapping[str, str]) -> None:
        self._home, self._environ, recipes = home, environ, load_recipes(home)
        self._images = AgentImages(engine, recipes, find_choices(environ, settings))
        self._published = PublishedImages(engine, home, recipes.agents)

    def choose(self, workspace: str, settings: ContainerSettings) -> Basis:
        """:returns: what images for a workspace stand on; see :meth:`ProjectChoices.choose`."""
        choices = find_choices(self._environ, settings)
        return ProjectChoices(self._home, settings, choices, self._environ).choose(workspace)

    async def ensure(self, agent: str, progress: Progress, basis: Basis) -> str:
        """
        :returns: a reference to an agent's image: a published one, else one that is built if necessary.
        :raises Unavailable: a published image cannot be had. None is built in its place.
        """
        for reference in basis.published:
            if (image := await self._published.have(reference)) is None:
                progress(f"Fetching the image {reference}.")
                image = await self._published.pull(reference)
            if image.agent == agent:
                return image.reference
        return await self._images.ensure(agent, progress, basis)
