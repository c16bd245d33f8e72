"""Codex: what it is given, and what it prints."""

from __future__ import annotations

import tomllib
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import AgentAnswer
from ironcurtain.agents.codex import Codex
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, ORIENTATION, content, facts, failed, outcome

CODEX = Codex()

STARTED = {"type": "thread.started", "thread_id": "01a1fe28"}
COMPLETED = {"type": "turn.completed", "usage": {"input_tokens": 48, "cached_input_tokens": 15, "output_tokens": 21}}


def message(text: str) -> dict[str, Any]:
    """:returns: a message of the agent."""
    return {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}}


def refused(text: str) -> list[dict[str, Any]]:
    """:returns: the events of a turn whose request to the model failed."""
    return [
        STARTED,
        {"type": "error", "message": f"Reconnecting... 1/5 ({text})"},
        {"type": "turn.failed", "error": {"message": text}},
    ]


class FileTests(SynchronousTestCase):
    """The files it finds."""

    def setUp(self) -> None:
        self.configuration = tomllib.loads(content(CODEX.files(facts()), "home", ".codex/config.toml"))

    def test_the_mcp_server_is_needed_and_waits_for_people(self) -> None:
        server = self.configuration["mcp_servers"]["ironcurtain"]
        self.assertEqual(server["command"], "socat")
        self.assertEqual(server["args"], ["STDIO", "UNIX-CONNECT:/run/ironcurtain/proxy.sock"])
        self.assertTrue(server["required"])
        self.assertEqual(server["tool_timeout_sec"], 300 + 3600)

    def test_tools_are_called_outside_of_scripts(self) -> None:
        """A script is given up after 30 seconds, and with it the question to a person."""
        code_mode = self.configuration["features"]["code_mode"]
        self.assertEqual(code_mode["direct_only_tool_namespaces"], ["mcp__ironcurtain"])

    def test_one_endpoint_of_the_model_is_enough(self) -> None:
        provider = self.configuration["model_providers"][self.configuration["model_provider"]]
        self.assertEqual(provider["base_url"], "https://api.openai.com/v1")
        self.assertEqual(provider["env_key"], "OPENAI_API_KEY")
        self.assertFalse(provider["supports_websockets"])
        self.assertEqual(self.configuration["web_search"], "disabled")

    def test_the_workspace_is_trusted(self) -> None:
        self.assertEqual(self.configuration["projects"], {"/workspace": {"trust_level": "trusted"}})

    def test_the_orientation(self) -> None:
        self.assertEqual(content(CODEX.files(facts()), "home", ".codex/AGENTS.md"), ORIENTATION)


class CommandTests(SynchronousTestCase):
    """How it is called."""

    def test_a_turn(self) -> None:
        command = CODEX.turn(facts(), True)
        self.assertEqual(command, CODEX.turn(facts(), False))
        self.assertEqual(command[:2], ("codex", "exec"))
        self.assertEqual(command[-3:], ("resume", "--last", "-"), "the message comes by standard input")
        self.assertIn("--json", command)
        self.assertIn("--skip-git-repo-check", command)

    def test_a_model(self) -> None:
        for command in (CODEX.turn(facts(model="gpt-4.1"), True), CODEX.screen(facts(model="gpt-4.1"), True)):
            self.assertEqual(command[command.index("--model") + 1], "gpt-4.1")

    def test_the_screen_begins_with_a_task(self) -> None:
        self.assertEqual(CODEX.screen(facts(), True, "-x $(y)")[-2:], ("--", "-x $(y)"))
        self.assertIn("--no-daemon", CODEX.screen(facts(), True))

    def test_its_screen(self) -> None:
        self.assertNotIn("resume", CODEX.screen(facts(), True))
        self.assertEqual(CODEX.screen(facts(), False)[:3], ("codex", "resume", "--last"))

    def test_the_key(self) -> None:
        self.assertEqual(CODEX.environment(facts()), {"OPENAI_API_KEY": KEYS["openai"]})
        self.assertRaises(UsageError, CODEX.environment, facts({}))


class AnswerTests(SynchronousTestCase):
    """What it prints."""

    def test_the_last_message_is_the_answer(self) -> None:
        answer = CODEX.answer(outcome(STARTED, message("I shall look."), message("Done."), COMPLETED))
        self.assertEqual(answer, AgentAnswer("Done."), "its counts are those of all turns, so none are taken")

    def test_a_last_message_that_is_empty(self) -> None:
        self.assertEqual(CODEX.answer(outcome(message("Done."), message(""), COMPLETED)).text, "Done.")

    def test_an_empty_answer(self) -> None:
        self.assertEqual(failed(CODEX, outcome(STARTED, COMPLETED)).kind, "empty")

    def test_no_connection_to_the_tools(self) -> None:
        stderr = "Error: thread/resume failed: required MCP servers failed to initialize: ironcurtain: handshaking"
        self.assertEqual(failed(CODEX, outcome(exit_code=1, stderr=stderr)).kind, "mcp-down")

    def test_refused_by_us(self) -> None:
        text = "unexpected status 403 Forbidden: IronCurtain: not this path, url: https://api.openai.com/v1/responses"
        error = failed(CODEX, outcome(*refused(text), exit_code=1))
        self.assertEqual(error.kind, "refused")
        self.assertIn("not this path", str(error))

    def test_overloaded(self) -> None:
        text = "Selected model is at capacity. Please try a different model."
        self.assertEqual(failed(CODEX, outcome(*refused(text), exit_code=1)).kind, "overloaded")

    def test_no_money(self) -> None:
        text = "Quota exceeded. Check your plan and billing details."
        self.assertEqual(failed(CODEX, outcome(*refused(text), exit_code=1)).kind, "quota")

    def test_a_turn_that_was_cut_off(self) -> None:
        self.assertEqual(failed(CODEX, outcome(STARTED, message("I shall look."))).kind, "failed")
