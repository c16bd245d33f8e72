"""The list of sessions."""

from __future__ import annotations

import json
import uuid

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.history import History
from ironcurtain.session.model import Turn, Usage
from tests.product import Product


class EndedSessionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))

    def end(self, number: int, label: str, *messages: str, state: str = "closed", turns: int = 4) -> None:
        """
        Leave an ended session behind, whose history has these messages.

        :param state: the last one that its owner wrote.
        """
        session = str(uuid.UUID(int=number))
        directory = self.product.home / "sessions" / session
        directory.mkdir(parents=True)
        (directory / "session.log").touch()
        history = History(directory / "history.jsonl")
        for message in messages:
            history.append(Turn(number=1, message=message, answer="", usage=Usage(), timestamp=""))
        described = {"id": session, "number": number, "kind": "codex", "label": label, "state": state}
        more = {"started_at": "2026-01-01T00:00:00.000Z", "workspace": "/w", "turns": turns}
        (directory / "session.json").write_text(json.dumps(described | more))

    def test_ended_sessions_are_listed_and_searched(self) -> None:
        self.end(1, "codex: mend it")
        self.end(2, "codex: break it")
        self.assertIn("No sessions", self.product.run("sessions").stdout)
        self.assertRegex(self.product.run("sessions", "--all").stdout, r"1 +ended .* 4 .*codex: mend it\n2 +ended")
        found = self.product.json("sessions", "--all", "--filter", "MEND")
        self.assertEqual([info["number"] for info in found], [1])
        self.assertEqual(self.product.run("sessions", "--all", "--filter", "nowhere").stdout, "No session matches.\n")

    def test_old_sessions_are_removed_in_the_order_of_their_numbers(self) -> None:
        for number in (2, 3, 1):
            self.end(number, "codex: mend it")
        self.assertEqual(self.product.json("cleanup", "--older-than", "0h", "--yes")["removed"], [1, 2, 3])

    def test_session_whose_owner_was_killed_is_closed_and_has_all_messages(self) -> None:
        self.end(1, "codex: interactive", "mend the parser", state="ready", turns=0)
        (info,) = self.product.json("sessions", "--all")
        found = [info[name] for name in ("state", "turns", "label", "reason")]
        self.assertEqual(found, ["closed", 1, "codex: mend the parser", "its process was ended"])

    def test_ended_conversation_is_named_by_its_first_message(self) -> None:
        self.end(1, "codex: interactive", "mend the parser", "and now break it")
        self.end(2, "codex: interactive")
        labels = [info["label"] for info in self.product.json("sessions", "--all")]
        self.assertEqual(labels, ["codex: mend the parser", "codex: interactive"])

    def test_session_with_a_damaged_description_is_named(self) -> None:
        self.end(1, "codex: mend it")
        self.end(2, "codex: break it")
        lost = self.product.home / "sessions" / str(uuid.UUID(int=2))
        (lost / "session.json").write_bytes(b'{"id":"\xff"}')
        done = self.product.run("sessions", "--all")
        self.assertEqual(len(done.stdout.splitlines()), 2, done.stdout)
        self.assertIn(f"{lost}/session.json is damaged: see 'ironcurtain audit verify {lost.name}'", done.stderr)
        self.assertIn("no call was judged again", self.product.run("policy", "replay").stdout)
        resumed = self.product.run("start", "--resume", lost.name)
        self.assertEqual(resumed.returncode, 78)
        self.assertIn("session.json: is damaged", resumed.stderr)
