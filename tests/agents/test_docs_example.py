"""The agent that docs/howto/add-agent.rst shows is a package that works."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.registry import GROUP, installed
from ironcurtain.container.image_choices import GROUP as IMAGES
from tests import agent_images, engine
from tests.agents.samples import content, facts
from tests.product import Product, until, wait_until

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "howto" / "add-agent.rst"
PACKAGE = DOCS / "examples" / "shell-agent"

BUILD_SECONDS = 1800.0
"""How long the base image may take where there is none yet."""


def project() -> dict[str, Any]:
    """:returns: what the package says about itself."""
    return tomllib.loads((PACKAGE / "pyproject.toml").read_text())


def install(top: Path) -> list[str]:
    """
    Write what pip writes about the package.

    :returns: the directories to search for modules, of the package and of what was written.
    """
    about = project()["project"]
    directory = top / "site" / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    directory.mkdir(parents=True)
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in about["entry-points"].items()
    ]
    (directory / "entry_points.txt").write_text("\n".join(groups))
    return [str(directory.parent), str(PACKAGE)]


def make_environment(top: Path) -> str:
    """
    Make an environment with IronCurtain and the package in it.

    :returns: its Python.
    """
    places = [*install(top), *filter(os.path.isabs, sys.path)]
    programs = top / "environment" / "bin"
    venv.create(programs.parent)
    [modules] = programs.parent.glob("lib/python*/site-packages")
    (modules / "places.pth").write_text("\n".join(places))
    for name in ("ironcurtain", "twistd"):
        text = (Path(sys.executable).parent / name).read_text().replace(sys.executable, str(programs / "python"))
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return str(programs / "python")


class PackageTests(SynchronousTestCase):
    """What it consists of."""

    def setUp(self) -> None:
        top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, top)
        self.addCleanup(sys.modules.pop, "shell_agent", None)
        self.patch(sys, "path", [*install(top), *sys.path])
        self.patch(sys, "dont_write_bytecode", True)

    def test_the_page_shows_these_files(self) -> None:
        shown = re.findall(r"literalinclude:: (\S+)", PAGE.read_text())
        there = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
        self.assertEqual({(PAGE.parent / path).resolve() for path in shown}, there)

    def test_the_files_of_the_image_are_part_of_it(self) -> None:
        patterns = project()["tool"]["setuptools"]["package-data"]["shell_agent"]
        for path in (PACKAGE / "shell_agent" / "image").rglob("*"):
            name = str(path.relative_to(PACKAGE / "shell_agent"))
            self.assertTrue(any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name)

    def test_it_is_found_and_listed(self) -> None:
        agent = installed().find("shell-agent")
        self.assertEqual(agent.display_name, "Shell agent")
        [listed] = [listed for listed in installed().listing() if listed.id == "shell-agent"]
        self.assertEqual((listed.image, listed.providers, listed.problem), ("shell-agent", (), ""))
        self.assertEqual(content(agent.files(facts()), "orientation", "orientation.md"), facts().orientation)
        self.assertEqual(set(project()["project"]["entry-points"]), {GROUP, IMAGES})


class InstalledTests(SynchronousTestCase):
    """A person installs it, and uses it: with a daemon, in a real container of its own image."""

    def setUp(self) -> None:
        environment = agent_images.environment()  # an Engine that is started for it is not the product's
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.environ |= environment
        self.patch(sys, "executable", make_environment(self.product.person))
        self.product.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        self.product.person.chmod(0o755)  # if we are root, the agent runs as somebody else
        line = self.product.command("images", "build", "shell-agent")
        subprocess.run(line, env=self.product.environ, check=True, capture_output=True, timeout=BUILD_SECONDS)

    def image(self) -> dict[str, Any]:
        """:returns: what is said about its image."""
        images: list[dict[str, Any]] = self.product.json("images", "list")
        return next(image for image in images if image["agent"] == "shell-agent")

    def test_from_its_image_to_its_answers(self) -> None:
        image = self.image()
        self.assertEqual((image["state"], image["version"]), ("current", "1.0"))
        engine.call("DELETE", f"/images/{image['reference']}")
        self.assertIn(self.image()["state"], ("missing", "old"))  # the latter if an earlier one is there
        done = self.product.twistd("ironcurtain")
        self.assertEqual(done.returncode, 0, done.stderr)
        try:
            wait_until((self.product.home / "run" / "daemon.sock").exists)
            self.first()
            self.later()
        finally:
            stopping = (self.product.home / "twistd.pid").read_text()
            subprocess.run(["kill", stopping], check=True)
            wait_until(lambda: not (self.product.home / "twistd.pid").exists())
        self.assertEqual(self.image()["state"], "current")

    def first(self) -> None:
        """The first session builds the image, and the person sees it."""
        process = self.product.start("start", "--agent", "shell-agent", "mkdir src; cd src; echo made")
        assert process.stderr is not None and process.stdout is not None
        until(process.stderr, "Building the image ironcurtain/shell-agent:")
        until(process.stderr, "COPY start.sh /usr/local/share/shell-agent/start.sh")
        out, err = process.communicate()
        self.assertEqual((process.returncode, out), (0, "made\n"), err)

    def later(self) -> None:
        """It goes on where it was; what fails says why; what it keeps is kept; and nothing can be reached."""
        for script, status, words in (
            ("pwd; echo more >>~/notes.txt", 0, ("/workspace/src\n",)),
            ("echo no such luck >&2; exit 3", 1, ("exit status 3",)),
            ("true", 1, ("it ended without an answer",)),
            (
                "tail -n 1 ~/notes.txt; cat /etc/ironcurtain/orientation.md;"
                " curl -sS --noproxy '*' https://api.anthropic.com 2>&1 || echo not reached",
                0,
                ("more\n", "only through the proxy that HTTP_PROXY", "not reached"),
            ),
        ):
            done = self.product.run("start", "-r", "last", script)
            self.assertEqual(done.returncode, status, done.stderr)
            for said in words:
                self.assertIn(said, done.stdout + done.stderr)
