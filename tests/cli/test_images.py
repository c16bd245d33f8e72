"""``ironcurtain images`` as a person uses it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests import agent_images
from tests.product import Product


class WithoutEngineTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.environ["DOCKER_HOST"] = f"unix://{self.product.person}/docker.sock"

    def test_whatever_needs_the_engine_says_so(self) -> None:
        for words in (("list",), ("prune",), ("build",), ("build", "codex"), ("update",)):
            done = self.product.run("images", *words)
            self.assertEqual((done.returncode, done.stdout), (69, ""), words)
            self.assertIn("ironcurtain doctor", done.stderr)

    def test_a_home_that_cannot_be_one_ends_it(self) -> None:
        self.product.environ["IRONCURTAIN_HOME"] = "/dev/null"
        for words in (("list",), ("prune",)):
            done = self.product.run("images", *words)
            self.assertEqual((done.returncode, "is not a directory" in done.stderr), (64, True), done.stderr)

    def test_an_agent_that_there_is_not_is_refused_first(self) -> None:
        for words in (("build", "codex", "nosuch"), ("update", "nosuch")):
            done = self.product.run("images", *words)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("claude-code, codex, gemini, goose (untested), opencode", done.stderr)

    def test_choices_that_cannot_be_used_are_refused(self) -> None:
        self.product.environ["NPM_CONFIG_REGISTRY"] = "https://me:secret@registry.example/"
        done = self.product.run("images", "build", "codex")
        self.assertEqual(done.returncode, 78)
        self.assertNotIn("secret", done.stderr)

    def test_a_published_image_needs_its_digest(self) -> None:
        done = self.product.run("images", "pull", "registry.example/team/agent:1")
        self.assertEqual(done.returncode, 64)
        self.assertIn("ironcurtain images digest registry.example/team/agent:1", done.stderr)

    def test_a_person_decides_about_a_project_until_it_changes(self) -> None:
        project = self.product.person / "project"
        (project / ".devcontainer.json").symlink_to("devcontainer.json")
        done = self.product.run("images", "project", str(project))
        self.assertIn("links are not followed", done.stderr)
        (project / ".devcontainer.json").unlink()
        file = project / ".devcontainer.json"
        file.write_text('{"image": "node:22", "postCreateCommand": "npm ci", "privileged": true}')
        done = self.product.run("images", "project", "--agree", str(project))
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("image: node:22", "postCreateCommand, once a session:\n    npm ci", "privileged has no effect"):
            self.assertIn(words, done.stderr)
        self.assertEqual(self.product.run("images", "project", str(project)).stderr.count("Used."), 2)
        file.write_text('{"image": "other"}')
        unanswered = self.product.run("images", "project", str(project))
        self.assertEqual(unanswered.returncode, 64)
        self.assertIn("nobody answered: decide with --agree or --refuse", unanswered.stderr)
        self.product.environ["IRONCURTAIN_IMAGES_BASE"] = "mine:1"
        unasked = self.product.run("images", "project", "--agree", str(project))
        self.assertIn("or IRONCURTAIN_IMAGES_BASE decides", unasked.stdout)


class WithEngineTests(SynchronousTestCase):
    def setUp(self) -> None:
        environment = agent_images.environment()  # before the product, whose processes are counted
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.environ.update(environment)

    def test_list(self) -> None:
        found = {image["agent"]: image for image in self.product.json("images", "list")}
        self.assertEqual(set(found), {"claude-code", "codex", "gemini", "goose", "opencode"})
        self.assertEqual((found["goose"]["state"], found["goose"]["reference"]), ("no release", ""))
        self.assertEqual({image["created"] is None for image in found.values() if not image["reference"]}, {True})
        shown = self.product.run("images", "list").stdout.splitlines()
        self.assertEqual(shown[0].split(), ["AGENT", "STATE", "VERSION", "SIZE", "AGE", "IMAGE"])
        self.assertEqual(len(shown), 1 + len(found))
        self.assertIn("goose (untested)", [line.partition("  ")[0] for line in shown])

    def test_an_agent_without_a_release_tells_how_to_choose_one(self) -> None:
        done = self.product.run("images", "build", "goose")
        self.assertEqual(done.returncode, 69)
        self.assertIn("ironcurtain images update goose", done.stderr)

    def test_debians_packages_are_updated_without_asking_anybody(self) -> None:
        versions = self.product.home / "images" / "versions.toml"
        versions.parent.mkdir(parents=True)
        versions.write_text('[base]\nversion = "2020-01-01"\n')
        (first,) = self.product.json("images", "update", "base")
        (second,) = self.product.json("images", "update", "base")
        self.assertEqual((first["name"], first["before"], second["before"]), ("base", "2020-01-01", first["after"]))
        self.assertGreater(first["after"], "2020-01-01")
