"""The Agent Client Protocol, as the real OpenCode and Gemini CLI spoke it."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.streams.reports import Activity, Failed, Named, Remark, Text, TurnOver, Waiting
from tests.agents.streams.replaying import Replay, dialogue


def line(value: Any) -> bytes:
    """:returns: a line of the agent's."""
    return json.dumps(value).encode() + b"\n"


class AcpTests(SynchronousTestCase):
    def test_gemini_s_handshake_ends_in_the_mode_that_asks_nothing(self) -> None:
        written = Replay("gemini-live-acp", "gemini").written
        methods = [each["method"] for each in written[:4]]
        self.assertEqual(methods, ["initialize", "session/new", "session/set_mode", "session/prompt"])
        self.assertEqual(written[2]["params"]["modeId"], "yolo")

    def test_no_second_prompt_during_a_turn(self) -> None:
        for agent in ("gemini", "opencode"):
            self.assertIsNone(Replay(f"{agent}-live-acp", agent).dialogue.join("more"))

    def test_tools_are_shown_with_argument_result_and_diff(self) -> None:
        replay = Replay("opencode-live-acp", "opencode")
        self.assertEqual(replay.started, [("bash", "echo one; sleep .5; echo two"), ("write", "/PROJECT/w.txt")])
        self.assertEqual([each.what for each in replay.finished], ["two", "Wrote file successfully."])
        replay = Replay("gemini-live-acp", "gemini")
        self.assertEqual(replay.started, [("execute", "echo one; sleep .5; echo two"), ("edit", "a.txt: n => m")])
        self.assertIn("-n\n+m\n", replay.finished[1].diff)

    def test_cancelled_turns_and_what_follows(self) -> None:
        for agent in ("gemini", "opencode"):
            turns = Replay(f"{agent}-live-acp", agent).turns
            self.assertEqual(turns[-2], TurnOver("long0 long1 long2 long3 ", Failed("it was interrupted")))
            self.assertEqual(turns[-1].answer, "after cancel")

    def test_waits_that_only_standard_error_tells_of(self) -> None:
        [waiting] = [r for r in Replay("opencode-quota", "opencode").reports if isinstance(r, Waiting)]
        self.assertIn("You have hit your usage limit", waiting.reason)
        line = "Suggested retry after 1s.. Retrying after 5404ms..."
        self.assertEqual([*dialogue("gemini").error_line(line)], [Waiting(5.404, "Suggested retry after 1s..")])

    def test_a_history_that_is_loaded_is_not_shown_again(self) -> None:
        talk = dialogue("opencode", conversation="s")
        talk.begin()
        talk.message("hello")
        list(talk.output(line({"id": 1, "result": {}})))
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old"}}
        update = line({"method": "session/update", "params": {"sessionId": "s", "update": said}})
        self.assertEqual(list(talk.output(update)), [])
        self.assertFalse(talk.ready)
        *_, works, prompt = talk.output(line({"id": 2, "result": {}}))
        self.assertEqual((works, talk.ready), (Activity("thinking"), True))
        self.assertIn(b'"text": "hello"', prompt.data)  # type: ignore[union-attr]
        self.assertIn(Text("old"), list(talk.output(update)))

    def test_a_session_that_is_gone_is_replaced_and_the_person_told(self) -> None:
        talk = dialogue("gemini", conversation="gone")
        talk.begin()
        list(talk.output(line({"id": 1, "result": {}})))
        error = {"code": -32603, "message": "Internal error", "data": {"details": "No previous sessions found"}}
        [alone] = talk.output(line({"id": 2, "error": error}))
        self.assertIn(b'"sessionId": "gone"', alone.data)  # type: ignore[union-attr]
        remark, again = talk.output(line({"id": 3, "error": error}))
        assert isinstance(remark, Remark)
        self.assertIn("No previous sessions found", remark.text)
        self.assertIn(b"session/new", again.data)  # type: ignore[union-attr]

    def test_gemini_gets_a_blank_before_the_id_of_a_session_and_its_messages_go_there(self) -> None:
        talk = dialogue("gemini", conversation="kept")
        talk.begin()
        talk.message("hello")
        [load] = talk.output(line({"id": 1, "result": {}}))
        self.assertIn(b'"sessionId": " kept"', load.data)  # type: ignore[union-attr]
        named, mode = talk.output(line({"id": 2, "result": {}}))
        self.assertEqual(named, Named("kept"))
        self.assertIn(b'"sessionId": " kept"', mode.data)  # type: ignore[union-attr]
        *_, prompt = talk.output(line({"id": 3, "result": {}}))
        self.assertIn(b'"sessionId": " kept"', prompt.data)  # type: ignore[union-attr]

    def test_a_question_is_permitted_since_the_sandbox_contains_the_agent(self) -> None:
        options = [{"optionId": "no", "kind": "reject_once"}, {"optionId": "yes", "kind": "allow_once"}]
        asked = {"id": 9, "method": "session/request_permission", "params": {"options": options}}
        [answer] = dialogue("goose").output(line(asked))
        self.assertIn(b'{"outcome": "selected", "optionId": "yes"}', answer.data)  # type: ignore[union-attr]

    def test_a_failed_prompt_keeps_its_reason_and_status(self) -> None:
        talk = dialogue("opencode")
        talk.begin()
        list(talk.output(line({"id": 1, "result": {}})))
        list(talk.output(line({"id": 2, "result": {"sessionId": "s"}})))
        talk.message("hello")
        [over] = talk.output(line({"id": 3, "error": {"code": 429, "message": "Rate limit"}}))
        self.assertEqual(over, TurnOver("", Failed("Rate limit", 429)))

    def test_lost_tools_fail_the_turn(self) -> None:
        talk = dialogue("opencode")
        list(talk.error_line('level=WARN message="server unavailable" key=ironcurtain status=failed'))
        talk.begin()
        list(talk.output(line({"id": 1, "result": {}})))
        list(talk.output(line({"id": 2, "result": {"sessionId": "s"}})))
        talk.message("hello")
        [over] = talk.output(line({"id": 3, "result": {"stopReason": "end_turn"}}))
        self.assertEqual(over, TurnOver("", Failed(kind="mcp-down")))
