"""Build one image: with progress for people, the last words of a build that failed, and nothing left behind."""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError
from ironcurtain.container.image_choices import Choices
from ironcurtain.container.image_context import archive, arguments
from ironcurtain.container.image_plans import CONTENT_LABEL, DOCKERFILE, PREFIX, Plan, Source
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

    async def source(self, name: str) -> Source | None:
        """:returns: what the Engine has under the name of the image to stand on; ``None`` if it is not there."""
        found = await self.find(name)
        return None if found is None else Source(name, str(found["Id"]), str(found["Architecture"]))

    async def fetch(self, name: str, progress: Progress) -> Source:
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

    async def has(self, plan: Plan) -> bool:
        """:returns: whether an image is there, as planned."""
        found = await self.find(plan.reference)
        return found is not None and (found["Config"].get("Labels") or {}).get(CONTENT_LABEL) == plan.content

    async def build(self, plan: Plan, given: Mapping[str, str], progress: Progress) -> None:
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
