"""Claude Code: what it is given, and what it prints."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.claude_code import ClaudeCode
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, ORIENTATION, content, facts

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
        self.assertEqual(set(CLAUDE.turn(facts(), False)) - set(command), {"--continue"})
        self.assertEqual(command[0], "claude")
        self.assertEqual(command[-1], "--print", "so that no prompt is taken from the command line")
        for option in ("--strict-mcp-config", "--dangerously-skip-permissions", "--verbose"):
            self.assertIn(option, command)
        self.assertNotIn("--model", command)

    def test_a_known_conversation_is_resumed_by_its_id(self) -> None:
        command = CLAUDE.turn(facts(conversation="c-1"), False)
        self.assertEqual(command[command.index("--resume") + 1], "c-1")
        self.assertNotIn("--continue", command)

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
        for version, has in (
            ("2.1.256", False),
            ("2.1.257", True),
            ("2.2", True),
            ("unknown", True),
            ("1.9.999", False),
        ):
            command = CLAUDE.turn(replace(facts(resumed=True), version=version), False)
            self.assertEqual("--system-prompt-snapshot" in command, has, version)

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
