"""OpenCode: what it is given, and what it prints."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.opencode import OpenCode
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, ORIENTATION, content, facts

OPENCODE = OpenCode()

TOKENS = {"total": 23, "input": 11, "output": 7, "reasoning": 1, "cache": {"write": 3, "read": 2}}
STEP = {"type": "step_finish", "part": {"type": "step-finish", "tokens": TOKENS}}


def text(words: str, message: str = "msg_1") -> dict[str, Any]:
    """:returns: a text of the agent."""
    return {"type": "text", "part": {"messageID": message, "type": "text", "text": words}}


def error(message: str, status: int) -> dict[str, Any]:
    """:returns: what it prints of a request to the model that failed."""
    return {"type": "error", "error": {"name": "APIError", "data": {"message": message, "statusCode": status}}}


class FileTests(SynchronousTestCase):
    """The files it finds."""

    def configuration(self, **given: Any) -> dict[str, Any]:
        """:returns: its configuration."""
        made: dict[str, Any] = json.loads(content(OPENCODE.files(facts(**given)), "orientation", "opencode.json"))
        return made

    def test_the_mcp_server_waits_for_people(self) -> None:
        server = self.configuration()["mcp"]["ironcurtain"]
        self.assertEqual(server["command"], ["socat", "STDIO", "UNIX-CONNECT:/run/ironcurtain/proxy.sock"])
        self.assertEqual(server["timeout"], (300 + 3600) * 1000)

    def test_the_orientation_is_named_and_there(self) -> None:
        [path] = self.configuration()["instructions"]
        name = path.removeprefix("/etc/ironcurtain/")
        self.assertEqual(content(OPENCODE.files(facts()), "orientation", name), ORIENTATION)

    def test_nothing_is_asked_and_nothing_fetched(self) -> None:
        permission = self.configuration()["permission"]
        self.assertEqual(next(iter(permission)), "*", "what comes later wins")
        self.assertEqual((permission["*"], permission["webfetch"]), ("allow", "deny"))

    def test_its_own_packages_are_not_fetched(self) -> None:
        self.assertEqual(content(OPENCODE.files(facts()), "home", ".config/opencode/.npmrc"), "offline=true\n")

    def test_a_model_is_named_with_its_provider(self) -> None:
        self.assertNotIn("model", self.configuration())
        self.assertEqual(self.configuration()["disabled_providers"], ["google", "opencode"])
        for given, wanted in (
            ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
            ("gpt-4.1", "openai/gpt-4.1"),
            ("google/gemini-2.5-flash", "google/gemini-2.5-flash"),
        ):
            self.assertEqual(self.configuration(model=given)["model"], wanted)
            self.assertNotIn("disabled_providers", self.configuration(model=given))


class EnvironmentTests(SynchronousTestCase):
    """What it finds in its environment."""

    def test_the_keys_that_there_are(self) -> None:
        environment = OPENCODE.environment(facts({"openai": KEYS["openai"], "other": "x"}))
        self.assertEqual(environment["OPENAI_API_KEY"], KEYS["openai"])
        self.assertNotIn("ANTHROPIC_API_KEY", environment)
        self.assertNotIn("x", environment.values())
        self.assertEqual(environment["OPENCODE_CONFIG"], "/etc/ironcurtain/opencode.json")

    def test_google(self) -> None:
        """Its own choice of a model is of no use."""
        keys = {"google": KEYS["google"]}
        environment = OPENCODE.environment(facts(keys, model="gemini-2.5-pro"))
        self.assertEqual(environment["GOOGLE_GENERATIVE_AI_API_KEY"], KEYS["google"])
        self.assertIn("--model", str(self.assertRaises(UsageError, OPENCODE.environment, facts(keys))))

    def test_a_model_without_a_key(self) -> None:
        given = facts({"openai": KEYS["openai"]}, model="claude-opus-5-5")
        self.assertIn("anthropic", str(self.assertRaises(UsageError, OPENCODE.environment, given)))
        self.assertRaises(UsageError, OPENCODE.environment, facts({}))


class CommandTests(SynchronousTestCase):
    """How it is called."""

    def test_a_turn(self) -> None:
        command = OPENCODE.turn(facts(), True)
        self.assertEqual(command, OPENCODE.turn(facts(), False))
        self.assertEqual(command[:2], ("opencode", "acp"))
        self.assertIn("--print-logs", command, "without its log it does not say that it lost its tools")

    def test_its_screen(self) -> None:
        self.assertEqual(OPENCODE.screen(facts(), True), ("opencode",))
        self.assertEqual(OPENCODE.screen(facts(), False), ("opencode", "--continue"))

    def test_the_screen_begins_with_a_task(self) -> None:
        self.assertEqual(OPENCODE.screen(facts(), True, "-x $(y)"), ("opencode", "--prompt=-x $(y)"))
        with self.assertRaisesRegex(UsageError, "accepts no task for a resumed conversation"):
            OPENCODE.screen(facts(), False, "x")
