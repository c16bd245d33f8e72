"""What ``ironcurtain doctor`` says about the programs of agents."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.cli.doctor_agents import agent_findings
from ironcurtain.cli.findings import HINT, OK, Finding
from ironcurtain.home.layout import Home
from ironcurtain.sandbox import bubblewrap


class AccountTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.top)

    def every(self, has_engine: bool, **variables: str) -> list[Finding]:
        """:returns: what is said about all agents."""
        self.patch(os, "environ", {"HOME": str(self.top), "PATH": os.defpath, **variables})
        return list(agent_findings(Home(self.top / "home", self.top / "run"), None, has_engine))

    def found(self, **variables: str) -> Finding:
        """:returns: what is said about an agent that can run in a container."""
        return next(each for each in self.every(True, **variables) if each.what == "agent claude-code")

    def test_agent_without_an_account_is_a_hint_with_the_ways_to_get_one(self) -> None:
        finding = self.found()
        self.assertEqual(finding.state, HINT)
        self.assertIn("no account", finding.detail)
        self.assertIn("export ANTHROPIC_API_KEY=... for a key, or ironcurtain login for a subscription", finding.mend)

    def test_agent_with_an_account_is_fine(self) -> None:
        finding = self.found(ANTHROPIC_API_KEY="sk-ant-x")
        self.assertEqual((finding.state, "It needs an account" in finding.mend), (OK, False))

    def test_what_bubblewrap_does_not_hold_is_said_once_where_agents_run_with_it_only(self) -> None:
        if (problem := bubblewrap.available(None)) is not None:
            raise SkipTest(problem)
        for name in ("claude", "codex"):
            program = self.top / ".local/bin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
        for has_engine in (False, True):
            said = [str(each) for each in self.every(has_engine) if "processor time" in each.detail + each.mend]
            self.assertEqual(len(said), not has_engine, said)
            self.assertNotIn("agents with Landlock", [each.what for each in self.every(has_engine)])
