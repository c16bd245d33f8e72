"""
Images of agents that a team publishes: pulled by their digest, and used in place of those that are built here.

The Engine checks that what a registry sends has the digest that was asked for. What was pulled is recorded in the home,
so that no other image takes its place later.
"""

from __future__ import annotations

import time
from collections.abc import Collection

import msgspec

from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError
from ironcurtain.container.image_plans import NAME_LABEL, VERSION_LABEL
from ironcurtain.errors import ConfigurationError, Unavailable, UsageError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.container_section import check_pinned
from ironcurtain.home.layout import Home, private_directory, read_configuration


class PublishedImage(msgspec.Struct, frozen=True):
    """
    An image that was pulled.

    :param reference: its name and digest.
    :param id: as the Engine has it.
    :param agent: whose image it is.
    :param version: of the agent's program; may be empty.
    :param size: in bytes.
    :param pulled: when, in seconds since the epoch.
    """

    reference: str
    id: str
    agent: str
    version: str
    size: int
    pulled: float


class PublishedImages:
    """:param agents: names of the agents that have images."""

    def __init__(self, engine: Engine, home: Home, agents: Collection[str]) -> None:
        self._engine, self._agents = engine, agents
        self._file = home.path / "images" / "published.json"

    def known(self) -> dict[str, PublishedImage]:
        """:returns: the images that were pulled, by reference."""
        text = read_configuration(self._file)
        if text is None:
            return {}
        try:
            return msgspec.json.decode(text, type=dict[str, PublishedImage])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            raise ConfigurationError(str(self._file), f"is not what IronCurtain writes: {e}; remove it") from None

    async def have(self, reference: str) -> PublishedImage | None:
        """
        :returns: an image that was pulled, and is still there; else ``None``.
        :raises Unavailable: another image has taken its place.
        """
        known, found = self.known().get(reference), await self._engine.find_image(reference)
        if known is None or found is None:
            return None
        if found["Id"] != known.id:
            raise Unavailable(
                f"the image {reference} is not the one that was pulled ({known.id}), but {found['Id']}: find out why, "
                f"then remove it, and run: ironcurtain images pull {reference}"
            )
        return known

    async def pull(self, reference: str) -> PublishedImage:
        """
        Pull an image, check it, and record it.

        :param reference: with a digest.
        :raises UsageError: without one.
        :raises Unavailable: it cannot be pulled, is another one, or is no image of an agent.
        """
        try:
            check_pinned(reference)
        except ValueError as e:
            raise UsageError(str(e)) from None
        try:
            await self._engine.pull_image(reference)
        except EngineError as e:
            raise Unavailable(f"the image {reference} cannot be pulled: {e.message}") from None
        found = await self._engine.find_image(reference)
        digest = reference.rpartition("@")[2]
        if found is None or not any(name.endswith(f"@{digest}") for name in found.get("RepoDigests") or ()):
            raise Unavailable(f"the image that was pulled as {reference} has another digest: it is not used")
        labels = found["Config"].get("Labels") or {}
        if (agent := str(labels.get(NAME_LABEL, ""))) not in self._agents:
            raise Unavailable(
                f"{reference} is no image of an agent: its label {NAME_LABEL} is {agent!r}, and must be one of "
                f"{', '.join(sorted(self._agents))}, as in images that ironcurtain images build makes"
            )
        version, now = str(labels.get(VERSION_LABEL, "")), time.time()
        image = PublishedImage(reference, str(found["Id"]), agent, version, int(found["Size"]), now)
        private_directory(self._file.parent)
        everything = {**self.known(), reference: image}
        write_atomically(self._file, msgspec.json.format(msgspec.json.encode(everything)))
        return image

    async def pinned(self, name: str) -> str:
        """
        :param name: an image in a registry, by its tag.
        :returns: the reference to its content there now.
        :raises Unavailable: the registry does not tell.
        """
        try:
            digest = await self._engine.digest_of(name)
        except EngineError as e:
            raise Unavailable(f"the digest of {name} cannot be had: {e.message}") from None
        repository, colon, tag = name.partition("@")[0].rpartition(":")
        return f"{repository if colon and '/' not in tag else name.partition('@')[0]}@{digest}"
