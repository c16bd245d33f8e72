"""
The images of the agents: built when first needed, and rebuilt when their content changes.

A build reports progress, and its last output if it fails. It leaves nothing behind.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet.defer import DeferredLock

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError
from ironcurtain.container.image_builder import Builder, Progress
from ironcurtain.container.image_choices import Choices
from ironcurtain.container.image_plans import (
    BUILD_LABEL,
    DOWNLOADER,
    NAME_LABEL,
    PROJECT_LABEL,
    VERSION_LABEL,
    Basis,
    ImagePlan,
    Recipes,
    SourceImage,
)
from ironcurtain.container.versions import BASE, NoRelease

LEFTOVER_SECONDS = 3600
"""Age in seconds at which temporary images are assumed to belong to a build that was killed."""


CURRENT, OLD, MISSING, NO_RELEASE, BROKEN = "current", "old", "missing", "no release", "broken"
"""
States of an agent's image: up to date; outdated; missing; not buildable before `update`; of another package, and
unusable.
"""

PROJECTS = "for a project"
"""State of an image that one project has for itself."""


class AgentImage(msgspec.Struct, frozen=True):
    """
    The image of one agent.

    :param state: :data:`CURRENT`, :data:`OLD`, :data:`MISSING`, :data:`NO_RELEASE`, :data:`BROKEN` or
        :data:`PROJECTS`.
    :param version: version of the agent in the existing image, else in the one that would be built; may be empty.
    :param reference: the existing image; empty if there is none.
    :param size: in bytes, including layers shared with others.
    :param created: when, in seconds since the epoch.
    :param problem: why it cannot be used.
    :param project: path of the only project that uses it; empty: all do.
    """

    agent: str
    state: str
    version: str
    reference: str = ""
    size: int = 0
    created: int = 0
    problem: str = ""
    project: str = ""


class Pruned(msgspec.Struct, frozen=True):
    """
    :param removed: names or ids of the removed images.
    :param in_use: names of those that a container still needs.
    """

    removed: tuple[str, ...]
    in_use: tuple[str, ...]


class AgentImages:
    """
    The images on one Engine.

    :param recipes: their recipes.
    :param choices: this machine's settings.
    """

    def __init__(self, engine: Engine, recipes: Recipes, choices: Choices) -> None:
        self._engine, self._recipes, self._choices = engine, recipes, choices
        self._builder = Builder(engine, choices)
        self._usual = Basis(choices.source, languages=choices.languages)
        self._source = choices.source or recipes.default_source
        self._one_at_a_time = DeferredLock()

    async def ensure(self, agent: str, progress: Progress, basis: Basis | None = None) -> str:
        """
        Build an agent's image unless it is up to date.

        If several callers ask at the same time, one builds and the others wait.

        :param basis: what it stands on; ``None``: what this machine's settings say for all projects.
        :returns: its reference.
        :raises UsageError: there is no such agent.
        :raises NoRelease: no release of it is chosen for this architecture.
        :raises BuildFailed: a step failed.
        """
        self._recipes.check(agent)
        basis = basis or self._usual
        async with self._one_at_a_time:
            source, base = await self._base(basis, progress)
            plan = self._recipes.agent(agent, base, source.architecture).of(basis.project)
            if not await self._builder.has(plan):
                given = {"DOWNLOADER": await self._downloader(base, progress)} if plan.downloads else {}
                await self._have(base, progress)
                await self._builder.build(plan, given, progress)
            return plan.reference

    async def downloader(self, progress: Progress) -> str:
        """
        Build the downloader image unless it is up to date.

        :returns: its reference.
        :raises BuildFailed: a step failed.
        """
        async with self._one_at_a_time:
            return await self._downloader((await self._base(self._usual, progress))[1], progress)

    async def states(self) -> list[AgentImage]:
        """:returns: each agent's image: the current one, else the newest, if there is any."""
        everything = await self._ours()
        there = [image for image in everything if PROJECT_LABEL not in image["Labels"]]
        current = self._current(await self._builder.source(self._source))
        found = [self._state(agent, current.get(agent), there) for agent in self._recipes.agents]
        found += [
            self._described(image, PROJECTS)
            for image in everything
            if PROJECT_LABEL in image["Labels"] and image["Labels"][NAME_LABEL] in self._recipes.agents
        ]
        broken = [AgentImage(agent, BROKEN, "", problem=why) for agent, why in self._recipes.broken.items()]
        return sorted([*found, *broken], key=lambda image: image.agent)

    async def prune(self) -> Pruned:
        """
        Remove images that would not be used again, and temporary images of builds that were killed.

        If the parent image is missing, the current images are unknown: then the newest of each name stay. Of those of a
        project that is still there, the newest of each name always stay.
        """
        there = await self._ours()
        current = self._current(await self._builder.source(self._source))
        newest = {
            (image["Labels"].get(PROJECT_LABEL, ""), image["Labels"][NAME_LABEL]): self._names(image)[0]
            for image in reversed(there)
        }
        kept = {plan.reference for plan in current.values()}
        kept |= {name for (of, _), name in newest.items() if (Path(of).is_dir() if of else not current)}
        names = [name for image in there for name in self._names(image) if name not in kept]
        removed: list[str] = []
        in_use: list[str] = []
        for name in (*names, *await self._leftovers()):
            (removed if await self._remove(name) else in_use).append(name)
        return Pruned(tuple(removed), tuple(in_use))

    async def _base(self, basis: Basis, progress: Progress) -> tuple[SourceImage, ImagePlan]:
        """:returns: the image that a base image stands on, which is there, and that base image as planned."""
        if basis.recipe is None:
            source = await self._builder.fetch(basis.source or self._recipes.default_source, progress)
        else:
            named = basis.recipe.needs.named_images(basis.recipe.arguments)
            sources = [await self._builder.fetch(name, progress) for name in named]
            await self._have(plan := self._recipes.project(basis.recipe, sources).of(basis.project), progress)
            source = await self._builder.fetch(plan.reference, progress)
        return source, self._recipes.base(source, basis.languages).of(basis.project)

    async def _downloader(self, base: ImagePlan, progress: Progress) -> str:
        downloader = self._recipes.downloader(base, self._choices.certificates)
        for plan in (base, downloader):
            await self._have(plan, progress)
        return downloader.reference

    async def _have(self, plan: ImagePlan, progress: Progress) -> None:
        if not await self._builder.has(plan):
            await self._builder.build(plan, {}, progress)

    async def _ours(self) -> list[dict[str, Any]]:
        """:returns: the named IronCurtain images, newest first, so that parents are removed last."""
        found = [image for image in await self._engine.list_images({NAME_LABEL: ""}) if self._names(image)]
        return sorted(found, key=lambda image: -int(image["Created"]))

    async def _leftovers(self) -> list[str]:
        """:returns: the ids of temporary images, except those of builds that may still run."""
        limit = time.time() - LEFTOVER_SECONDS
        found = await self._engine.list_images({BUILD_LABEL: ""})
        ours = [image for image in found if image["Labels"][BUILD_LABEL].startswith(self._recipes.prefix)]
        return [str(image["Id"]) for image in ours if image["Created"] < limit]

    async def _remove(self, name: str) -> bool:
        """:returns: whether it was removed; not if it is in use."""
        try:
            await self._engine.remove_image(name)
        except EngineError as e:
            if e.status == 409:
                return False
            if e.status != 404:
                raise
        return True

    def _current(self, source: SourceImage | None) -> dict[str, ImagePlan]:
        """:returns: every current image, by name; none if their parent is missing."""
        if source is None:
            return {}
        base = self._recipes.base(source, self._choices.languages)
        plans = {BASE: base, DOWNLOADER: self._recipes.downloader(base, self._choices.certificates)}
        for agent in self._recipes.agents:
            with suppress(NoRelease):
                plans[agent] = self._recipes.agent(agent, base, source.architecture)
        return plans

    def _state(self, agent: str, plan: ImagePlan | None, there: Sequence[Mapping[str, Any]]) -> AgentImage:
        images = [image for image in there if image["Labels"][NAME_LABEL] == agent]
        image = next((image for image in images if plan and plan.reference in self._names(image)), None)
        state = CURRENT if image else OLD
        if image is None and not images:
            lacking = any(not program.version for program in self._recipes.needed(agent))
            return AgentImage(agent, NO_RELEASE if lacking else MISSING, self._recipes.version(agent))
        return self._described(image or images[0], state)

    def _described(self, image: Mapping[str, Any], state: str) -> AgentImage:
        labels, size, created = image["Labels"], int(image["Size"]), int(image["Created"])
        version, project = str(labels.get(VERSION_LABEL, "")), str(labels.get(PROJECT_LABEL, ""))
        return AgentImage(labels[NAME_LABEL], state, version, self._names(image)[0], size, created, project=project)

    def _names(self, image: Mapping[str, Any]) -> list[str]:
        return [name for name in image.get("RepoTags") or () if name.startswith(self._recipes.prefix)]
