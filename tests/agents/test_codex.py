"""Codex: what it is given, and what it prints."""

from __future__ import annotations

import tomllib
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.codex import Codex
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, ORIENTATION, content, facts

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
        self.assertEqual(command, ("codex", "app-server"))

    def test_a_model(self) -> None:
        command = CODEX.screen(facts(model="gpt-4.1"), True)
        self.assertEqual(command[command.index("--model") + 1], "gpt-4.1")
        talk = CODEX.dialogue(facts(model="gpt-4.1"))
        talk.begin()
        *_, thread = talk.output(b'{"id": 1, "result": {}}\n')
        self.assertIn(b'"model": "gpt-4.1"', thread.data)  # type: ignore[union-attr]

    def test_the_screen_begins_with_a_task(self) -> None:
        self.assertEqual(CODEX.screen(facts(), True, "-x $(y)")[-2:], ("--", "-x $(y)"))
        self.assertIn("--no-daemon", CODEX.screen(facts(), True))

    def test_its_screen(self) -> None:
        self.assertNotIn("resume", CODEX.screen(facts(), True))
        self.assertEqual(CODEX.screen(facts(), False)[:3], ("codex", "resume", "--last"))

    def test_the_key(self) -> None:
        self.assertEqual(CODEX.environment(facts()), {"OPENAI_API_KEY": KEYS["openai"]})
        self.assertRaises(UsageError, CODEX.environment, facts({}))
