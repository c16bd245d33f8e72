"""Goose: what it is given, and what it prints."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.goose import Goose
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, ORIENTATION, content, facts, failed, outcome

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
        self.assertNotIn("--resume", GOOSE.turn(facts(), True))
        self.assertIn("--resume", GOOSE.turn(facts(), False))
        self.assertEqual(GOOSE.turn(facts(), True)[-2:], ("--instructions", "-"))

    def test_its_screen(self) -> None:
        self.assertEqual(GOOSE.screen(facts(), True), ("goose", "session"))
        self.assertEqual(GOOSE.screen(facts(), False), ("goose", "session", "--resume"))

    def test_the_screen_begins_with_a_task(self) -> None:
        wanted = ("goose", "run", "--interactive", "--text", "-x $(y)")
        self.assertEqual(GOOSE.screen(facts(), True, "-x $(y)"), wanted)


class AnswerTests(SynchronousTestCase):
    """What it prints."""

    def test_the_pieces_of_the_last_message(self) -> None:
        ended = outcome(
            message("Do it.", "u", "user"), message("I look.", "m1"), message("It is ", "m2"), message("done.", "m2")
        )
        self.assertEqual(GOOSE.answer(ended).text, "It is done.")

    def test_messages_without_an_id_are_whole(self) -> None:
        self.assertEqual(GOOSE.answer(outcome(message("One.", None), message("Two.", None), COMPLETE)).text, "Two.")

    def test_an_empty_answer(self) -> None:
        self.assertEqual(failed(GOOSE, outcome(message(""), COMPLETE)).kind, "empty")

    def test_a_message_that_is_an_error(self) -> None:
        text = "Ran into this error: Request failed: IronCurtain: no rule lets it pass.\n\nPlease retry."
        self.assertEqual(failed(GOOSE, outcome(message(text), COMPLETE)).kind, "refused")

    def test_an_error(self) -> None:
        error = failed(GOOSE, outcome({"type": "error", "error": "Rate limit exceeded"}, exit_code=1))
        self.assertEqual(error.kind, "quota")

    def test_no_connection_to_the_tools(self) -> None:
        stderr = "Warning: Failed to start extension 'ironcurtain' (broken pipe), continuing without it"
        self.assertEqual(failed(GOOSE, outcome(message("Hello."), COMPLETE, stderr=stderr)).kind, "mcp-down")
