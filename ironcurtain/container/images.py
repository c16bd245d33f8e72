"""
The images of the agents: built when first needed, and rebuilt when their content changes.

A build reports progress, and its last output if it fails. It leaves nothing behind.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import DeferredLock

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError
from ironcurtain.container.image_choices import Choices
from ironcurtain.container.image_plans import (
    CONTENT_LABEL,
    DOCKERFILE,
    DOWNLOADER,
    NAME_LABEL,
    PREFIX,
    VERSION_LABEL,
    ImagePlan,
    Recipes,
    SourceImage,
    archive,
    arguments,
)
from ironcurtain.container.versions import BASE, NoRelease
from ironcurtain.errors import Unavailable

BUILD_LABEL = "ironcurtain.build"
"""
Label of temporary images, which are removed when a build ends. Its value begins with the name of the image that was
built.
"""

TAIL_LINES = 12
"""Number of the last lines of a build that are shown if it fails."""

Progress = Callable[[str], None]
"""Called with sentences about the progress, for people."""

STEP_CHARACTERS = 100
"""Maximum length in characters of a step's description."""

_STEP = re.compile(r"Step (?P<number>\d+/\d+) : (?P<words>.*)")
_SLOW = ("COPY ", "FROM ", "RUN ")
_NOISE = re.compile(r" ---> |Removing intermediate container |Successfully ")


LEFTOVER_SECONDS = 3600
"""Age in seconds at which temporary images are assumed to belong to a build that was killed."""


class BuildFailed(Unavailable):
    """
    An image could not be built. Nothing of it is left.

    :param name: the image's name.
    :param said: the last lines of the build.
    """

    code = "BUILD_FAILED"

    def __init__(self, name: str, why: str, said: tuple[str, ...]) -> None:
        super().__init__("\n  ".join([f"the image {name} could not be built: {why}", *said]))
        self.name, self.said = name, said


class Builder:
    """
    Builds images on one Engine.

    :param choices: this machine's settings.
    """

    def __init__(self, engine: Engine, choices: Choices) -> None:
        self._engine, self._choices = engine, choices

    async def find(self, reference: str) -> dict[str, Any] | None:
        """:returns: the Engine's description of an image; ``None`` if there is none of this name."""
        try:
            return await self._engine.inspect_image(reference)
        except EngineError as e:
            if e.status == 404:
                return None
            raise

    async def source(self, name: str) -> SourceImage | None:
        """:returns: the parent image as the Engine has it; ``None`` if it is missing."""
        found = await self.find(name)
        return None if found is None else SourceImage(name, str(found["Id"]), str(found["Architecture"]))

    async def fetch(self, name: str, progress: Progress) -> SourceImage:
        """
        Pull the parent image if it is missing.

        :raises BuildFailed: it cannot be pulled.
        """
        if (found := await self.source(name)) is not None:
            return found
        progress(f"Fetching the image {name}.")
        # A build with only a FROM line makes the Engine pull the image, and gives it another name.
        temporary = f"{PREFIX}fetched:{secrets.token_hex(8)}"
        await self.run(name, temporary, {DOCKERFILE: f"FROM {name}\n".encode()}, {}, {}, progress)
        await self._engine.remove_image(temporary)
        if (found := await self.source(name)) is None:
            raise BuildFailed(name, "it was removed right after the download", ())
        return found

    async def has(self, plan: ImagePlan) -> bool:
        """:returns: whether an image exists as planned."""
        found = await self.find(plan.reference)
        return found is not None and (found["Config"].get("Labels") or {}).get(CONTENT_LABEL) == plan.content

    async def build(self, plan: ImagePlan, given: Mapping[str, str], progress: Progress) -> None:
        """
        Build an image.

        :param given: arguments besides those of the plan, which do not affect its content.
        :raises BuildFailed: a step failed.
        """
        progress(f"Building the image {plan.reference}.")
        await self.run(plan.name, plan.reference, plan.files, {**plan.arguments, **given}, plan.labels, progress)

    async def run(
        self,
        name: str,
        tag: str,
        files: Mapping[str, bytes],
        given: Mapping[str, str],
        labels: Mapping[str, str],
        progress: Progress,
    ) -> tuple[str, ...]:
        """
        Build, even if the image exists.

        :param given: arguments; those that the Dockerfile does not declare are left out.
        :returns: the last lines of output of its steps.
        :raises BuildFailed: a step failed.
        """
        mark = f"{tag}-{secrets.token_hex(8)}"
        values = {"NPM_CONFIG_REGISTRY": self._choices.registry, "BUILD": mark, **given}
        asked = arguments(files[DOCKERFILE])
        report = _Report(name, progress)
        try:
            await self._engine.build_image(
                archive(files),
                tag=tag,
                labels=labels,
                arguments={key: value for key, value in values.items() if key in asked and value},
                network=self._choices.network,
                progress=report,
            )
        except EngineError as e:
            raise BuildFailed(name, e.message, tuple(report.said)) from e
        finally:
            await self._discard(mark)
        return tuple(report.said)

    async def _discard(self, mark: str) -> None:
        for image in await self._engine.list_images({BUILD_LABEL: mark}):
            with suppress(EngineError):  # it may be gone already, or in use by another build
                await self._engine.remove_image(image["Id"])


