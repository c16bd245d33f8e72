"""The user's words in their files."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.approver.trusted_input import LIMIT, RECENT, InputSource, TrustedInput
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import scratch
from tests.session.doubles import World, request

NOW = 1.5e9


class TrustedInputTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = scratch(self)
        self.path, self.context = self.directory / "trusted-input.jsonl", self.directory / "user-context.json"
        self.words = TrustedInput(self.path, self.context, Redactor().text, lambda: NOW)

    def recorded(self) -> list[str]:
        return [json.loads(line)["text"] for line in self.path.read_text().rstrip("\n").split("\n")]

    def test_words_are_recorded_at_once_for_their_owner_only(self) -> None:
        self.words.add("mend the tests", InputSource.MESSAGE)
        (line,) = self.path.read_text().splitlines()
        expected = {"timestamp": "2017-07-14T02:40:00.000Z", "source": "message", "text": "mend the tests"}
        self.assertEqual(json.loads(line), expected)
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertFalse(self.context.exists())

    def test_the_context_is_written_when_it_is_needed(self) -> None:
        self.assertEqual(self.words.publish(), [])
        self.assertFalse(self.context.exists())
        self.words.add("read ~/a.txt", InputSource.TASK)
        self.words.add("then ~/b.txt", InputSource.TERMINAL)
        self.assertEqual(self.words.publish(), ["read ~/a.txt", "then ~/b.txt"])
        context = json.loads(self.context.read_bytes())
        self.assertEqual(
            context,
            {
                "userMessage": "read ~/a.txt\nthen ~/b.txt",
                "timestamp": "2017-07-14T02:40:00.000Z",
                "source": "terminal",
            },
        )
        self.assertEqual(self.context.stat().st_mode & 0o777, 0o600)
        self.assertEqual(sorted(os.listdir(self.directory)), ["trusted-input.jsonl", "user-context.json"])

    def test_what_was_not_typed_is_kept_apart(self) -> None:
        self.words.add("see \n or not", InputSource.MESSAGE, "see read ~/a.txt or not")
        self.words.add("", InputSource.MESSAGE, "read ~/b.txt")
        self.words.add("", InputSource.MESSAGE, "")
        self.assertEqual(self.words.publish(), ["see \n or not"])
        self.assertEqual(self.words.others(), ["see read ~/a.txt or not", "read ~/b.txt"])
        self.assertNotIn("~/", json.loads(self.context.read_bytes())["userMessage"])

    def test_secrets_are_not_recorded(self) -> None:
        self.words.add("use sk-ant-api03-" + "a" * 40, InputSource.MESSAGE)
        self.assertNotIn("a" * 40, self.path.read_text())

    def test_words_that_cannot_be_recorded_do_not_count(self) -> None:
        words = TrustedInput(Path("/nowhere/at/all"), self.context, str, lambda: NOW)
        words.add("push it", InputSource.MESSAGE)
        self.assertEqual((words.recent(), words.publish()), ([], []))

    def test_after_words_that_are_too_long_earlier_ones_are_not_recent(self) -> None:
        self.words.add("read ~/a.txt", InputSource.MESSAGE)
        self.words.add("x" * (RECENT + 1), InputSource.MESSAGE)
        self.assertEqual(self.words.recent(), [])

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.text(min_size=1, max_size=4) | st.integers(1, 20_000).map(lambda n: "é" * n), max_size=8))
    def test_it_rolls_within_its_limits(self, texts: list[str]) -> None:
        words = TrustedInput(self.path, self.context, str, lambda: NOW)
        for text in texts:
            words.add(text, InputSource.TERMINAL)
            if text.strip():
                recorded = self.recorded()
                self.assertLessEqual(sum(len(each.encode()) for each in recorded), LIMIT)
                self.assertTrue(recorded[-1] == text or len(text.encode()) > LIMIT)
            self.assertLessEqual(sum(len(each.encode()) for each in words.recent()), RECENT)


class SessionTests(SynchronousTestCase):
    def test_a_message_is_recorded_before_the_agent_has_it(self) -> None:
        world = World(scratch(self))
        session = self.successResultOf(Deferred.fromCoroutine(world.manager.create(request())))
        session.send("mend the tests").addErrback(lambda failure: None)
        self.assertIn("mend the tests", session.paths.trusted_input.read_text())

    def test_a_session_with_a_terminal_begins_with_its_task(self) -> None:
        world = World(scratch(self))
        wanted = request(terminal=(80, 24), task="mend the tests", typed="mend the tests")
        session = self.successResultOf(Deferred.fromCoroutine(world.manager.create(wanted)))
        self.assertIn('"task","text":"mend the tests"', session.paths.trusted_input.read_text())
