"""Gemini CLI: what it is given, and what it prints."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.gemini import Gemini
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, ORIENTATION, content, facts

GEMINI = Gemini()

STATS = {"total_tokens": 25, "input_tokens": 16, "output_tokens": 7, "cached": 5, "input": 11}
SUCCESS = {"type": "result", "status": "success", "stats": STATS}
TOOL = {"type": "tool_use", "tool_name": "mcp_ironcurtain_echo", "parameters": {}}
EXTENSION = ".gemini/extensions/ironcurtain"


def message(words: str, role: str = "assistant") -> dict[str, Any]:
    """:returns: a piece of a message."""
    return {"type": "message", "role": role, "content": words, "delta": True}


def refused(code: int, words: str) -> dict[str, Any]:
    """:returns: what it prints of a request to the model that failed."""
    body = json.dumps({"error": {"code": code, "message": words, "status": "X"}})
    return {"type": "result", "status": "error", "error": {"type": "unknown", "message": f"[API Error: {body}]"}}


class FileTests(SynchronousTestCase):
    """The files it finds."""

    def setUp(self) -> None:
        self.settings = json.loads(content(GEMINI.files(facts()), "home", ".gemini/settings.json"))

    def test_the_mcp_server_waits_for_people(self) -> None:
        server = self.settings["mcpServers"]["ironcurtain"]
        self.assertEqual([server["command"], *server["args"]][:2], ["socat", "STDIO"])
        self.assertEqual(server["timeout"], (300 + 3600) * 1000)

    def test_first_questions_are_answered(self) -> None:
        self.assertEqual(self.settings["security"]["auth"]["selectedType"], "gemini-api-key")
        self.assertFalse(self.settings["security"]["folderTrust"]["enabled"])
        self.assertFalse(self.settings["privacy"]["usageStatisticsEnabled"])
        self.assertFalse(self.settings["general"]["sessionRetention"]["enabled"])

    def test_the_orientation_is_an_extension(self) -> None:
        """A project's settings can switch other context files off."""
        extension = json.loads(content(GEMINI.files(facts()), "home", f"{EXTENSION}/gemini-extension.json"))
        path = f"{EXTENSION}/{extension['contextFileName']}"
        self.assertEqual(content(GEMINI.files(facts()), "home", path), ORIENTATION)

    def test_what_it_remembers_is_left_alone(self) -> None:
        self.assertNotIn(".gemini/GEMINI.md", [file.path for file in GEMINI.files(facts())])

    def test_tools_that_need_a_network_are_denied(self) -> None:
        policy = tomllib.loads(content(GEMINI.files(facts()), "home", ".gemini/policies/ironcurtain.toml"))
        [rule] = policy["rule"]
        self.assertEqual((rule["decision"], rule["toolName"]), ("deny", ["google_web_search", "web_fetch"]))


class CommandTests(SynchronousTestCase):
    """How it is called."""

    def test_a_turn(self) -> None:
        command = GEMINI.turn(facts(), True)
        self.assertEqual(command, GEMINI.turn(facts(), False))
        self.assertEqual(command, ("gemini", "--yolo", "--acp"))

    def test_its_screen(self) -> None:
        self.assertEqual(GEMINI.screen(facts(model="m"), True), ("gemini", "--yolo", "--model", "m"))
        self.assertIn("--resume", GEMINI.screen(facts(), False))

    def test_the_screen_begins_with_a_task(self) -> None:
        self.assertEqual(GEMINI.screen(facts(), True, "-x $(y)")[-1], "--prompt-interactive=-x $(y)")

    def test_the_key(self) -> None:
        self.assertEqual(GEMINI.environment(facts())["GEMINI_API_KEY"], KEYS["google"])
        self.assertRaises(UsageError, GEMINI.environment, facts({}))
