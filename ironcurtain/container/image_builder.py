"""Build single images on a Docker Engine, or fetch them. A build leaves nothing behind."""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

from ironcurtain.container.build_advice import ANOTHER, advice
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError
from ironcurtain.container.image_choices import Choices
from ironcurtain.container.image_plans import (
    BUILD_LABEL,
    CONTENT_LABEL,
    DOCKERFILE,
    ImagePlan,
    SourceImage,
    archive,
    arguments,
)
from ironcurtain.container.versions import BASE
from ironcurtain.errors import Unavailable

TAIL_LINES = 12
"""Number of the last lines of a build that are shown if it fails."""

RECENT_LINES = 500
"""Number of the last lines among which the reason is searched; apt and dpkg print many more after it."""

Progress = Callable[[str], None]
"""Called with sentences about the progress, for people."""

STEP_CHARACTERS = 100
"""Maximum length in characters of a step's description."""

_STEP = re.compile(r"Step (?P<number>\d+/\d+) : (?P<words>.*)")
_SLOW = ("COPY ", "FROM ", "RUN ")
_NOISE = re.compile(r" ---> |Removing intermediate container |Successfully ")


class BuildFailed(Unavailable):
    """
    An image could not be built. Nothing of it is left.

    :param name: the image's name.
    :param said: the last lines of the build.
    :param hint: says what to do, in a sentence.
    :param how: what could not be done.
    """

    code = "BUILD_FAILED"

    def __init__(self, name: str, why: str, said: tuple[str, ...], hint: str = "", how: str = "built") -> None:
        words = "\n  ".join([f"the image {name} could not be {how}: {why}", *filter(str.strip, said)])
        super().__init__(f"{words}\n{hint}" if hint else words)
        self.name, self.said = name, said


class Builder:
    """
    Builds images on one Engine.

    :param choices: this machine's settings.
    """

    def __init__(self, engine: Engine, choices: Choices) -> None:
        self._engine, self._choices = engine, choices

    async def source(self, name: str) -> SourceImage | None:
        """
        :returns: the parent image as the Engine has it; ``None`` if it is missing.
        :raises BuildFailed: no image can have this name.
        """
        try:
            found = await self._engine.find_image(name)
        except EngineError as e:
            raise BuildFailed(name, e.message, (), ANOTHER, "found") from e
        if found is None:
            return None
        triggers = bool((found.get("Config") or {}).get("OnBuild"))
        return SourceImage(name, str(found["Id"]), str(found["Architecture"]), triggers)

    async def fetch(self, name: str, progress: Progress) -> SourceImage:
        """
        Pull the parent image if it is missing.

        :raises BuildFailed: it cannot be pulled, or would run commands in the builds of images on it: these can have
            a network although its own build had none.
        """
        found = await self._fetched(name, progress)
        if found.has_triggers:
            raise BuildFailed(name, "it has ONBUILD instructions, which are not run", (), ANOTHER, "used")
        return found

    async def _fetched(self, name: str, progress: Progress) -> SourceImage:
        if (found := await self.source(name)) is not None:
            return found
        progress(f"Fetching the image {name}.")
        try:
            await self._engine.pull_image(name)
        except EngineError as e:
            raise BuildFailed(name, e.message, (), ANOTHER, "fetched") from e
        if (found := await self.source(name)) is None:
            raise BuildFailed(name, "it was removed right after the download", ())
        return found

    async def has(self, plan: ImagePlan) -> bool:
        """:returns: whether an image exists as planned."""
        found = await self._engine.find_image(plan.reference)
        return found is not None and (found["Config"].get("Labels") or {}).get(CONTENT_LABEL) == plan.content

    async def build(self, plan: ImagePlan, given: Mapping[str, str], progress: Progress) -> None:
        """
        Build an image.

        :param given: arguments besides those of the plan, which do not affect its content.
        :raises BuildFailed: a step failed.
        """
        progress(f"Building the image {plan.reference}.")
        await self.run(
            plan.name,
            plan.reference,
            plan.files,
            {**plan.arguments, **given},
            plan.labels,
            progress,
            network=plan.network,
            target=plan.target,
            file=plan.file,
        )

    async def run(
        self,
        name: str,
        tag: str,
        files: Mapping[str, bytes],
        given: Mapping[str, str],
        labels: Mapping[str, str],
        progress: Progress,
        *,
        network: str = "",
        target: str = "",
        file: str = "",
    ) -> tuple[str, ...]:
        """
        Build, even if the image exists.

        :param given: arguments; those that the Dockerfile does not declare are left out.
        :param network: what its steps can reach; empty: as the settings say.
        :param target: the stage that becomes the image; empty: the last one.
        :param file: as :attr:`ImagePlan.file`.
        :returns: the last lines of output of its steps.
        :raises BuildFailed: a step failed.
        """
        mark = f"{tag}-{secrets.token_hex(8)}"
        values = {"NPM_CONFIG_REGISTRY": self._choices.registry, **given, "BUILD": mark}
        asked = arguments(files[DOCKERFILE])
        report = _Report(name, progress)
        try:
            await self._engine.build_image(
                archive(files),
                tag=tag,
                labels=labels,
                arguments={key: value for key, value in values.items() if key in asked and value},
                network=network or self._choices.network,
                target=target,
                progress=report,
            )
        except EngineError as e:
            hint = advice(
                "\n".join((e.message, *report.recent)), files[DOCKERFILE].decode("utf-8", "replace"),
                network or self._choices.network, values.get("BASE", "") if name == BASE else "",
            )  # fmt: skip
            raise BuildFailed(f"of {file}" if file else name, e.message, report.said, hint) from e
        finally:
            await self._discard(mark)
        return report.said

    async def _discard(self, mark: str) -> None:
        for image in await self._engine.list_images({BUILD_LABEL: mark}):
            with suppress(EngineError):  # it may be gone already, or in use by another build
                await self._engine.remove_image(image["Id"])


class _Report:
    def __init__(self, name: str, progress: Progress) -> None:
        self._name, self._progress = name, progress
        self.recent: deque[str] = deque(maxlen=RECENT_LINES)

    @property
    def said(self) -> tuple[str, ...]:
        """The last lines."""
        return tuple(self.recent)[-TAIL_LINES:]

    def __call__(self, line: str) -> None:
        if step := _STEP.fullmatch(line):
            if step["words"].startswith(_SLOW):
                self._progress(f"{self._name} {step['number']}: {' '.join(step['words'].split())[:STEP_CHARACTERS]}")
        elif not _NOISE.match(line):
            self.recent.append(line)
