from __future__ import annotations

import contextlib
import secrets
from collections.abc import Awaitable
from pathlib import Path

from twisted.internet.defer import Deferred, maybeDeferred

from ironcurtain.container.image_plans import Basis
from ironcurtain.container.project_images import ProjectImages
from ironcurtain.container.published_images import PublishedImage, PublishedImages
from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.layout import Home
from tests import engine as test_engine
from tests.audit.doubles import scratch
from tests.container.registry import Registry
from tests.container.support import EngineCase

AGENT = {"ironcurtain.image": "claude-code", "ironcurtain.version": "9.9"}


class PublishedCase(EngineCase):
    """A registry of this process, from which the real Engine pulls."""

    def setUp(self) -> None:
        """Start it."""
        super().setUp()
        self.registry = Registry()
        port = self.registry.start()
        self.addCleanup(lambda: maybeDeferred(port.stopListening))
        self.mark = secrets.token_hex(4)
        self.repository = f"team/agent-{self.mark}"
        self.name = f"{self.registry.address}/{self.repository}"
        top: Path = scratch(self)
        self.home = Home(top / "home", top / "run")
        self.published = PublishedImages(self.engine, self.home, ["claude-code"])

    def publish(self, tag: str = "1", **labels: str) -> str:
        """:returns: the reference to a new image in the registry."""
        content = {"etc/mark": f"{self.mark} {tag}".encode()}
        reference = f"{self.name}@{self.registry.add(self.repository, tag, labels or AGENT, content)}"
        self.addCleanup(self._remove, reference)
        return reference

    def _remove(self, reference: str) -> None:
        with contextlib.suppress(AssertionError):
            test_engine.call("DELETE", f"/images/{reference}?force=1")

    async def refused(self, work: Awaitable[PublishedImage], error: type[Exception] = Unavailable) -> str:
        """:returns: why something is refused."""

        async def main() -> PublishedImage:
            return await work

        return str(await self.assertFailure(Deferred.fromCoroutine(main()), error))


class PullTests(PublishedCase):
    async def test_an_image_is_pulled_by_its_digest_and_recorded(self) -> None:
        reference = self.publish()
        image = await self.published.pull(reference)
        self.assertEqual((image.agent, image.version, image.reference), ("claude-code", "9.9", reference))
        self.assertEqual(await self.published.have(reference), image)
        self.assertIn(f"/v2/{self.repository}/manifests/{reference.partition('@')[2]}", self.registry.asked)

    async def test_a_tag_is_refused_with_the_command_that_shows_the_digest(self) -> None:
        reference = self.publish()
        words = await self.refused(self.published.pull(f"{self.name}:1"), UsageError)
        self.assertIn(f"ironcurtain images digest {self.name}:1", words)
        self.assertEqual(await self.published.pinned(f"{self.name}:1"), reference)
        self.assertEqual(self.published.known(), {})

    async def test_a_registry_that_sends_another_image_is_not_believed(self) -> None:
        reference = self.publish()
        other = self.publish("2")
        self.registry.replace(self.repository, reference.partition("@")[2], other.partition("@")[2])
        self.assertIn("cannot be pulled", await self.refused(self.published.pull(reference)))
        self.assertIsNone(await self.published.have(reference))

    async def test_an_image_of_no_agent_is_refused(self) -> None:
        reference = self.publish("1", other="label")
        self.assertIn("is no image of an agent", await self.refused(self.published.pull(reference)))
        self.assertEqual(self.published.known(), {})

    async def test_what_a_registry_does_not_have_is_named(self) -> None:
        words = await self.refused(self.published.pull(f"{self.name}@sha256:{'0' * 64}"))
        self.assertIn("cannot be pulled", words)

    async def test_a_removed_image_is_pulled_again_when_a_session_needs_it(self) -> None:
        reference, said = self.publish(), list[str]()
        images = ProjectImages(self.engine, self.home, ContainerSettings(), {})
        self.assertEqual(await images.ensure("claude-code", said.append, Basis(published=(reference,))), reference)
        self.assertEqual(said, [f"Fetching the image {reference}."])
        self.assertEqual(await images.ensure("claude-code", said.append, Basis(published=(reference,))), reference)
        self.assertEqual(len(said), 1)
        test_engine.call("DELETE", f"/images/{reference}?force=1")
        await images.ensure("claude-code", said.append, Basis(published=(reference,)))
        self.assertEqual(len(said), 2)

    async def test_another_image_in_the_place_of_the_recorded_one_is_refused(self) -> None:
        reference = self.publish()
        image = await self.published.pull(reference)
        record = self.home.path / "images" / "published.json"
        record.write_text(record.read_text().replace(image.id, f"sha256:{'1' * 64}"))

        async def have() -> PublishedImage | None:
            return await self.published.have(reference)

        failed = await self.assertFailure(Deferred.fromCoroutine(have()), Unavailable)
        self.assertIn("is not the one that was pulled", str(failed))
