"""
The images of the agents: made when they are first needed, kept while nothing that shapes them changes.

A build tells people its progress, and its last words if it fails; it leaves nothing behind.
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
On what is removed again when a build ends: the image that fetched a program, or asked a question. Its value begins with
the name of the image that was built.
"""

TAIL_LINES = 12
"""How many of the last lines of a build are kept, to be shown if it fails."""

Progress = Callable[[str], None]
"""Gets sentences for people about what is being done."""

STEP_CHARACTERS = 100
"""How much of a step is shown (one line)."""

_STEP = re.compile(r"Step (?P<number>\d+/\d+) : (?P<words>.*)")
_SLOW = ("COPY ", "FROM ", "RUN ")
_NOISE = re.compile(r" ---> |Removing intermediate container |Successfully ")


LEFTOVER_SECONDS = 3600
"""Age from which on the remains of a build are taken for those of one that was killed."""


class BuildFailed(Unavailable):
    """
    An image could not be built. Nothing of it is left.

    :param name: of the image.
    :param said: the last lines of the build.
    """

    code = "BUILD_FAILED"

    def __init__(self, name: str, why: str, said: tuple[str, ...]) -> None:
        super().__init__("\n  ".join([f"the image {name} could not be built: {why}", *said]))
        self.name, self.said = name, said


class Builder:
    """
    Builds images on one Engine.

    :param choices: this machine's.
    """

    def __init__(self, engine: Engine, choices: Choices) -> None:
        self._engine, self._choices = engine, choices

    async def find(self, reference: str) -> dict[str, Any] | None:
        """:returns: everything about an image, as the Engine says it; ``None`` if there is none of this name."""
        try:
            return await self._engine.inspect_image(reference)
        except EngineError as e:
            if e.status == 404:
                return None
            raise

    async def source(self, name: str) -> SourceImage | None:
        """:returns: what the Engine has under the name of the image to stand on; ``None`` if it is not there."""
        found = await self.find(name)
        return None if found is None else SourceImage(name, str(found["Id"]), str(found["Architecture"]))

    async def fetch(self, name: str, progress: Progress) -> SourceImage:
        """
        Fetch the image to stand on, if it is not there.

        :raises BuildFailed: it cannot be fetched.
        """
        if (found := await self.source(name)) is not None:
            return found
        progress(f"Fetching the image {name}.")
        # A build of nothing but this line has the Engine fetch the image, and gives it one more name.
        temporary = f"{PREFIX}fetched:{secrets.token_hex(8)}"
        await self.run(name, temporary, {DOCKERFILE: f"FROM {name}\n".encode()}, {}, {}, progress)
        await self._engine.remove_image(temporary)
        if (found := await self.source(name)) is None:
            raise BuildFailed(name, "it went away as soon as it was there", ())
        return found

    async def has(self, plan: ImagePlan) -> bool:
        """:returns: whether an image is there, as planned."""
        found = await self.find(plan.reference)
        return found is not None and (found["Config"].get("Labels") or {}).get(CONTENT_LABEL) == plan.content

    async def build(self, plan: ImagePlan, given: Mapping[str, str], progress: Progress) -> None:
        """
        Build an image.

        :param given: arguments besides those of the plan, which do not shape it.
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
        Build, whatever is there already.

        :param given: arguments; those that the Dockerfile does not ask for are left out.
        :returns: the last lines that its steps printed.
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
            with suppress(EngineError):  # it may be gone already, or hold up what somebody else builds
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

    async def _downloader(self, base: ImagePlan, progress: Progress) -> str:
        downloader = self._recipes.downloader(base, self._choices.certificates)
        for plan in (base, downloader):
            await self._have(plan, progress)
        return downloader.reference

    async def _have(self, plan: ImagePlan, progress: Progress) -> None:
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

    def _current(self, source: SourceImage | None) -> dict[str, ImagePlan]:
        """:returns: every image that would be used now, by name; none where what they stand on is not there."""
        if source is None:
            return {}
        base = self._recipes.base(source)
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
