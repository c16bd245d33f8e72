from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.image_choices import find_choices
from ironcurtain.container.image_plans import Basis
from ironcurtain.container.project_choices import ProjectChoices, shown
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.container_section import ContainerSettings, ProjectContainer
from ironcurtain.home.layout import Home


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        top = Path(tempfile.mkdtemp(prefix="ic-")).resolve()
        self.addCleanup(shutil.rmtree, top)
        self.home, self.project = Home(top / "home", top / "run"), top / "project"
        self.outside = top / "outside"
        self.project.mkdir()

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def choices(
        self, settings: ContainerSettings | None = None, environ: Mapping[str, str] | None = None
    ) -> ProjectChoices:
        """:returns: what decides, as a new process has it."""
        settings, environ = settings or ContainerSettings(), environ or {}
        return ProjectChoices(self.home, settings, find_choices(environ, settings), environ)

    def choose(self, settings: ContainerSettings | None = None, environ: Mapping[str, str] | None = None) -> Basis:
        """:returns: what is used for the project."""
        return self.choices(settings, environ).choose(str(self.project))

    def answer(self, agreed: bool) -> None:
        """Answer the question about the project."""
        proposal = self.choices().propose(str(self.project))
        assert proposal is not None
        self.assertTrue(proposal.open)
        self.choices().answer(str(self.project), proposal, agreed=agreed)


USED = ContainerSettings(devcontainer=True)


class DevcontainerTests(Case):
    def setUp(self) -> None:
        super().setUp()
        self.write(".devcontainer.json", '{"image": "node:22", "containerEnv": {"A": "b"}}')

    def test_without_a_persons_word_it_is_named_and_not_used(self) -> None:
        basis = self.choose()
        self.assertEqual((basis.source, dict(basis.environment)), ("", {}))
        self.assertIn(
            ".devcontainer.json is not used: look at it, and decide, with: ironcurtain images project", basis.words[0]
        )

    def test_an_answer_holds_until_the_file_changes(self) -> None:
        self.answer(True)
        basis = self.choose()
        self.assertEqual(
            (basis.source, dict(basis.environment), basis.project), ("node:22", {"A": "b"}, str(self.project))
        )
        self.assertIn("the container is built as", basis.words[0])
        self.write(".devcontainer.json", '{"image": "evil.example/stolen:secret"}')
        self.assertEqual(self.choose().source, "")
        self.answer(False)
        self.assertIn("is not used, as you decided", self.choose().words[0])

    def test_settings_agree_to_the_first_content_only(self) -> None:
        self.assertEqual(self.choose(USED).source, "node:22")
        self.write(".devcontainer.json", '{"image": "evil.example/stolen:secret"}')
        self.assertIn("has changed since you agreed to it", str(self.assertRaises(UsageError, self.choose, USED)))

    def test_a_file_that_an_agent_adds_is_asked_about_in_spite_of_the_settings(self) -> None:
        (self.project / ".devcontainer.json").unlink()
        self.assertEqual(self.choose(USED).source, "")
        self.write(".devcontainer/devcontainer.json", '{"image": "evil.example/x"}')
        self.assertRaises(UsageError, self.choose, USED)

    def test_a_workspace_that_only_an_agent_wrote_says_nothing(self) -> None:
        self.assertEqual(self.choices(USED).choose("").source, "")
        self.assertFalse((self.home.path / "images").exists())

    def test_a_wrong_file_stops_only_those_who_want_it(self) -> None:
        self.write(".devcontainer.json", '{"dockerComposeFile": "x"}')
        self.assertIn("Docker Compose is not supported", self.choose().words[0])
        self.assertRaises(ConfigurationError, self.choose, USED)

    def test_who_refuses_all_files_is_told_of_none(self) -> None:
        self.assertEqual(self.choose(ContainerSettings(devcontainer=False)).words, ())

    def test_links_are_not_followed(self) -> None:
        (self.project / ".devcontainer.json").unlink()
        self.outside.write_text('{"image": "a"}')
        (self.project / ".devcontainer.json").symlink_to(self.outside)
        self.assertIn("links are not followed", self.choose().words[0])
        self.assertRaises(ConfigurationError, self.choose, USED)

    def test_the_question_shows_all_that_is_agreed_to(self) -> None:
        self.write("tool.sh", "echo")
        self.write("Dockerfile", "FROM debian:12\nRUN evil \x1b[2J\nCOPY tool.sh /x\n")
        self.write(".devcontainer.json", '{"build": {"dockerfile": "Dockerfile"}, "postCreateCommand": "npm ci"}')
        proposal = self.choices().propose(str(self.project))
        assert proposal is not None
        text = "\n".join(shown(proposal))
        for words in (
            "RUN evil \\x1b[2J",
            "copies: tool.sh (4 bytes)",
            "without a network",
        ):
            self.assertIn(words, text)
        self.assertIn(proposal.digest[:16], text)
        before = proposal.digest
        self.write("tool.sh", "evil")
        proposal = self.choices().propose(str(self.project))
        assert proposal is not None
        self.assertNotEqual(proposal.digest, before)


