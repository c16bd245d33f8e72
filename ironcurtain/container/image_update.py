"""Update the releases that images are built from to the newest ones."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from ironcurtain.container.engine import Engine
from ironcurtain.container.image_builder import Builder, BuildFailed, Progress
from ironcurtain.container.image_choices import Choices
from ironcurtain.container.image_plans import PREFIX, QUESTION, Recipes
from ironcurtain.container.images import AgentImages
from ironcurtain.container.versions import BASE, ImageProgram, NoRelease, Release, moved, question, read_answer


class Move(msgspec.Struct, frozen=True):
    """
    The result for one program.

    :param before: its release so far; empty if there was none.
    :param release: its newest one; ``None`` if there is a problem.
    :param problem: why it is not updated, for people; empty if it is.
    """

    name: str
    before: str
    release: Release | None
    problem: str = ""


class Updates:
    """
    Finds newer releases. It neither chooses nor builds anything.

    :param recipes: the current recipes of the images.
    :param choices: this machine's settings.
    """

    def __init__(self, engine: Engine, recipes: Recipes, choices: Choices) -> None:
        self._engine, self._recipes = engine, recipes
        self._images = AgentImages(engine, recipes, choices)
        self._builder = Builder(engine, choices)
        self._source = choices.source or recipes.default_source

    async def find(self, names: Sequence[str], progress: Progress) -> list[Move]:
        """
        Find the newest releases of some agents' programs.

        :param names: names of agents; ``base`` stands for Debian's packages in the base image, whose newest release is
            today's. Empty: ``base`` and every agent with a chosen release.
        :raises UsageError: there is no image of such a name.
        :raises BuildFailed: the image that finds releases cannot be built.
        """
        agents = [name for name in names or self._usual() if name != BASE]
        for agent in agents:
            self._recipes.check(agent)
        moves = [self._today()] if BASE in names or not names else []
        if not agents:
            return moves
        downloader = await self._images.downloader(progress)
        return moves + [await self._move(p, downloader, progress) for p in self._recipes.chosen(agents)]

    def _usual(self) -> list[str]:
        return [agent for agent in self._recipes.agents if all(p.version for p in self._recipes.needed(agent))]

    def _today(self) -> Move:
        today = datetime.fromtimestamp(time.time(), UTC).date().isoformat()
        return Move(BASE, self._recipes.programs[BASE].version, Release(BASE, today, {}))

    async def _move(self, program: ImageProgram, downloader: str, progress: Progress) -> Move:
        progress(f"Asking for the newest release of {program.name}.")
        try:
            release = await self._ask(program, downloader)
            source = await self._builder.source(self._source)
            if source is not None:
                moved({program.name: program}, [release])[program.name].arguments(source.architecture)
        except BuildFailed as e:
            return Move(program.name, program.version, None, "\n  ".join([f"{program.follows} does not tell", *e.said]))
        except NoRelease as e:
            return Move(program.name, program.version, None, f"the newest is not published for {e.architecture}")
        return Move(program.name, program.version, release)

    async def _ask(self, program: ImageProgram, downloader: str) -> Release:
        temporary = f"{PREFIX}{QUESTION}:{secrets.token_hex(8)}"
        files, given = self._recipes.folders[QUESTION], {"DOWNLOADER": downloader, "QUESTION": question(program)}
        said = await self._builder.run(QUESTION, temporary, files, given, {}, lambda line: None)
        answers = [answer for line in said if (answer := read_answer(line)) and answer.name == program.name]
        if not answers:
            raise BuildFailed(QUESTION, "it gave no answer", said)
        return answers[-1]
