from __future__ import annotations

import json
import secrets
import time
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, gatherResults

from ironcurtain.container.image_builder import BuildFailed
from ironcurtain.container.image_choices import Choices, shipped_folders
from ironcurtain.container.image_plans import Recipes, archive
from ironcurtain.container.image_update import Updates
from ironcurtain.container.images import CURRENT, LEFTOVER_SECONDS, MISSING, NO_RELEASE, OLD, AgentImages
from ironcurtain.container.spec import ContainerSpec
from ironcurtain.container.versions import ImageProgram, NoRelease, Release, moved
from ironcurtain.errors import UsageError
from tests import engine as test_engine
from tests.container.support import EngineCase

SUM = "sha512-" + "E" * 86 + "=="
OTHER_SUM = "sha512-" + "F" * 86 + "=="

# As few steps as possible: for each, whatever it does, the Engine starts processes that take a tenth of a second.
BASE = "ARG BASE=nosuch.invalid/image\nFROM ${BASE}\nENV MARK=%s\n"

DOWNLOADER = b"ARG BASE\nFROM ${BASE}\nCOPY . /\n"

NEWEST = b"""#!/bin/sh
case $1 in
    toy) echo newest toy 1.1 any=%s ;;
    foreign) echo newest foreign 3 s390x=%s ;;
    silent) ;;
    *) echo no answer for $1; exit 4 ;;
esac
""" % (OTHER_SUM.encode(), SUM.encode())

AGENT = """
ARG BASE
ARG DOWNLOADER
FROM ${DOWNLOADER} AS download
ARG BUILD
LABEL ironcurtain.build=${BUILD}
ARG %s_PACKAGE
RUN %s
FROM ${BASE}
COPY --from=download /out/ /
"""


def _agent(name: str, command: str) -> dict[str, bytes]:
    return {"Dockerfile": (AGENT % (name.upper(), command)).encode()}


def _program(name: str, *places: str) -> ImageProgram:
    packages = {place: f"{name}@{{version}}" for place in places}
    return ImageProgram(name, "1.0", name, packages, dict.fromkeys(places, SUM))


class ImageCase(EngineCase):
    """Small images of our own, under names that nobody else has."""

    def setUp(self) -> None:
        """Describe them."""
        test_engine.engine()
        self.mark = secrets.token_hex(8)
        self.prefix = f"ic-test-{self.mark}/"
        self.addCleanup(self._remove_images)  # after the containers that use them
        super().setUp()
        folders = {
            "base": {"Dockerfile": (BASE % self.mark).encode()},
            "downloader": {"Dockerfile": DOWNLOADER, "bin/newest": NEWEST},
            "question": shipped_folders()["question"],
            "toy": _agent("toy", "mkdir /out && echo $TOY_PACKAGE >/out/toy"),
            "broken": _agent("broken", "echo it cannot be done; exit 3"),
            "slow": _agent("slow", "sleep 7777"),
            "foreign": _agent("foreign", "true"),
        }
        programs = {
            "base": ImageProgram("base", "2026-01-01", "", {}, {}),
            **{name: _program(name, "any") for name in ("toy", "broken", "slow")},
            "foreign": ImageProgram("foreign", "", "foreign", {"s390x": "x@{version}"}, {}),
        }
        self.recipes = Recipes(folders, programs, self.prefix)
        self.said: list[str] = []

    def spec(self, **changes: Any) -> ContainerSpec:
        """:returns: a small container of a given image."""
        image = changes.pop("image")
        return replace(super().spec(**changes), image=image)

    def images(self, recipes: Recipes | None = None, **choices: Any) -> AgentImages:
        """:returns: these images on the Engine."""
        return AgentImages(self.engine, recipes or self.recipes, self.choices(**choices))

    def choices(self, **changes: Any) -> Choices:
        """:returns: choices with which something can be built here."""
        return replace(Choices(source=test_engine.image(), network="host"), **changes)

    def newer(self) -> Recipes:
        """:returns: the recipes with a newer release of the toy."""
        return replace(self.recipes, programs=moved(self.recipes.programs, [Release("toy", "1.1", {"any": OTHER_SUM})]))

    def there(self, **labels: str) -> list[dict[str, Any]]:
        """:returns: the images that have these labels (``_`` stands for a dot) and stand on this test's base image."""
        label = [f"{name.replace('_', '.')}={value}" if value else name for name, value in labels.items()]
        filters = quote(json.dumps({"label": label}))
        found: list[dict[str, Any]] = test_engine.call("GET", f"/images/json?filters={filters}")[0]
        return found

    def much_later(self) -> None:
        """Let whatever builds left be old."""
        later = time.time() + LEFTOVER_SECONDS + 60
        self.patch(time, "time", lambda: later)

    def leftovers(self) -> list[str]:
        """:returns: the ids of what builds of this test's images left."""
        found = self.there(ironcurtain_build="")
        return [image["Id"] for image in found if image["Labels"]["ironcurtain.build"].startswith(self.prefix)]

    def builders(self) -> list[str]:
        """:returns: the ids of the containers in which the Engine takes the steps of this test's agents."""
        filters = quote(json.dumps({"label": ["ironcurtain.build"]}))
        found = test_engine.call("GET", f"/containers/json?all=1&filters={filters}")[0]
        return [c["Id"] for c in found if c["Labels"]["ironcurtain.build"].startswith(self.prefix)]

    def names(self) -> set[str]:
        """:returns: the names of this test's images."""
        everything = [name for image in self.there() for name in image["RepoTags"] or ()]
        return {name for name in everything if name.startswith(self.prefix)}

    def _remove_images(self) -> None:
        for name in self.names():
            test_engine.call("DELETE", f"/images/{name}")