class DockerfileTests(Case):
    def of_project(self, **members: object) -> ContainerSettings:
        """:returns: settings of this project."""
        return ContainerSettings(projects={str(self.project): ProjectContainer(**members)})  # type: ignore[arg-type]

    def test_only_what_is_copied_is_read_and_counts(self) -> None:
        self.write("agent.Dockerfile", "FROM debian:12\nCOPY tools/a /x\n")
        self.write("tools/a", "1")
        self.write("src/huge", "2")
        settings = self.of_project(dockerfile="agent.Dockerfile")
        recipe = self.choose(settings).recipe
        assert recipe is not None
        self.assertEqual((set(recipe.files), recipe.network), ({"Dockerfile", "tools/a"}, "none"))
        self.write("src/huge", "3")
        self.assertEqual(self.choose(settings).recipe, recipe)
        self.write("tools/a", "changed")
        self.assertRaises(UsageError, self.choose, settings)

    def test_nothing_outside_the_project_gets_into_an_image(self) -> None:
        self.outside.mkdir()
        (self.outside / "secret").write_text("SECRET")
        os.symlink(self.outside, self.project / "dir")
        os.symlink(self.outside / "secret", self.project / "file")
        self.write("Dockerfile", "FROM debian:12\nCOPY . /x\n")
        recipe = self.choose(self.of_project(dockerfile="Dockerfile")).recipe
        assert recipe is not None
        self.assertEqual(set(recipe.files), {"Dockerfile"})
        self.write(".devcontainer.json", '{"build": {"dockerfile": "Dockerfile", "context": "dir"}}')
        self.assertRaises(ConfigurationError, self.choose, self.of_project(devcontainer=True))

    def test_ignored_files_are_left_out(self) -> None:
        self.write("Dockerfile", "FROM debian:12\nCOPY . /x\n")
        self.write(".dockerignore", "node_modules\n*.log\n")
        for path in ("node_modules/a/b", "x.log", "a.py"):
            self.write(path, "")
        recipe = self.choose(self.of_project(dockerfile="Dockerfile")).recipe
        assert recipe is not None
        self.assertEqual(set(recipe.files), {"Dockerfile", ".dockerignore", "a.py"})

    def test_what_needs_a_network_is_refused_unless_the_settings_give_one(self) -> None:
        self.write("Dockerfile", "FROM debian:12\nADD https://a.example/x /x\n")
        wrong = self.assertRaises(ConfigurationError, self.choose, self.of_project(dockerfile="Dockerfile"))
        self.assertIn('build_network = "default"', str(wrong))
        basis = self.choose(self.of_project(dockerfile="Dockerfile", build_network="default"))
        self.assertEqual(basis.recipe and basis.recipe.network, "default")

    def test_what_the_engine_would_read_otherwise_is_refused(self) -> None:
        self.write("Dockerfile", "# Escape = `\nFROM debian:12\nRUN echo \\\nADD http://10.0.0.1/x /x\n")
        wrong = self.assertRaises(ConfigurationError, self.choose, self.of_project(dockerfile="Dockerfile"))
        self.assertIn("directive escape", str(wrong))

    def test_a_dockerfile_of_the_persons_own_needs_no_agreement(self) -> None:
        self.outside.mkdir()
        (self.outside / "Dockerfile").write_text("FROM debian:12\n")
        settings = ContainerSettings(dockerfile=str(self.outside / "Dockerfile"))
        self.assertIsNotNone(self.choose(settings).recipe)
        (self.outside / "Dockerfile").write_text("FROM debian:13\n")
        self.assertIsNotNone(self.choose(settings).recipe)

    def test_settings_of_a_project_are_those_of_no_other(self) -> None:
        settings = ContainerSettings(
            base="debian:12", projects={str(self.project): ProjectContainer(base="node:22", languages=("go",))}
        )
        self.assertEqual((self.choose(settings).source, self.choose(settings).languages), ("node:22", ("go",)))
        other = self.choices(settings).choose(str(self.outside))
        self.assertEqual((other.source, other.project), ("debian:12", ""))

    def test_the_environment_overrides_projects(self) -> None:
        self.write(".devcontainer.json", '{"image": "node:22"}')
        basis = self.choose(USED, {"IRONCURTAIN_IMAGES_BASE": "debian:13"})
        self.assertEqual((basis.source, basis.project), ("debian:13", ""))

    def test_only_one_foundation_can_be_named(self) -> None:
        self.assertRaises(ValueError, ContainerSettings, base="a", dockerfile="b")
        self.assertRaises(ValueError, ContainerSettings, projects={"relative": ProjectContainer()})
        self.assertRaises(ValueError, ContainerSettings, image="team/agent:1")
