"""Goose: what it is given, and what it prints."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.goose import Goose
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, ORIENTATION, content, facts

GOOSE = Goose()

COMPLETE = {"type": "complete", "total_tokens": 1234}


def message(words: str, identity: str | None = "m1", role: str = "assistant") -> dict[str, Any]:
    """:returns: a piece of a message."""
    parts = [{"type": "text", "text": words}, {"type": "toolRequest", "id": "t"}]
    return {"type": "message", "message": {"id": identity, "role": role, "content": parts}}


class FileTests(SynchronousTestCase):
    """The files it finds."""

    def test_the_mcp_server_waits_for_people(self) -> None:
        # YAML, written as JSON, which is YAML too.
        text = content(GOOSE.files(facts()), "home", ".config/goose/config.yaml")
        server = json.loads(text)["extensions"]["ironcurtain"]
        self.assertEqual([server["cmd"], *server["args"]][:2], ["socat", "STDIO"])
        self.assertEqual(server["timeout"], 300 + 3600)

    def test_the_orientation(self) -> None:
        self.assertEqual(content(GOOSE.files(facts()), "home", ".config/goose/.goosehints"), ORIENTATION)


class EnvironmentTests(SynchronousTestCase):
    """What it finds in its environment."""

    def test_a_model_and_only_its_key(self) -> None:
        environment = GOOSE.environment(facts(model="gemini-2.5-flash"))
        self.assertEqual((environment["GOOSE_PROVIDER"], environment["GOOSE_MODEL"]), ("google", "gemini-2.5-flash"))
        self.assertEqual(environment["GOOGLE_API_KEY"], KEYS["google"])
        self.assertNotIn("ANTHROPIC_API_KEY", environment)
        self.assertEqual(environment["GOOSE_MODE"], "auto")

    def test_it_needs_a_model(self) -> None:
        self.assertIn("--model", str(self.assertRaises(UsageError, GOOSE.environment, facts())))


class CommandTests(SynchronousTestCase):
    """How it is called."""

    def test_a_turn(self) -> None:
        self.assertEqual(GOOSE.turn(facts(), True), ("goose", "acp"))

    def test_its_screen(self) -> None:
        self.assertEqual(GOOSE.screen(facts(), True), ("goose", "session"))
        self.assertEqual(GOOSE.screen(facts(), False), ("goose", "session", "--resume"))

    def test_the_screen_begins_with_a_task(self) -> None:
        wanted = ("goose", "run", "--interactive", "--text", "-x $(y)")
        self.assertEqual(GOOSE.screen(facts(), True, "-x $(y)"), wanted)
