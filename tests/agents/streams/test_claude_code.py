"""Claude Code's JSON lines, as the real program printed them."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.outcome import TurnOutcome
from ironcurtain.agents.streams.claude_code import ClaudeDialogue
from ironcurtain.agents.streams.reports import (
    Activity,
    Failed,
    Taken,
    Text,
    TextDropped,
    ToolFinished,
    ToolStarted,
    TurnOver,
    Waiting,
)
from ironcurtain.llm.model import TokenUsage
from tests.agents.streams.replaying import Replay, dialogue

AGENT = "claude-code"
TOOL = b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}\n'


class TurnTests(SynchronousTestCase):
    """What a turn shows, and how it ends."""

    def test_tools_are_shown_with_argument_result_and_diff(self) -> None:
        replay = Replay("claude-code-tools", AGENT)
        self.assertEqual(replay.started[:2], [("Bash", "echo one; sleep 0.6; echo two"), ("Read", "/PROJECT/a.txt")])
        edit, write = (finished for finished in replay.finished if finished.diff)
        self.assertEqual(edit.diff, "--- /PROJECT/a.txt\n+++ /PROJECT/a.txt\n@@ -1,2 +1,2 @@\n-old\n+new\n n\n")
        self.assertEqual(write.diff, "--- /PROJECT/w.txt\n+++ /PROJECT/w.txt\n@@ -0,0 +1 @@\n+w\n")
        self.assertEqual([(each.status, each.what) for each in replay.finished][4], ("error", "Exit code 1"))

    def test_judged_tools_are_not_reported_again(self) -> None:
        started = Replay("claude-code-tools", AGENT).started
        self.assertEqual([name for name, _ in started if name.startswith("mcp__")], [])

    def test_text_is_shown_in_pieces_and_once(self) -> None:
        replay = Replay("claude-code-tools", AGENT)
        self.assertEqual([r.text for r in replay.reports if isinstance(r, Text)], ["All ", "is ", "done ", "now."])
        self.assertEqual(replay.turns, [TurnOver("All is done now.", None, TokenUsage(100, 50, 0, 0))])

    def test_a_sub_agent_is_a_tool_and_its_text_the_result(self) -> None:
        replay = Replay("claude-code-sub", AGENT)
        agent, _ = (report for report in replay.reports if isinstance(report, ToolStarted))
        self.assertEqual((agent.name, agent.what, agent.parent), ("Agent", "look", ""))
        self.assertIn(ToolFinished(agent.tool_id, "success", "sub says hi"), replay.reports)
        self.assertEqual(replay.text, "main done")

    def test_a_sub_agent_s_tools_name_their_parent(self) -> None:
        used = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
        line = {"type": "assistant", "message": {"content": [used]}, "parent_tool_use_id": "a"}
        reports = dialogue(AGENT).output(json.dumps(line).encode() + b"\n")
        self.assertEqual(list(reports), [ToolStarted("t", "Bash", "ls", "a")])

    def test_thinking_is_a_state(self) -> None:
        reports = Replay("claude-code-maxtok", AGENT).reports
        self.assertEqual([r.state for r in reports if isinstance(r, Activity)], ["thinking", "answering"])

    def test_an_answer_after_the_token_limit_has_all_its_parts(self) -> None:
        [turn] = Replay("claude-code-maxtok", AGENT).turns
        self.assertEqual((turn.answer, turn.failed), ("cut offgo on", None))

    def test_text_that_broke_off_is_dropped(self) -> None:
        for name in ("claude-code-cut", "claude-code-errmid"):
            replay = Replay(name, AGENT)
            self.assertEqual(replay.text, "First half and second try")
            dropped = replay.reports.index(TextDropped())
            self.assertEqual([r.text for r in replay.reports[dropped:] if isinstance(r, Text)], ["second try"])
            self.assertEqual([turn.answer for turn in replay.turns], ["second try"])

    def test_an_interruption_is_called_so(self) -> None:
        [turn] = Replay("claude-code-int", AGENT).turns
        self.assertEqual(turn.failed, Failed("it was interrupted"))
        self.assertEqual(turn.answer, "word0 word1 word2 word3 ")

    def test_waits_have_their_time(self) -> None:
        replay = Replay("claude-code-r529", AGENT)
        self.assertEqual(
            [r for r in replay.reports if isinstance(r, Waiting)],
            [Waiting(0.55, "529 overloaded"), Waiting(1.106, "529 overloaded")],
        )
        [turn] = replay.turns
        assert isinstance(turn.failed, Failed)
        self.assertEqual(turn.failed.status, 529)

    def test_failures_keep_their_reason(self) -> None:
        for name, words in (("quota", "usage limit"), ("maxturns", "number of turns"), ("empty", "no reply is left")):
            [turn] = Replay(f"claude-code-{name}", AGENT).turns
            assert isinstance(turn.failed, Failed)
            self.assertIn(words, turn.failed.reason)
            self.assertEqual(turn.answer, "")

    def test_a_lost_mcp_server_fails_the_turn(self) -> None:
        talk = dialogue(AGENT)
        for servers in ('[{"name": "ironcurtain", "status": "failed"}]', "3", "[]"):
            list(talk.output(b'{"type": "system", "subtype": "init", "mcp_servers": %b}\n' % servers.encode()))
            [over] = talk.output(b'{"result": "I have none", "type": "result"}\n')
            self.assertEqual(over, TurnOver("", Failed("I have none", kind="mcp-down"), TokenUsage()))

    def test_a_local_command_without_text_is_done(self) -> None:
        *_, over = dialogue(AGENT).output(b'{"type": "result", "result": "", "local_command": "compact"}\n')
        self.assertEqual(over, TurnOver("compact: done", None, TokenUsage()))

    def test_version_2_1_197_marks_a_compacted_conversation_by_its_boundary(self) -> None:
        boundary = b'{"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "%s"}}\n'
        for trigger, answer in ((b"manual", "compact: done"), (b"auto", "")):
            *_, over = dialogue(AGENT).output(boundary % trigger + b'{"type": "result", "result": ""}\n')
            assert isinstance(over, TurnOver)
            self.assertEqual((over.answer, over.failed is None), (answer, bool(answer)))

    def test_version_2_1_197_marks_an_error_that_is_no_text_of_the_model(self) -> None:
        message = {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}
        line = json.dumps({"type": "assistant", "message": message, "error": "rate_limit"}).encode() + b"\n"
        result = b'{"type": "result", "result": "API Error", "is_error": true, "api_error_status": 429}\n'
        [over] = dialogue(AGENT).output(line + result)
        self.assertEqual(over, TurnOver("", Failed("API Error", 429), TokenUsage()))

    def test_a_program_that_ends_leaves_the_text_so_far(self) -> None:
        talk = dialogue(AGENT)
        delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half an"}}
        list(talk.output(json.dumps({"type": "stream_event", "event": delta}).encode() + b"\n"))
        self.assertEqual(talk.ended(TurnOutcome(137, b"", b"")), TurnOver("half an", Failed()))


class ConversationTests(SynchronousTestCase):
    """A program that stays."""

    def test_a_message_during_a_tool_joins_the_turn(self) -> None:
        replay = Replay("claude-code-live-second-during-tool", AGENT)
        self.assertEqual(replay.joined, [True])
        self.assertIn(Taken("second message, sent while the tool runs"), replay.reports)
        self.assertEqual([turn.answer for turn in replay.turns], ["after tool"])

    def test_a_message_during_text_waits(self) -> None:
        replay = Replay("claude-code-live-second-during-text", AGENT)
        self.assertEqual(replay.joined, [False])

    def test_a_message_that_came_too_late_for_a_turn_is_not_sent_twice(self) -> None:
        talk = dialogue(AGENT)
        talk.message("one")
        list(talk.output(TOOL))
        self.assertIsNotNone(talk.join("two"))
        list(talk.output(b'{"type": "result", "result": "done"}\n'))
        self.assertEqual(talk.message("two"), b"")
        self.assertNotEqual(talk.message("two"), b"")

    def test_a_message_that_has_not_joined_an_interrupted_turn_is_taken_back(self) -> None:
        talk = ClaudeDialogue("ironcurtain", iter(("u1", "u2")).__next__)
        talk.message("one")
        list(talk.output(TOOL))
        for text, identity in (("two", "u1"), ("three", "u2")):
            self.assertEqual(json.loads(talk.join(text) or b"")["uuid"], identity)
        said = [json.loads(line) for line in talk.interrupt().splitlines()]
        self.assertEqual(
            [each["request"] for each in said],
            [
                {"subtype": "cancel_async_message", "message_uuid": "u1"},
                {"subtype": "cancel_async_message", "message_uuid": "u2"},
                {"subtype": "interrupt"},
            ],
        )
        for each, cancelled in zip(said, (True, False), strict=False):  # the second was taken meanwhile
            response = {"subtype": "success", "request_id": each["request_id"], "response": {"cancelled": cancelled}}
            list(talk.output(json.dumps({"type": "control_response", "response": response}).encode() + b"\n"))
        self.assertEqual([bool(talk.message(text)) for text in ("two", "three")], [True, False])

    def test_an_interrupted_turn_is_followed_by_another(self) -> None:
        replay = Replay("claude-code-live-interrupt", AGENT)
        self.assertEqual([line["request"] for line in replay.written if "request" in line], [{"subtype": "interrupt"}])
        self.assertEqual([turn.failed is None for turn in replay.turns], [False, True])
        self.assertEqual(replay.turns[1].answer, "answer to next")