class EnsureTests(ImageCase):
    async def test_an_image_is_built_once(self) -> None:
        reference = await self.images().ensure("toy", self.said.append)
        self.assertIn(f"Building the image {reference}.", self.said)
        self.assertTrue([line for line in self.said if line.startswith("toy ") and "RUN mkdir /out" in line])
        container = await self.running(image=reference)
        self.assertEqual((await self.sh(container, "cat /toy; echo $MARK")).out, f"toy@1.0\n{self.mark}\n")
        self.assertEqual(self.leftovers(), [])
        self.said.clear()
        self.assertEqual(await self.images().ensure("toy", self.said.append), reference)
        self.assertEqual(self.said, [])

    async def test_another_release_is_another_image(self) -> None:
        reference = await self.images().ensure("toy", self.said.append)
        newer = await self.images(self.newer()).ensure("toy", self.said.append)
        self.assertNotEqual(newer, reference)
        self.assertLessEqual({reference, newer}, self.names())

    async def test_several_at_once_build_once(self) -> None:
        images = self.images()
        asked = [Deferred.fromCoroutine(images.ensure("toy", self.said.append)) for _ in range(3)]
        references = await gatherResults(asked)
        self.assertEqual(len(set(references)), 1)
        self.assertEqual(self.said.count(f"Building the image {references[0]}."), 1)

    async def test_a_name_does_not_make_an_image_ours(self) -> None:
        reference = await self.images().ensure("toy", self.said.append)
        repository, _, tag = reference.partition(":")
        test_engine.call("DELETE", f"/images/{reference}")
        test_engine.call("POST", f"/images/{test_engine.image()}/tag?repo={repository}&tag={tag}")
        self.said.clear()
        await self.images().ensure("toy", self.said.append)
        self.assertIn(f"Building the image {reference}.", self.said)

    async def test_a_build_that_fails_says_why_and_leaves_nothing(self) -> None:
        failed = await self.assertFailure(
            Deferred.fromCoroutine(self.images().ensure("broken", self.said.append)), BuildFailed
        )
        self.assertIn("image broken could not be built", str(failed))
        self.assertIn("it cannot be done", str(failed))
        self.assertFalse([name for name in self.names() if "broken" in name])
        self.assertEqual(self.leftovers(), [])

    async def test_a_build_can_be_given_up(self) -> None:
        building = Deferred.fromCoroutine(self.images().ensure("slow", self.said.append))
        while not self.builders():
            await self.engine.ping()
        building.cancel()
        await self.assertFailure(building, CancelledError)
        while self.builders():
            await self.engine.ping()
        self.assertFalse([name for name in self.names() if "slow" in name])
        self.much_later()
        await self.images().prune()
        self.assertEqual(self.leftovers(), [])

    async def test_an_image_to_stand_on_that_cannot_be_fetched_is_named(self) -> None:
        failed = await self.assertFailure(
            Deferred.fromCoroutine(self.images(source="").ensure("toy", self.said.append)), BuildFailed
        )
        self.assertIn("image nosuch.invalid/image could not be fetched", str(failed))
        self.assertEqual(self.names(), set())

    async def test_agents_that_cannot_be_had(self) -> None:
        ensure = self.images().ensure
        await self.assertFailure(Deferred.fromCoroutine(ensure("nosuch", self.said.append)), UsageError)
        await self.assertFailure(Deferred.fromCoroutine(ensure("foreign", self.said.append)), NoRelease)
        self.assertEqual(self.names(), set())

    async def test_the_downloader_trusts_what_this_machine_does(self) -> None:
        reference = await self.images(certificates=b"A CERTIFICATE").downloader(self.said.append)
        container = await self.running(image=reference)
        self.assertEqual((await self.sh(container, "cat /certificates.pem")).out, "A CERTIFICATE")


