"""What an agent reports becomes events and records, bounded in size and rate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.streams import reports
from ironcurtain.container_agent.reporting import A_SECOND, JOIN_SECONDS, RECORDED, TEXT_LIMIT, Reporting
from ironcurtain.session import agent_events, events


class ReportingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.events, self.records = Clock(), list[Any](), list[dict[str, Any]]()
        core: Any = SimpleNamespace(
            services=SimpleNamespace(clock=self.clock),
            emit=self.events.append,
            audit=SimpleNamespace(append=lambda kind, **members: self.records.append({"kind": kind, **members})),
        )
        self.reporting = Reporting(core)

    def take(self, *found: reports.Report) -> None:
        for report in found:
            self.reporting.take(report)

    def test_pieces_of_text_are_joined_for_a_moment(self) -> None:
        self.take(*map(reports.Text, "ab"))
        self.clock.advance(0)
        self.assertEqual(self.events, [events.AgentText(text="ab")])
        self.take(*map(reports.Text, "cd"))
        self.clock.advance(JOIN_SECONDS * 0.9)
        self.assertEqual(self.events[1:], [])
        self.clock.advance(JOIN_SECONDS * 0.1)
        self.take(reports.Text("e"))
        self.assertEqual(self.events[1:], [events.AgentText(text="cd")])
        self.reporting.end()
        self.assertEqual(self.events[2:], [events.AgentText(text="e")])
        self.assertEqual(self.records, [{"kind": "agent-reported", "text": "abcde"}])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_piece_after_a_while_is_told_of_at_once(self) -> None:
        for number, piece in enumerate("ab"):
            self.clock.advance(JOIN_SECONDS)
            self.take(reports.Text(piece))
            self.clock.advance(0)
            self.assertEqual(self.events[number:], [events.AgentText(text=piece)])

    def test_text_comes_before_what_follows_it(self) -> None:
        self.take(reports.Text("a"), reports.ToolStarted("t", "Bash", "ls"))
        begun = agent_events.AgentToolStarted(tool_id="t", name="Bash", what="ls")
        self.assertEqual(self.events, [events.AgentText(text="a"), begun])

    def test_tools_are_recorded_as_reported(self) -> None:
        self.take(reports.ToolStarted("t", "Edit", "f"), reports.ToolFinished("t", "success", diff="+" * 9999))
        self.take(reports.ToolStarted("u", "Read", "g", "sub"))
        begun, ended, inner = self.records
        self.assertEqual(begun, {"kind": "agent-reported", "tool": "Edit", "toolId": "t", "what": "f"})
        self.assertEqual(len(ended["diff"]), RECORDED)
        self.assertEqual((inner["toolId"], inner["parent"]), ("u", "sub"))

    def test_waits_are_recorded(self) -> None:
        self.take(reports.Waiting(3600, "quota"), reports.Waiting(0, "overloaded"))
        waits, unknown = self.records
        self.assertEqual((waits["waits"], waits["reason"]), ("60:00", "quota"))
        self.assertEqual(unknown, {"kind": "agent-reported", "reason": "overloaded"})

    def test_text_that_was_dropped_is_not_recorded(self) -> None:
        self.take(reports.Text("half"), reports.TextDropped(), reports.Text("whole"))
        self.reporting.end()
        self.assertEqual([record["text"] for record in self.records], ["whole"])

    def test_a_flood_is_counted(self) -> None:
        self.take(*[reports.ToolStarted(str(number), "x") for number in range(A_SECOND + 7)])
        self.clock.advance(1)
        self.take(reports.Activity("thinking"))
        self.assertEqual(len(self.records), A_SECOND)
        self.assertEqual(self.events[-2], events.Notice(text="7 more reports of the agent were left out"))

    def test_a_flood_of_pieces_between_other_reports_is_counted_too(self) -> None:
        for _ in range(1000):
            self.take(reports.Text("x"), reports.Activity("thinking"))
        self.assertLessEqual(len(self.events), 2 * A_SECOND)

    def test_a_flood_of_text_is_cut(self) -> None:
        self.take(*[reports.Text("x" * 100_000) for _ in range(50)])
        self.reporting.end()
        self.assertLess(sum(len(event.text) for event in self.events), TEXT_LIMIT + 200_000)

    def test_waits_and_remarks(self) -> None:
        self.take(reports.Waiting(2.5, "529"), reports.Remark("gone"))
        self.assertEqual(self.events, [events.ModelRetry(delay=2.5, reason="529"), events.Notice(text="gone")])
