"""Wherever agents are listed, those that were never run with their real program are marked."""

from __future__ import annotations

import re
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.completion import in_containers
from ironcurtain.cli.fleet import _row
from ironcurtain.errors import ConfigurationError
from ironcurtain.fleet.members import KnownMember, Member
from ironcurtain.home.agent_names import OWN_AGENTS, UNTESTED, listed, marked
from ironcurtain.watchers.config import read_watchers
from tests.product import Product

TOP = Path(__file__).parent.parent.parent

UNMARKED = re.compile(r"\bGoose\b(?! \(untested\))|``goose``(?! \(untested\)|, Goose \(untested\))")
"""An untested agent, by name or id, without the mark."""

ELSEWHERE = frozenset(("docs/changes.rst", "docs/news/+client-tables.feature.rst", "docs/reference/mcp-servers.rst"))
"""Pages that list no agents to run: what was once, and the files of other MCP clients."""


class NameTests(SynchronousTestCase):
    def test_only_untested_agents_are_marked(self) -> None:
        self.assertEqual(listed(("codex", "goose", "other")), "codex, goose (untested), other")
        self.assertEqual((marked("goose", "Goose"), marked("codex", "Codex")), ("Goose (untested)", "Codex"))
        self.assertLessEqual(UNTESTED, set(OWN_AGENTS))

    def test_lists_of_fleets_watchers_and_completions_mark_them(self) -> None:
        member = Member(host="build", start=1, number=1, agents=("codex", "goose"))
        self.assertIn("codex,goose (untested)", _row(KnownMember(member, 0.0, False)))
        table = '[watchers.w]\ntrigger = "file_change"\npath = "/x"\ninstruction = "x"\nagent = "nobody"\n'
        error = self.assertRaises(
            ConfigurationError, read_watchers, f"version = 1\n{table}", "file", {}, lambda: ["codex", "goose"]
        )
        self.assertIn("codex, goose (untested), shell", str(error))
        command = click.Command("x", params=[click.Argument(["agent"])])
        offered = in_containers(click.Context(command), command.params[0], "")
        self.assertEqual({each.value for each in offered if each.help == "untested"}, UNTESTED)


class PageTests(SynchronousTestCase):
    def test_every_page_marks_them(self) -> None:
        pages = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.rst"))]
        wrong = [
            f"{page.relative_to(TOP)}:{number}"
            for page in pages
            if str(page.relative_to(TOP)) not in ELSEWHERE
            for number, line in enumerate(page.read_text().splitlines(), 1)
            if UNMARKED.search(line)
        ]
        self.assertEqual(wrong, [])


class CommandTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.environ |= {"DOCKER_HOST": f"unix://{self.product.person}/none", "ANTHROPIC_API_KEY": "sk-ant-x"}

    def check(self, *words: str) -> None:
        """Run a command whose output names an untested agent, each time with the mark."""
        done = self.product.run(*words)
        text = done.stdout + done.stderr
        self.assertIn("goose", text, words)
        for line in text.splitlines():
            if "goose" in line:
                self.assertIn("untested", line, words)

    def test_every_command_that_lists_agents_marks_them(self) -> None:
        self.check("start", "--list-agents")
        self.check("start", "--agent", "nobody", "do it")
        self.check("loop", "--agent", "nobody", "-p", "do it")
        self.check("images", "build", "nobody")
        self.check("images", "update", "nobody")
        self.check("doctor")
        self.check("config", "check")  # which accounts pay

    def test_settings_that_name_no_agent_are_refused_with_a_marked_list(self) -> None:
        self.product.home.mkdir(mode=0o700)
        for wrong in ('default_agent = "nobody"\n', "[agents.nobody]\nshare = true\n"):
            (self.product.home / "config.toml").write_text(wrong)
            self.check("config", "check")
