"""The agent that docs/agents.rst shows is a package that works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import Adapter, TurnFailed, TurnOutcome
from ironcurtain.agents.registry import GROUP, installed
from tests.agents.samples import content, facts

DOCS = Path(__file__).parent.parent.parent / "docs"
PACKAGE = DOCS / "examples" / "shell-agent"


class ShellAgentTests(SynchronousTestCase):
    """Installed as its pyproject.toml says, and run."""

    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        for name in ("workspace", "home", "orientation"):
            (self.top / name).mkdir()
        self.addCleanup(sys.modules.pop, "shell_agent", None)
        self.patch(sys, "path", [str(self._installed()), str(PACKAGE), *sys.path])
        self.patch(sys, "dont_write_bytecode", True)

    def _installed(self) -> Path:
        """:returns: a directory with what pip writes about the package."""
        project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
        about = self.top / "site" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
        points = project["entry-points"][GROUP]
        text = "".join(f"{name} = {value}\n" for name, value in points.items())
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{text}")
        return about.parent

    def _turn(self, agent: Adapter, message: str) -> str:
        """Run a message as in a container, with the places of the test."""
        home, orientation = self.top / "home", self.top / "orientation"
        for file in agent.files(facts()):
            path = self.top / file.place / file.path
            if file.replace or not path.exists():
                path.write_text(file.content.replace("/workspace", str(self.top / "workspace")))
        given = {name: value.replace("/etc/ironcurtain", str(orientation)) for name, value in self._given(agent)}
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), **given}
        done = subprocess.run(
            agent.turn(facts(), True), input=message.encode(), capture_output=True, env=environ, cwd=home, timeout=30
        )
        return agent.answer(TurnOutcome(done.returncode, done.stdout, done.stderr)).text

    def _given(self, agent: Adapter) -> list[tuple[str, str]]:
        return list(agent.environment(facts()).items())

    def test_the_page_shows_these_files(self) -> None:
        shown = re.findall(r"literalinclude:: (\S+)", (DOCS / "agents.rst").read_text())
        self.assertEqual(sorted((DOCS / path).resolve() for path in shown), sorted(PACKAGE.glob("*.*")))

    def test_it_is_found_and_listed(self) -> None:
        agent = installed().find("shell-agent")
        self.assertEqual(agent.display_name, "Shell agent")
        [listed] = [listed for listed in installed().listing() if listed.id == "shell-agent"]
        self.assertEqual((listed.image, listed.providers, listed.problem), ("codex", (), ""))
        self.assertEqual(content(agent.files(facts()), "orientation", "orientation.md"), facts().orientation)

    def test_messages_are_answered_one_after_the_other(self) -> None:
        agent = installed().find("shell-agent")
        self.assertEqual(self._turn(agent, "mkdir src\ncd src\necho made"), "made")
        self.assertEqual(self._turn(agent, "pwd"), str(self.top / "workspace" / "src"))

    def test_failures(self) -> None:
        agent = installed().find("shell-agent")
        empty = self.assertRaises(TurnFailed, self._turn, agent, "true")
        self.assertEqual(empty.kind, "empty")
        error = self.assertRaises(TurnFailed, self._turn, agent, "echo no such luck >&2; exit 3")
        self.assertEqual(error.kind, "failed")
        self.assertIn("exit status 3", str(error))
        self.assertIn("no such luck", str(error))

    def test_its_own_notes_are_kept(self) -> None:
        agent = installed().find("shell-agent")
        self._turn(agent, "echo more >>~/notes.txt; echo done")
        self.assertEqual(self._turn(agent, "tail -n 1 ~/notes.txt"), "more")
