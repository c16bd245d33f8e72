from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.image_choices import shipped_folders, shipped_programs
from ironcurtain.container.image_plans import LANGUAGES, ImagePlan, Recipes, SourceImage, arguments
from ironcurtain.container.versions import NoRelease, Release, moved
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.container_section import Language

SOURCE = SourceImage("debian:some", "sha256:" + "1" * 64, "amd64")
SUM = "sha512-" + "C" * 86 + "=="


def _agent(recipes: Recipes, name: str = "codex", source: SourceImage = SOURCE) -> ImagePlan:
    return recipes.agent(name, recipes.base(source), source.architecture)


def _with_file(recipes: Recipes, folder: str, name: str, data: bytes) -> Recipes:
    return replace(recipes, folders={**recipes.folders, folder: {**recipes.folders[folder], name: data}})


class PlanTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.recipes = Recipes(shipped_folders(), shipped_programs())

    def test_each_agent_has_an_image(self) -> None:
        self.assertEqual(self.recipes.agents, ("claude-code", "codex", "gemini", "goose", "opencode"))
        self.recipes.check("codex")
        refused = self.assertRaises(UsageError, _agent, self.recipes, "nosuch")
        self.assertIn("claude-code, codex", str(refused))
        self.assertRaises(UsageError, self.recipes.check, "base")

    def test_languages_add_packages_to_the_base_and_change_every_image(self) -> None:
        plain, rich = self.recipes.base(SOURCE), self.recipes.base(SOURCE, ("rust", "python", "rust"))
        self.assertNotIn("TOOLS", plain.arguments)
        self.assertEqual(rich.arguments["TOOLS"], "python3-dev python3-pip python3-venv cargo-web|cargo")
        self.assertEqual(rich, self.recipes.base(SOURCE, ("python", "rust")))
        self.assertNotEqual(plain.content, rich.content)
        self.assertEqual(set(LANGUAGES), set(get_args(Language)))
        self.assertIn("TOOLS", arguments(self.recipes.folders["base"]["Dockerfile"]))

    def test_an_image_asks_for_the_programs_in_it(self) -> None:
        self.assertEqual([p.name for p in self.recipes.needed("gemini")], ["gemini", "node"])
        self.assertEqual(
            [p.name for p in self.recipes.chosen(["gemini", "codex", "gemini"])], ["gemini", "node", "codex"]
        )
        self.assertIn("NODE_INTEGRITY", _agent(self.recipes, "gemini").arguments)

    def test_a_program_without_an_entry_is_named(self) -> None:
        programs = {name: program for name, program in self.recipes.programs.items() if name != "node"}
        refused = self.assertRaises(ConfigurationError, replace(self.recipes, programs=programs).needed, "gemini")
        self.assertIn("node", str(refused))

    def test_an_agent_without_a_release_is_not_planned(self) -> None:
        self.assertRaises(NoRelease, _agent, self.recipes, "goose")

    def test_names_tell_contents_apart(self) -> None:
        plan = _agent(self.recipes)
        self.assertEqual(plan.reference, f"ironcurtain/codex:{plan.content[:12]}")
        self.assertEqual(plan.labels["ironcurtain.content"], plan.content)
        self.assertEqual(plan.labels["ironcurtain.version"], self.recipes.programs["codex"].version)

    def test_whatever_shapes_an_image_changes_its_content(self) -> None:
        newer = moved(self.recipes.programs, [Release("codex", "9.9.9", {"amd64": SUM})])
        fresher = moved(self.recipes.programs, [Release("base", "2099-01-01", {})])
        changes: dict[str, Callable[[], ImagePlan]] = {
            "nothing": lambda: _agent(self.recipes),
            "its Dockerfile": lambda: _agent(
                _with_file(self.recipes, "codex", "Dockerfile", b"FROM x\nARG CODEX_PACKAGE")
            ),
            "a file": lambda: _agent(_with_file(self.recipes, "codex", "new", b"")),
            "the entry point": lambda: _agent(_with_file(self.recipes, "base", "entrypoint", b"#!/bin/sh\n")),
            "how it is fetched": lambda: _agent(_with_file(self.recipes, "downloader", "download", b"#!/bin/sh\n")),
            "its release": lambda: _agent(replace(self.recipes, programs=newer)),
            "Debian's updates": lambda: _agent(replace(self.recipes, programs=fresher)),
            "what it stands on": lambda: _agent(self.recipes, source=replace(SOURCE, id="sha256:2")),
            "the architecture": lambda: _agent(self.recipes, source=replace(SOURCE, architecture="arm64")),
        }
        contents = {change: plan().content for change, plan in changes.items()}
        self.assertEqual(len(set(contents.values())), len(changes), contents)

    def test_the_same_files_for_another_architecture_are_another_image(self) -> None:
        bases = [self.recipes.base(replace(SOURCE, architecture=name)).content for name in ("amd64", "arm64")]
        self.assertNotEqual(*bases)

    def test_what_does_not_shape_it_does_not(self) -> None:
        other = moved(self.recipes.programs, [Release("claude-code", "9.9.9", {"amd64": SUM})])
        same = _agent(self.recipes).content
        self.assertEqual(_agent(replace(self.recipes, programs=other)).content, same)
        self.assertEqual(_agent(_with_file(self.recipes, "gemini", "new", b"")).content, same)
        self.assertEqual(_agent(self.recipes, source=replace(SOURCE, name="other:name")).content, same)

    def test_certificates_are_the_downloaders_only(self) -> None:
        base = self.recipes.base(SOURCE)
        plans = [self.recipes.downloader(base, pem) for pem in (b"", b"-----BEGIN CERTIFICATE-----")]
        self.assertNotEqual(plans[0].content, plans[1].content)
        self.assertEqual(plans[1].files["certificates.pem"], b"-----BEGIN CERTIFICATE-----")
        self.assertFalse({"certificates.pem"} & set(_agent(self.recipes).files))
