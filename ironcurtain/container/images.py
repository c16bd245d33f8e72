"""The images of the agents: made when they are first needed, kept while nothing that shapes them changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import DeferredLock

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError
from ironcurtain.container.image_builds import BUILD_LABEL, Builder, Progress
from ironcurtain.container.image_choices import Choices
from ironcurtain.container.image_plans import DOWNLOADER, NAME_LABEL, VERSION_LABEL, Plan, Recipes, Source
from ironcurtain.container.versions import BASE, NoRelease

LEFTOVER_SECONDS = 3600
"""Age from which on the remains of a build are taken for those of one that was killed."""

CURRENT, OLD, MISSING, NO_RELEASE, BROKEN = "current", "old", "missing", "no release", "broken"
"""
States of an agent's image: as it would be built now; otherwise; not there; it cannot be built before `update`; another
package brings it, and it cannot be used.
"""


@dataclass(frozen=True, slots=True)
class AgentImage:
    """
    The image of one agent.

    :param state: :data:`CURRENT`, :data:`OLD`, :data:`MISSING`, :data:`NO_RELEASE` or :data:`BROKEN`.
    :param version: of the agent, in the image that is there; else of the one that would be built; may be empty.
    :param reference: of the image that is there; empty if there is none.
    :param size: in bytes, what it shares with others included.
    :param created: when, in seconds since 1970.
    :param problem: why it cannot be used.
    """

    agent: str
    state: str
    version: str
    reference: str = ""
    size: int = 0
    created: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Pruned:
    """
    :param removed: names or ids of the images that are gone.
    :param in_use: names of those that a container still needs.
    """

    removed: tuple[str, ...]
    in_use: tuple[str, ...]


class AgentImages:
    """
    The images on one Engine.

    :param recipes: what they are.
    :param choices: this machine's.
    """

    def __init__(self, engine: Engine, recipes: Recipes, choices: Choices) -> None:
        self._engine, self._recipes, self._choices = engine, recipes, choices
        self._builder = Builder(engine, choices)
        self._source = choices.source or recipes.default_source
        self._one_at_a_time = DeferredLock()

    async def ensure(self, agent: str, progress: Progress) -> str:
        """
        Make sure that an agent's image is there as it would be built now: build it if it is not.

        Of several that ask at the same time, one builds and the others wait.

        :returns: its reference.
        :raises UsageError: there is no such agent.
        :raises NoRelease: no release of it is chosen for this architecture.
        :raises BuildFailed: a step failed.
        """
        self._recipes.check(agent)
        async with self._one_at_a_time:
            source = await self._builder.fetch(self._source, progress)
            base = self._recipes.base(source)
            plan = self._recipes.agent(agent, base, source.architecture)
            if not await self._builder.has(plan):
                given = {"DOWNLOADER": await self._downloader(base, progress)} if plan.downloads else {}
                await self._have(base, progress)
                await self._builder.build(plan, given, progress)
            return plan.reference

    async def downloader(self, progress: Progress) -> str:
        """
        Make sure that the image that fetches programs is there.

        :returns: its reference.
        :raises BuildFailed: a step failed.
        """
        async with self._one_at_a_time:
            source = await self._builder.fetch(self._source, progress)
            return await self._downloader(self._recipes.base(source), progress)

    async def states(self) -> list[AgentImage]:
        """:returns: each agent's image: the current one, else the newest, if there is any."""
        there = await self._ours()
        current = self._current(await self._builder.source(self._source))
        found = [self._state(agent, current.get(agent), there) for agent in self._recipes.agents]
        broken = [AgentImage(agent, BROKEN, "", problem=why) for agent, why in self._recipes.broken.items()]
        return sorted([*found, *broken], key=lambda image: image.agent)

    async def prune(self) -> Pruned:
        """
        Remove our images that would not be used again, and what builds that were killed left.

        Where the image that all stand on is not there, nobody can say which those are: the newest of each stay.
        """
        there = await self._ours()
        current = self._current(await self._builder.source(self._source))
        newest = {image["Labels"][NAME_LABEL]: self._names(image)[0] for image in reversed(there)}
        kept = {plan.reference for plan in current.values()} if current else set(newest.values())
        names = [name for image in there for name in self._names(image) if name not in kept]
        removed: list[str] = []
        in_use: list[str] = []
        for name in (*names, *await self._leftovers()):
            (removed if await self._remove(name) else in_use).append(name)
        return Pruned(tuple(removed), tuple(in_use))

    async def _downloader(self, base: Plan, progress: Progress) -> str:
        downloader = self._recipes.downloader(base, self._choices.certificates)
        for plan in (base, downloader):
            await self._have(plan, progress)
        return downloader.reference

    async def _have(self, plan: Plan, progress: Progress) -> None:
        if not await self._builder.has(plan):
            await self._builder.build(plan, {}, progress)

    async def _ours(self) -> list[dict[str, Any]]:
        """:returns: those of our images that have a name, the newest first, so that what others stand on goes last."""
        found = [image for image in await self._engine.list_images({NAME_LABEL: ""}) if self._names(image)]
        return sorted(found, key=lambda image: -int(image["Created"]))

    async def _leftovers(self) -> list[str]:
        """:returns: the ids of what builds did not remove, but for those that may still run."""
        limit = self._engine.clock.seconds() - LEFTOVER_SECONDS
        found = await self._engine.list_images({BUILD_LABEL: ""})
        ours = [image for image in found if image["Labels"][BUILD_LABEL].startswith(self._recipes.prefix)]
        return [str(image["Id"]) for image in ours if image["Created"] < limit]

    async def _remove(self, name: str) -> bool:
        """:returns: whether it is gone; not if something still needs it."""
        try:
            await self._engine.remove_image(name)
        except EngineError as e:
            if e.status == 409:
                return False
            if e.status != 404:
                raise
        return True

    def _current(self, source: Source | None) -> dict[str, Plan]:
        """:returns: every image that would be used now, by name; none where what they stand on is not there."""
        if source is None:
            return {}
        base = self._recipes.base(source)
        plans = {BASE: base, DOWNLOADER: self._recipes.downloader(base, self._choices.certificates)}
        for agent in self._recipes.agents:
            with suppress(NoRelease):
                plans[agent] = self._recipes.agent(agent, base, source.architecture)
        return plans

    def _state(self, agent: str, plan: Plan | None, there: Sequence[Mapping[str, Any]]) -> AgentImage:
        images = [image for image in there if image["Labels"][NAME_LABEL] == agent]
        image = next((image for image in images if plan and plan.reference in self._names(image)), None)
        state = CURRENT if image else OLD
        if image is None and not images:
            lacking = any(not program.version for program in self._recipes.needed(agent))
            return AgentImage(agent, NO_RELEASE if lacking else MISSING, self._recipes.version(agent))
        image = image or images[0]
        version, created = str(image["Labels"].get(VERSION_LABEL, "")), int(image["Created"])
        return AgentImage(agent, state, version, self._names(image)[0], int(image["Size"]), created)

    def _names(self, image: Mapping[str, Any]) -> list[str]:
        return [name for name in image.get("RepoTags") or () if name.startswith(self._recipes.prefix)]
