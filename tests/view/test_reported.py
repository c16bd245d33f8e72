"""What an agent reports of itself, in the conversation."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import events
from ironcurtain.session.agent_events import (
    AgentActivity,
    AgentTextDropped,
    AgentToolFinished,
    AgentToolStarted,
    MessageQueued,
)
from ironcurtain.view.calls import DIFF_LINES, EXPLAINED
from tests.view.test_narration import play, status, view

BEGUN = AgentToolStarted(tool_id="t", name="Bash", what="ls -la\x1b")
ENDED = AgentToolFinished(tool_id="t", status="success", what="total 0")


class ToolTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.view = view()
        begun = (events.StateChanged(state="processing"), events.TurnStarted(turn=1, message="hi"))
        play(self.view, *begun)

    def test_a_tool_in_use_is_the_status_and_then_a_line(self) -> None:
        self.assertEqual(play(self.view, BEGUN), [EXPLAINED])
        self.assertEqual(status(self.view, 103.5), "* Bash ls -la\\x1b 3 s")
        self.assertEqual(play(self.view, ENDED, at=101), [", Bash ls -la\\x1b"])
        self.assertEqual(status(self.view, 104), "* thinking 4 s")

    def test_a_failure_says_how_it_failed(self) -> None:
        failed = AgentToolFinished(tool_id="t", status="error", what="exit status 1")
        lines = play(self.view, BEGUN, failed)[1:]
        self.assertEqual(lines, [", x Bash ls -la\\x1b", "  error, exit status 1 (0 ms)"])

    def test_a_sub_agent_s_tool_is_indented(self) -> None:
        inside = AgentToolStarted(tool_id="t", name="Bash", what="ls", parent="a")
        self.assertEqual(play(self.view, inside, ENDED)[1:], ["  , Bash ls"])

    def test_a_diff_follows_its_tool_and_is_bounded(self) -> None:
        diff = "--- f\n+++ f\n@@ -0,0 +1,99 @@\n" + "+x\x1b\n" * 99
        lines = play(self.view, BEGUN, AgentToolFinished(tool_id="t", status="success", diff=diff))[2:]
        self.assertEqual(lines[:3], ["  +++ f", "  @@ -0,0 +1,99 @@", "  +x\\x1b"])
        self.assertEqual(len(lines), DIFF_LINES + 1)
        self.assertIn("more lines", lines[-1])

    def test_the_end_of_an_unknown_tool_is_no_line(self) -> None:
        self.assertEqual(play(self.view, ENDED), [])


class TextTests(SynchronousTestCase):
    def test_blocks_are_parted_by_the_agent_s_activity_and_not_by_model_requests(self) -> None:
        lines = play(
            view(),
            AgentActivity(state="answering"),
            events.AgentText(text="Let me "),
            events.StepFinished(step=1),
            events.AgentText(text="look"),
            AgentActivity(state="answering"),
            events.AgentText(text="Done"),
            events.StepFinished(step=2),
            events.AgentText(text="."),
            events.TurnFinished(turn=1, answer="Done."),
        )
        self.assertEqual(lines, ["Let me look", "Done."])

    def test_text_that_broke_off_is_called_so(self) -> None:
        lines = play(
            view(),
            events.AgentText(text="The answ"),
            AgentTextDropped(),
            events.AgentText(text="42"),
            events.TurnFinished(turn=1, answer="42"),
        )
        self.assertEqual(lines, ["the text above broke off: what follows replaces it", "42"])

    def test_a_queued_message_is_shown(self) -> None:
        self.assertEqual(play(view(), MessageQueued(number=1, message="and\x1b")), ["message 1 in the queue: and\\x1b"])