class StateTests(ImageCase):
    async def states(self, recipes: Recipes | None = None, **choices: Any) -> dict[str, tuple[str, str]]:
        """:returns: state and reference of each agent's image."""
        found = await self.images(recipes, **choices).states()
        return {image.agent: (image.state, image.reference) for image in found}

    async def test_states(self) -> None:
        before = await self.states()
        self.assertEqual((before["toy"], before["foreign"]), ((MISSING, ""), (NO_RELEASE, "")))
        reference = await self.images().ensure("toy", self.said.append)
        self.assertEqual((await self.states())["toy"], (CURRENT, reference))
        self.assertEqual((await self.states(self.newer()))["toy"], (OLD, reference))
        self.assertEqual((await self.states(source="nosuch.invalid/image"))["toy"], (OLD, reference))

    async def test_the_current_one_is_shown_even_if_it_is_not_the_newest(self) -> None:
        reference = await self.images().ensure("toy", self.said.append)
        await self.images(self.newer()).ensure("toy", self.said.append)
        self.assertEqual((await self.states())["toy"], (CURRENT, reference))
        shown = next(image for image in await self.images().states() if image.agent == "toy")
        self.assertEqual(shown.version, "1.0")
        self.assertGreater(shown.size, 0)

    async def test_only_what_is_not_used_again_is_pruned(self) -> None:
        old = await self.images().ensure("toy", self.said.append)
        new = await self.images(self.newer()).ensure("toy", self.said.append)
        pruned = await self.images(self.newer()).prune()
        self.assertEqual([name for name in pruned.removed if name.startswith(self.prefix)], [old])
        self.assertEqual(
            {name.rpartition("/")[2].partition(":")[0] for name in self.names()}, {"base", "downloader", "toy"}
        )
        self.assertIn(new, self.names())
        self.assertEqual((await self.images(self.newer()).prune()).removed, ())

    async def test_what_a_container_needs_stays(self) -> None:
        old = await self.images().ensure("toy", self.said.append)
        await self.running(image=old)
        await self.images(self.newer()).ensure("toy", self.said.append)
        pruned = await self.images(self.newer()).prune()
        self.assertEqual((pruned.in_use, old in self.names()), ((old,), True))

    async def test_what_a_killed_build_left_goes_once_it_is_old(self) -> None:
        dockerfile = f"FROM {test_engine.image()}\nLABEL ironcurtain.build={self.prefix}toy:1-abc\n"
        context = archive({"Dockerfile": dockerfile.encode()})
        left = await self.engine.build_image(
            context, tag="", labels={}, arguments={}, network="host", progress=self.said.append
        )
        self.assertEqual((await self.images().prune()).removed, ())  # somebody may be at it
        self.much_later()
        self.assertEqual((await self.images().prune()).removed, (left,))
        self.assertEqual(self.leftovers(), [])

    async def test_without_the_image_to_stand_on_the_newest_stay(self) -> None:
        await self.images().ensure("toy", self.said.append)
        before = self.names()
        self.assertEqual((await self.images(source="nosuch.invalid/image").prune()).removed, ())
        self.assertEqual(self.names(), before)


class UpdateTests(ImageCase):
    async def find(self, *names: str) -> dict[str, tuple[Release | None, str]]:
        """:returns: what was found out about each program: its newest release, and the problem."""
        moves = await Updates(self.engine, self.recipes, self.choices()).find(names, self.said.append)
        return {move.name: (move.release, move.problem) for move in moves}

    async def test_the_newest_release_is_asked_for(self) -> None:
        self.assertEqual(await self.find("toy"), {"toy": (Release("toy", "1.1", {"any": OTHER_SUM}), "")})

    async def test_an_answer_is_never_an_old_one(self) -> None:
        await self.find("toy")
        self.said.clear()
        self.recipes = replace(
            self.recipes,
            folders={
                **self.recipes.folders,
                "downloader": {"Dockerfile": DOWNLOADER, "bin/newest": b"#!/bin/sh\nexit 1\n"},
            },
        )
        self.assertIsNone((await self.find("toy"))["toy"][0])

    async def test_problems_keep_a_program_as_it_is(self) -> None:
        found = await self.find("broken", "foreign", "toy")
        self.assertEqual([name for name, (release, _) in found.items() if release], ["toy"])
        self.assertIn("no answer for broken", found["broken"][1])
        self.assertIn("not published for", found["foreign"][1])

    async def test_all_are_those_that_have_a_release_and_debians_packages(self) -> None:
        found = await self.find()
        self.assertEqual(list(found), ["base", "broken", "slow", "toy"])
        today = found["base"][0]
        assert today is not None
        self.assertRegex(today.version, r"^20\d\d-\d\d-\d\d$")

    async def test_no_image_is_kept_of_a_question(self) -> None:
        await self.find("toy")
        kept = {name.rpartition("/")[2].partition(":")[0] for name in self.names()}
        self.assertEqual(kept, {"base", "downloader"})
        self.assertEqual(self.leftovers(), [])
