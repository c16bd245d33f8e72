"""Gemini CLI: what it is given, and what it prints."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import AgentAnswer
from ironcurtain.agents.gemini import Gemini
from ironcurtain.errors import UsageError
from ironcurtain.llm.model import TokenUsage
from tests.agents.samples import KEYS, ORIENTATION, content, facts, failed, outcome

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
        self.assertEqual(command[0], "gemini")
        self.assertEqual(command[command.index("--resume") + 1], "latest")
        self.assertEqual(command[command.index("--output-format") + 1], "stream-json")

    def test_its_screen(self) -> None:
        self.assertEqual(GEMINI.screen(facts(model="m"), True), ("gemini", "--yolo", "--model", "m"))
        self.assertIn("--resume", GEMINI.screen(facts(), False))

    def test_the_screen_begins_with_a_task(self) -> None:
        self.assertEqual(GEMINI.screen(facts(), True, "-x $(y)")[-1], "--prompt-interactive=-x $(y)")

    def test_the_key(self) -> None:
        self.assertEqual(GEMINI.environment(facts())["GEMINI_API_KEY"], KEYS["google"])
        self.assertRaises(UsageError, GEMINI.environment, facts({}))


class AnswerTests(SynchronousTestCase):
    """What it prints."""

    def test_the_text_after_the_last_tool(self) -> None:
        ended = outcome(
            message("Do it.", "user"), message("I shall look."), TOOL, message("It is "), message("done."), SUCCESS
        )
        self.assertEqual(GEMINI.answer(ended), AgentAnswer("It is done.", TokenUsage(11, 9, 5, 0)))

    def test_nothing_after_the_last_tool(self) -> None:
        self.assertEqual(GEMINI.answer(outcome(message("Done."), TOOL, message(" "), SUCCESS)).text, "Done.")

    def test_an_empty_answer(self) -> None:
        """It ends with status 0."""
        said = {"type": "error", "severity": "error", "message": "The model returned an empty response with no text"}
        self.assertEqual(failed(GEMINI, outcome(said, {"type": "result", "status": "error"})).kind, "empty")
        self.assertEqual(failed(GEMINI, outcome(TOOL, SUCCESS)).kind, "empty")

    def test_no_connection_to_the_tools(self) -> None:
        stderr = "MCP issues detected. Run /mcp list for status."
        self.assertEqual(failed(GEMINI, outcome(message("Hello."), SUCCESS, stderr=stderr)).kind, "mcp-down")

    def test_refused_by_us(self) -> None:
        """Its exit status is the lowest byte of the HTTP status."""
        error = failed(GEMINI, outcome(refused(403, "IronCurtain: no rule lets it pass"), exit_code=147))
        self.assertEqual(error.kind, "refused")

    def test_quota_and_overload(self) -> None:
        self.assertEqual(failed(GEMINI, outcome(refused(429, "slow down"), exit_code=173)).kind, "quota")
        self.assertEqual(failed(GEMINI, outcome(refused(503, "try later"), exit_code=247)).kind, "overloaded")

    def test_a_turn_that_was_cut_off(self) -> None:
        error = failed(GEMINI, outcome(message("I shall look."), exit_code=55, stderr="not a trusted folder"))
        self.assertEqual(error.kind, "failed")
        self.assertIn("not a trusted folder", str(error))
