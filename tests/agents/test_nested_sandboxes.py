from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.claude_code import ClaudeCode
from ironcurtain.agents.codex import Codex
from ironcurtain.agents.gemini import Gemini
from tests.agents.samples import facts


class NestedSandboxTests(SynchronousTestCase):
    """Inside a sandbox no other one can be made, so what a project asks for must not win."""

    def test_claude_code_gets_the_setting_on_its_command_line(self) -> None:
        for line in (ClaudeCode().turn(facts(), True), ClaudeCode().screen(facts(), False)):
            self.assertEqual(json.loads(line[line.index("--settings") + 1]), {"sandbox": {"enabled": False}})

    def test_gemini_gets_a_variable(self) -> None:
        self.assertEqual(Gemini().environment(facts())["GEMINI_SANDBOX"], "false")

    def test_codex_gets_an_option_for_its_screen(self) -> None:
        self.assertIn("--dangerously-bypass-approvals-and-sandbox", Codex().screen(facts(), True))
