"""What ``ironcurtain doctor`` says about the programs of agents."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.doctor_agents import agent_findings
from ironcurtain.cli.findings import HINT, OK, Finding
from ironcurtain.home.layout import Home


class AccountTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.top)

    def found(self, **variables: str) -> Finding:
        """:returns: what is said about an agent that can run in a container."""
        self.patch(os, "environ", {"HOME": str(self.top), "PATH": os.defpath, **variables})
        home = Home(self.top / "home", self.top / "run")
        return next(each for each in agent_findings(home, None, True) if each.what == "agent claude-code")

    def test_agent_without_an_account_is_a_hint_with_the_ways_to_get_one(self) -> None:
        finding = self.found()
        self.assertEqual(finding.state, HINT)
        self.assertIn("no account", finding.detail)
        self.assertIn("export ANTHROPIC_API_KEY=... for a key, or ironcurtain login for a subscription", finding.mend)

    def test_agent_with_an_account_is_fine(self) -> None:
        finding = self.found(ANTHROPIC_API_KEY="sk-ant-x")
        self.assertEqual((finding.state, "It needs an account" in finding.mend), (OK, False))
