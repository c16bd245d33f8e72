"""Tests of ironcurtain.container_agent.handed_over."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.handed_over import HandedOver
from tests.agents.streams.replaying import dialogue


class HandedOverTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.handed = HandedOver()
        self.taken: list[str] = []

    def add(self, message: str) -> None:
        self.handed.add(message, lambda: self.taken.append(message))

    def test_notice_precedes_messages_that_the_program_has_not_got(self) -> None:
        self.assertEqual(self.handed.begin("go", "You are in a sandbox."), "You are in a sandbox.\n\ngo")
        self.assertEqual(self.handed.begin("go", ""), "go")

    def test_message_that_the_program_has_goes_without_a_notice_once(self) -> None:
        self.add("more")
        self.assertEqual(self.handed.begin("more", "notice"), "more")
        self.assertEqual(self.handed.begin("more", "notice"), "notice\n\nmore")

    def test_message_handed_over_before_a_first_turn_failed_is_not_written_twice(self) -> None:
        talk = dialogue("claude-code")
        talk.message("notice\n\ngo")
        list(talk.output(b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash"}]}}\n'))
        self.assertIn(b"more", talk.join("more") or b"")
        self.add("more")
        list(talk.output(b'{"type":"result","is_error":true,"result":"quota"}\n'))
        self.assertEqual(talk.message(self.handed.begin("more", "notice")), b"")

    def test_messages_of_an_interrupted_turn_are_forgotten(self) -> None:
        self.add("more")
        self.handed.clear()
        self.assertEqual(self.handed.begin("more", "notice"), "notice\n\nmore")
        self.add("more")
        self.handed.take("more")
        self.assertEqual(self.taken, ["more"])

    def test_taken_messages_are_told_once(self) -> None:
        self.add("a")
        self.add("a")
        self.handed.take("b")
        self.handed.take("a")
        self.assertEqual(self.taken, ["a"])
        self.handed.take("a")
        self.handed.take("a")
        self.assertEqual(self.taken, ["a", "a"])
