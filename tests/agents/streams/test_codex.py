"""Codex's app server, as the real one spoke."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.outcome import CUT, TurnOutcome
from ironcurtain.agents.streams.reports import Failed, Remark, Taken, TextDropped, TurnOver, Waiting
from tests.agents.streams.replaying import Replay, dialogue


def line(value: Any) -> bytes:
    """:returns: a line of the server's."""
    return json.dumps(value).encode() + b"\n"


class AppServerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.replay = Replay("codex-live-app-server", "codex")

    def test_the_handshake_begins_a_thread(self) -> None:
        methods = [each["method"] for each in self.replay.written[:4]]
        self.assertEqual(methods, ["initialize", "initialized", "thread/start", "turn/start"])
        self.assertEqual(self.replay.written[2]["params"]["sandbox"], "danger-full-access")

    def test_a_message_during_a_command_joins_the_turn_and_one_during_text_waits(self) -> None:
        self.assertEqual(self.replay.joined, [True, False])
        self.assertIn(Taken("second message while a tool runs"), self.replay.reports)

    def test_commands_are_shown_without_their_shell(self) -> None:
        self.assertEqual(self.replay.started, [("command", "echo one; sleep 1.5; echo two")])
        [finished] = self.replay.finished
        self.assertEqual((finished.status, finished.what), ("success", "two"))

    def test_answers_and_an_interruption(self) -> None:
        answers = [(turn.answer, turn.failed) for turn in self.replay.turns]
        self.assertEqual(
            answers,
            [
                ("steered answer", None),
                ("long0 long1 long2 long3 ", Failed("it was interrupted")),
                ("after interrupt", None),
            ],
        )

    def test_an_answer_at_the_token_limit_is_marked_as_cut(self) -> None:
        [turn] = Replay("codex-maxtok", "codex").turns
        self.assertEqual((turn.answer, turn.failed), (f"cut off\n{CUT}", None))

    def test_a_stream_that_broke_off_is_repeated(self) -> None:
        replay = Replay("codex-cut", "codex")
        [waiting] = [report for report in replay.reports if isinstance(report, Waiting)]
        self.assertIn("Reconnecting... 1/5", waiting.reason)
        self.assertEqual(replay.turns[-1].answer, "second try")

    def test_a_program_that_ends_leaves_the_text_so_far(self) -> None:
        talk = dialogue("codex")
        params = {"itemId": "m", "delta": "half an"}
        list(talk.output(line({"method": "item/agentMessage/delta", "params": params})))
        self.assertEqual(talk.ended(TurnOutcome(137, b"", b"")), TurnOver("half an", Failed()))

    def test_shown_text_that_broke_off_is_dropped(self) -> None:
        talk = dialogue("codex")
        error = {"method": "error", "params": {"error": {"message": "gone"}, "willRetry": True}}
        began = {"method": "item/started", "params": {"item": {"type": "agentMessage", "id": "m"}}}
        piece = {"method": "item/agentMessage/delta", "params": {"itemId": "m", "delta": "half"}}
        reports = list(talk.output(line(began) + line(piece) + line(error)))
        self.assertEqual(reports[-2:], [TextDropped(), Waiting(0, "gone")])

    def test_a_quota_is_told_at_once(self) -> None:
        [waiting] = [report for report in Replay("codex-quota", "codex").reports if isinstance(report, Waiting)]
        self.assertIn("429", waiting.reason)

    def test_a_thread_that_is_gone_is_replaced_and_the_person_told(self) -> None:
        talk = dialogue("codex", conversation="gone")
        talk.begin()
        talk.message("hello")
        list(talk.output(line({"id": 1, "result": {}})))
        remark, again = talk.output(line({"id": 2, "error": {"code": -32600, "message": "no rollout found"}}))
        assert isinstance(remark, Remark)
        self.assertIn("no rollout found", remark.text)
        self.assertIn(b"thread/start", again.data)  # type: ignore[union-attr]

    def test_a_lost_mcp_server_fails_the_turn(self) -> None:
        talk = dialogue("codex")
        told = {"name": "ironcurtain", "status": "failed", "error": "x"}
        list(talk.output(line({"method": "mcpServer/startupStatus/updated", "params": told})))
        over = {"method": "turn/completed", "params": {"turn": {"status": "failed", "error": {"message": "x"}}}}
        self.assertEqual([*talk.output(line(over))], [TurnOver("", Failed(kind="mcp-down"), None)])

    def test_a_compaction_is_a_turn(self) -> None:
        talk = dialogue("codex")
        talk.begin()
        self.assertEqual(talk.compact(), b"")
        list(talk.output(line({"id": 1, "result": {}}) + line({"id": 2, "result": {"thread": {"id": "t"}}})))
        self.assertIn(b"thread/compact/start", talk.compact())
        item = {"method": "item/completed", "params": {"item": {"type": "contextCompaction", "id": "c"}}}
        over = {"method": "turn/completed", "params": {"turn": {"status": "completed"}}}
        self.assertEqual([*talk.output(line(item) + line(over))], [TurnOver("the conversation is compacted")])

    def test_requests_of_the_server_are_refused(self) -> None:
        [answer] = dialogue("codex").output(line({"id": 7, "method": "item/tool/requestUserInput", "params": {}}))
        self.assertIn(b'"id": 7, "error"', answer.data)  # type: ignore[union-attr]
