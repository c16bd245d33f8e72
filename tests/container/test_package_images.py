from __future__ import annotations

import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container import image_choices as under_test
from ironcurtain.container.image_choices import GROUP, package_images, shipped_folders, shipped_programs
from ironcurtain.container.image_plans import ImagePlan, PackageImage, Recipes, SourceImage
from ironcurtain.errors import ConfigurationError, UsageError
from tests.container.test_images import ImageCase

SOURCE = SourceImage("debian:some", "sha256:" + "1" * 64, "amd64")
DOCKERFILE = b"ARG BASE\nFROM ${BASE}\nCOPY bin /usr/local/bin\n"


class LoadTests(SynchronousTestCase):
    """Packages with folders."""

    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.top)
        self.patch(sys, "path", [str(self.top), *sys.path])
        self.patch(sys, "dont_write_bytecode", True)
        self.before = set(sys.modules)
        self.addCleanup(lambda: [sys.modules.pop(name) for name in set(sys.modules) - self.before])

    def package(self, name: str, **content: bytes | None) -> metadata.EntryPoint:
        """:returns: an entry point for the folder ``image`` of a new package; ``_`` stands for a slash."""
        folder = self.top / name / "image"
        folder.mkdir(parents=True)
        (self.top / name / "__init__.py").write_text(
            "from importlib.resources import files\nIMAGE = files(__name__) / 'image'\n"
        )
        for path, data in content.items():
            file = folder / path.replace("__", ".").replace("_", "/")
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data or b"")
        return metadata.EntryPoint(name, f"{name}:IMAGE", GROUP)

    def load(self, *entries: metadata.EntryPoint) -> tuple[dict[str, PackageImage], dict[str, str]]:
        """:returns: what is brought, and what is broken."""
        return package_images(entries, shipped_folders(), shipped_programs())

    def test_a_folder_with_all_that_is_below_it(self) -> None:
        entry = self.package("mine", Dockerfile=DOCKERFILE, bin_tool=b"#!/bin/sh\n")
        (self.top / "mine" / "image" / "__init__.py").touch()
        (self.top / "mine" / "image" / "__pycache__").mkdir()
        (self.top / "mine" / "image" / "__pycache__" / "x.pyc").touch()
        found, broken = self.load(entry)
        self.assertEqual(found["mine"].files, {"Dockerfile": DOCKERFILE, "bin/tool": b"#!/bin/sh\n"})
        self.assertEqual(broken, {})

    def test_a_program_that_is_known_can_be_asked_for(self) -> None:
        dockerfile = b"ARG BASE\nARG DOWNLOADER\nARG NODE_PACKAGE\nFROM ${BASE}\n"
        found, _ = self.load(self.package("mine", Dockerfile=dockerfile))
        recipes = Recipes(shipped_folders(), shipped_programs(), packaged=found)
        self.assertEqual([program.name for program in recipes.needed("mine")], ["node"])

    def test_what_cannot_be_used_is_told_and_disturbs_nobody(self) -> None:
        wrong = {
            "crash": (metadata.EntryPoint("crash", "nosuch_package:IMAGE", GROUP), "cannot be read: ModuleNotFound"),
            "text": (metadata.EntryPoint("text", "sys:version", GROUP), "cannot be read: AttributeError"),
            "none": (self.package("none", README=b"x"), "is not a folder with a Dockerfile"),
            "free": (self.package("free", Dockerfile=b"FROM debian\n"), "must be based on IronCurtain's base image"),
            "asks": (
                self.package("asks", Dockerfile=DOCKERFILE + b"ARG NOSUCH_PACKAGE\n"),
                "requests unknown programs: nosuch",
            ),
            "Large": (metadata.EntryPoint("Large", "sys:path", GROUP), "its name must be at most 40 lower-case"),
        }
        good = self.package("good", Dockerfile=DOCKERFILE)
        found, broken = self.load(*(entry for entry, _ in wrong.values()), good)
        self.assertEqual((list(found), set(broken)), (["good"], set(wrong)))
        for name, (_, words) in wrong.items():
            self.assertIn(words, broken[name])
            self.assertIn(f"{GROUP}: {name} = ", broken[name])

    def test_a_folder_may_be_so_large_and_no_larger(self) -> None:
        self.patch(under_test, "LARGEST_FOLDER", len(DOCKERFILE) + 10)
        found, _ = self.load(self.package("fits", Dockerfile=DOCKERFILE, x=bytes(10)))
        self.assertIn("fits", found)
        _, broken = self.load(self.package("large", Dockerfile=DOCKERFILE, x=bytes(11)))
        self.assertIn("is larger than", broken["large"])

    def test_nobody_takes_the_place_of_another(self) -> None:
        entry = self.package("codex", Dockerfile=DOCKERFILE)
        error = self.assertRaises(ConfigurationError, self.load, entry)
        self.assertIn("the image codex already exists", str(error))
        for name in ("base", "downloader", "question"):
            self.assertRaises(ConfigurationError, self.load, metadata.EntryPoint(name, "codex:IMAGE", GROUP))
        mine = self.package("mine", Dockerfile=DOCKERFILE)
        self.assertRaises(ConfigurationError, self.load, mine, mine)


class PlanTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.brought = PackageImage({"Dockerfile": DOCKERFILE, "bin/tool": b"1"}, "2.5")
        self.recipes = Recipes(
            shipped_folders(), shipped_programs(), packaged={"mine": self.brought}, broken={"other": "it is broken"}
        )

    def plan(self, recipes: Recipes) -> ImagePlan:
        """:returns: how the image would be built."""
        return recipes.agent("mine", recipes.base(SOURCE), SOURCE.architecture)

    def test_it_stands_among_the_others(self) -> None:
        self.assertEqual(self.recipes.agents, ("claude-code", "codex", "gemini", "goose", "mine", "opencode"))
        plan = self.plan(self.recipes)
        self.assertEqual((plan.version, plan.downloads), ("2.5", False))
        self.assertEqual(plan.reference, f"ironcurtain/mine:{plan.content[:12]}")
        self.assertEqual(plan.arguments, {"BASE": self.recipes.base(SOURCE).reference})

    def test_its_files_and_the_base_shape_it_and_nothing_else(self) -> None:
        same = replace(self.recipes, packaged={"mine": replace(self.brought, version="2.6")})
        self.assertEqual(self.plan(same).content, self.plan(self.recipes).content)
        folders = {**self.recipes.folders, "downloader": {"Dockerfile": b""}}
        self.assertEqual(self.plan(replace(self.recipes, folders=folders)).content, self.plan(self.recipes).content)
        files = {**self.brought.files, "bin/tool": b"2"}
        other = replace(self.recipes, packaged={"mine": replace(self.brought, files=files)})
        self.assertNotEqual(self.plan(other).content, self.plan(self.recipes).content)

    def test_one_that_is_broken_says_why(self) -> None:
        error = self.assertRaises(ConfigurationError, self.recipes.check, "other")
        self.assertIn("it is broken", str(error))
        self.assertRaises(UsageError, self.recipes.check, "nosuch")


class BuildTests(ImageCase):
    """On a real Engine."""

    def setUp(self) -> None:
        super().setUp()
        dockerfile = b"ARG BASE\nFROM ${BASE}\nCOPY bin /usr/local/bin\nCOPY note /note\n"
        self.mine = PackageImage(
            {"Dockerfile": dockerfile, "bin/tool": b"#!/bin/sh\necho it works\n", "note": b"one"}, "2.5"
        )
        self.recipes = replace(self.recipes, packaged={"mine": self.mine}, broken={"other": "it is broken"})

    async def test_it_is_built_once_and_anew_when_a_file_changes(self) -> None:
        first = await self.images().ensure("mine", self.said.append)
        self.assertIn(f"Building the image {first}.", self.said)
        container = await self.running(image=first)
        said = await self.sh(container, "/usr/local/bin/tool; cat /note; echo $MARK")
        self.assertEqual(said.out, f"it works\none{self.mark}\n")
        kept = {name.rpartition("/")[2].partition(":")[0] for name in self.names()}
        self.assertEqual(kept, {"base", "mine"}, "nothing was to be fetched")
        self.said.clear()
        self.assertEqual(await self.images().ensure("mine", self.said.append), first)
        self.assertEqual(self.said, [])
        newer = replace(self.mine, files={**self.mine.files, "note": b"two"})
        self.recipes = replace(self.recipes, packaged={"mine": newer})
        self.assertNotEqual(await self.images().ensure("mine", self.said.append), first)

    async def test_it_is_listed_and_pruned_as_the_others(self) -> None:
        async def shown() -> dict[str, tuple[str, str]]:
            return {image.agent: (image.state, image.version) for image in await self.images().states()}

        before = await shown()
        self.assertEqual((before["mine"], before["other"]), (("missing", "2.5"), ("broken", "")))
        [other] = [image for image in await self.images().states() if image.agent == "other"]
        self.assertEqual(other.problem, "it is broken")
        reference = await self.images().ensure("mine", self.said.append)
        self.assertEqual((await shown())["mine"], ("current", "2.5"))
        self.assertNotIn(reference, (await self.images().prune()).removed)
        self.recipes = replace(self.recipes, packaged={})
        self.assertIn(reference, (await self.images().prune()).removed)