class _Report:
    def __init__(self, name: str, progress: Progress) -> None:
        self._name, self._progress = name, progress
        self.said: deque[str] = deque(maxlen=TAIL_LINES)

    def __call__(self, line: str) -> None:
        if step := _STEP.fullmatch(line):
            if step["words"].startswith(_SLOW):
                self._progress(f"{self._name} {step['number']}: {' '.join(step['words'].split())[:STEP_CHARACTERS]}")
        elif not _NOISE.match(line):
            self.said.append(line)


CURRENT, OLD, MISSING, NO_RELEASE, BROKEN = "current", "old", "missing", "no release", "broken"
"""
States of an agent's image: up to date; outdated; missing; not buildable before `update`; of another package, and
unusable.
"""


@dataclass(frozen=True, slots=True)
class AgentImage:
    """
    The image of one agent.

    :param state: :data:`CURRENT`, :data:`OLD`, :data:`MISSING`, :data:`NO_RELEASE` or :data:`BROKEN`.
    :param version: version of the agent in the existing image, else in the one that would be built; may be empty.
    :param reference: the existing image; empty if there is none.
    :param size: in bytes, including layers shared with others.
    :param created: when, in seconds since the epoch.
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
        self._source = choices.source or recipes.default_source
        self._one_at_a_time = DeferredLock()

    async def ensure(self, agent: str, progress: Progress) -> str:
        """
        Build an agent's image unless it is up to date.

        If several callers ask at the same time, one builds and the others wait.

        :returns: its reference.
        :raises UsageError: there is no such agent.
        :raises NoRelease: no release of it is chosen for this architecture.
        :raises BuildFailed: a step failed.
        """
        self._recipes.check(agent)
        async with self._one_at_a_time:
            source = await self._builder.fetch(self._source, progress)
            base = self._recipes.base(source, self._choices.languages)
            plan = self._recipes.agent(agent, base, source.architecture)
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
            source = await self._builder.fetch(self._source, progress)
            return await self._downloader(self._recipes.base(source, self._choices.languages), progress)

    async def states(self) -> list[AgentImage]:
        """:returns: each agent's image: the current one, else the newest, if there is any."""
        there = await self._ours()
        current = self._current(await self._builder.source(self._source))
        found = [self._state(agent, current.get(agent), there) for agent in self._recipes.agents]
        broken = [AgentImage(agent, BROKEN, "", problem=why) for agent, why in self._recipes.broken.items()]
        return sorted([*found, *broken], key=lambda image: image.agent)

    async def prune(self) -> Pruned:
        """
        Remove images that would not be used again, and temporary images of builds that were killed.

        If the parent image is missing, the current images are unknown: then the newest of each name stay.
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
        limit = self._engine.clock.seconds() - LEFTOVER_SECONDS
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
        image = image or images[0]
        version, created = str(image["Labels"].get(VERSION_LABEL, "")), int(image["Created"])
        return AgentImage(agent, state, version, self._names(image)[0], int(image["Size"]), created)

    def _names(self, image: Mapping[str, Any]) -> list[str]:
        return [name for name in image.get("RepoTags") or () if name.startswith(self._recipes.prefix)]
