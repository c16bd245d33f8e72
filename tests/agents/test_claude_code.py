"""Claude Code: what it is given, and what it prints."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import AgentAnswer
from ironcurtain.agents.claude_code import ClaudeCode
from ironcurtain.errors import UsageError
from ironcurtain.llm.model import TokenUsage
from tests.agents.samples import KEYS, ORIENTATION, content, facts, failed, outcome

CLAUDE = ClaudeCode()


def init(status: str = "connected", name: str = "ironcurtain") -> dict[str, Any]:
    """:returns: the first event."""
    return {"type": "system", "subtype": "init", "mcp_servers": [{"name": name, "status": status}]}


def result(text: str, **members: Any) -> dict[str, Any]:
    """:returns: the last event."""
    counts = {"inputTokens": 11, "outputTokens": 7, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 3}
    return {
        **{"type": "result", "subtype": "success", "is_error": False, "result": text, "api_error_status": None},
        "modelUsage": {"claude-opus-5-5": {"inputTokens": 999}},
        "model_usage_since_last_result": {"claude-opus-5-5": counts, "claude-haiku-4-5": {"outputTokens": 5}},
        **members,
    }


class FileTests(SynchronousTestCase):
    """The files it finds."""

    def test_the_mcp_server_waits_for_people(self) -> None:
        servers = json.loads(content(CLAUDE.files(facts()), "orientation", "claude-mcp.json"))["mcpServers"]
        self.assertEqual(
            servers["ironcurtain"],
            {
                "command": "socat",
                "args": ["STDIO", "UNIX-CONNECT:/run/ironcurtain/proxy.sock"],
                "timeout": (300 + 3600) * 1000,
            },
        )

    def test_the_orientation(self) -> None:
        self.assertEqual(content(CLAUDE.files(facts()), "orientation", "orientation.md"), ORIENTATION)

    def test_first_questions_are_answered(self) -> None:
        """It knows a key that was approved by its last 20 characters."""
        answers = json.loads(content(CLAUDE.files(facts()), "home", ".claude.json"))
        self.assertTrue(answers["hasCompletedOnboarding"])
        self.assertEqual(answers["customApiKeyResponses"], {"approved": [KEYS["anthropic"][-20:]], "rejected": []})
        self.assertTrue(answers["projects"]["/workspace"]["hasTrustDialogAccepted"])

    def test_settings(self) -> None:
        settings = json.loads(content(CLAUDE.files(facts()), "home", ".claude/settings.json"))
        self.assertTrue(settings["skipDangerousModePermissionPrompt"])
        self.assertEqual(settings["permissions"]["deny"], ["WebFetch", "WebSearch"])
        self.assertNotIn("defaultMode", settings["permissions"])
        self.assertGreater(settings["cleanupPeriodDays"], 3650)


class CommandTests(SynchronousTestCase):
    """How it is called."""

    def test_a_turn(self) -> None:
        command = CLAUDE.turn(facts(), True)
        self.assertEqual(command, CLAUDE.turn(facts(), False))
        self.assertEqual(command[0], "claude")
        self.assertEqual(command[-1], "--print", "so that no prompt is taken from the command line")
        for option in ("--continue", "--strict-mcp-config", "--dangerously-skip-permissions", "--verbose"):
            self.assertIn(option, command)
        self.assertNotIn("--model", command)

    def test_a_model(self) -> None:
        command = CLAUDE.turn(facts(model="claude-haiku-5-5"), True)
        self.assertEqual(command[command.index("--model") + 1], "claude-haiku-5-5")

    def test_the_files_it_names_are_there(self) -> None:
        made = {f"/etc/ironcurtain/{file.path}" for file in CLAUDE.files(facts()) if file.place == "orientation"}
        named = {word for word in CLAUDE.turn(facts(), True) if word.startswith("/")}
        self.assertEqual(named, made)

    def test_a_resumed_session_gets_the_new_orientation(self) -> None:
        command = CLAUDE.turn(facts(resumed=True), False)
        self.assertEqual(command[command.index("--system-prompt-snapshot") + 1], "off")
        self.assertNotIn("--system-prompt-snapshot", CLAUDE.turn(facts(), False))

    def test_its_screen_goes_on_only_with_a_conversation_that_there_is(self) -> None:
        self.assertNotIn("--continue", CLAUDE.screen(facts(), True))
        self.assertIn("--continue", CLAUDE.screen(facts(), False))
        self.assertNotIn("--print", CLAUDE.screen(facts(), True))

    def test_the_screen_begins_with_a_task(self) -> None:
        self.assertEqual(CLAUDE.screen(facts(), True, "-x $(y)")[-2:], ("--", "-x $(y)"))
        self.assertEqual(CLAUDE.screen(facts(), False, "z")[-3:], ("--continue", "--", "z"))


class EnvironmentTests(SynchronousTestCase):
    """What it finds in its environment."""

    def test_the_key_and_no_other(self) -> None:
        environment = CLAUDE.environment(facts())
        self.assertEqual(environment["ANTHROPIC_API_KEY"], KEYS["anthropic"])
        self.assertNotIn(KEYS["openai"], environment.values())
        self.assertEqual(environment["ENABLE_TOOL_SEARCH"], "false")

    def test_without_a_key(self) -> None:
        error = self.assertRaises(UsageError, CLAUDE.environment, facts({"openai": "x"}))
        self.assertIn("providers.anthropic", str(error))


class AnswerTests(SynchronousTestCase):
    """What it prints."""

    def test_an_answer_with_what_this_turn_used(self) -> None:
        answer = CLAUDE.answer(outcome(init(), result("Done.\n")))
        self.assertEqual(answer, AgentAnswer("Done.\n", TokenUsage(11, 12, 2, 3)))

    def test_the_beginning_may_be_missing(self) -> None:
        self.assertEqual(CLAUDE.answer(outcome(result("Done."))).text, "Done.")

    def test_an_empty_answer(self) -> None:
        self.assertEqual(failed(CLAUDE, outcome(init(), result(" \n"))).kind, "empty")

    def test_no_connection_to_the_tools(self) -> None:
        """The turn runs all the same, and says so nowhere else."""
        for first in (init("failed"), init(name="other"), {"type": "system", "subtype": "init", "mcp_servers": 3}):
            error = failed(CLAUDE, outcome(first, result("I have no tools.")))
            self.assertEqual(error.kind, "mcp-down")
            self.assertIn("I have no tools.", str(error))

    def test_a_connection_that_is_still_being_made(self) -> None:
        self.assertEqual(CLAUDE.answer(outcome(init("pending"), result("Done."))).text, "Done.")

    def test_overloaded(self) -> None:
        said = result("API Error: Repeated 529 Overloaded errors.", is_error=True, api_error_status=529)
        error = failed(CLAUDE, outcome(init(), said, exit_code=1))
        self.assertEqual((error.kind, error.code), ("overloaded", "MESSAGE_FAILED"))
        self.assertIn("exit status 1", str(error))
        self.assertIn("Repeated 529", str(error))

    def test_no_money(self) -> None:
        said = result("Credit balance is too low", is_error=True, api_error_status=400)
        self.assertEqual(failed(CLAUDE, outcome(init(), said, exit_code=1)).kind, "quota")

    def test_rate_limited(self) -> None:
        said = result("API Error: slow down", is_error=True, api_error_status=429)
        self.assertEqual(failed(CLAUDE, outcome(init(), said, exit_code=1)).kind, "quota")

    def test_refused_by_us(self) -> None:
        text = "Failed to authenticate. API Error: 403 IronCurtain: no rule lets POST /v1/files pass"
        error = failed(CLAUDE, outcome(init(), result(text, is_error=True, api_error_status=403), exit_code=1))
        self.assertEqual(error.kind, "refused")

    def test_an_error_without_a_result(self) -> None:
        said = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["it broke", 3]}
        error = failed(CLAUDE, outcome(init(), said, exit_code=1))
        self.assertEqual(error.kind, "failed")
        self.assertIn("it broke", str(error))

    def test_a_status_without_an_error(self) -> None:
        self.assertEqual(failed(CLAUDE, outcome(init(), result("Done."), exit_code=137)).kind, "failed")

    def test_nothing_but_an_error_output(self) -> None:
        error = failed(CLAUDE, outcome(exit_code=1, stderr="Error: config is broken\x1b[0m\n"))
        self.assertEqual(error.kind, "failed")
        self.assertIn("Error: config is broken\\x1b[0m", str(error))
