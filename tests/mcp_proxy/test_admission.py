"""When the outcome of a call is recorded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.model import AutomaticCall
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.calls import CallEvent, CallFinished, CallRaised
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.pins import WITHHELD
from ironcurtain.mcp_proxy.refusals import BREAKER_RULE, WITHHELD_CODE, CallRefused, refuse_denied
from ironcurtain.policy.verdict import Automatic, Decision, Resource, Verdict
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import at_once, scratch
from tests.escalation.doubles import make_queue

ALLOWED = Verdict(Decision.ALLOW, "a-rule", "it may", {"a": 1})


class AdmissionCase(SynchronousTestCase):
    """An admission with its records."""

    def setUp(self) -> None:
        self.clock, self.numbers = Clock(), itertools.count(1)
        self.events: list[CallEvent] = []
        self.put_off: list[Callable[[], None]] = []
        self.path = scratch(self) / "audit.jsonl"
        self.audit = AuditLog(self.path, "session-1", Redactor(), self.clock, self.clock.seconds, at_once)
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(self.audit.close())))
        self.escalations = make_queue(self.clock)
        self.admission = CallAdmission(
            session_id="session-1",
            audit=self.audit,
            escalations=self.escalations,
            clock=self.clock,
            new_id=lambda: f"call-{next(self.numbers)}",
            policy_version=lambda: "1",
            events=self.events.append,
            soon=self.put_off.append,
        )

    def call(self) -> OpenCall:
        """:returns: a call that was made, and is over."""
        call = self.admission.open("server", "tool")
        self.admission.record(call, ALLOWED)
        self.admission.close(call, "success", b"{}")
        return call

    def recorded(self) -> list[tuple[str, str]]:
        """:returns: kind and call of each record but the first."""
        records = map(json.loads, self.path.read_text().splitlines()[1:])
        return [(record["kind"], record["callId"]) for record in records]


class OutcomeTests(AdmissionCase):
    def test_it_comes_soon(self) -> None:
        self.call()
        self.assertEqual(self.recorded(), [("call", "call-1")])
        self.put_off.pop()()
        self.assertEqual(self.recorded()[1:], [("outcome", "call-1")])
        self.assertEqual([type(event) for event in self.events], [CallRaised, CallFinished])
        self.call()
        self.put_off.pop()()
        self.assertEqual(self.recorded()[3:], [("outcome", "call-2")])

    def test_it_comes_before_the_next_call(self) -> None:
        self.call()
        self.call()
        self.assertEqual(self.recorded(), [("call", "call-1"), ("outcome", "call-1"), ("call", "call-2")])

    def test_each_of_two_approvals_is_recorded_before_the_decision(self) -> None:
        verdict = Verdict(Decision.ESCALATE, "a-rule", "why", {"a": 1}, approvals=2)
        call = self.admission.open("server", "tool")
        self.admission.record(call, verdict)
        asked = Deferred.fromCoroutine(self.admission.ask(call, verdict, None))
        for by in ("ada", "bob"):
            self.assertNoResult(asked)
            self.escalations.decide(1, Outcome.APPROVED, by)
        self.successResultOf(asked)
        records = [json.loads(line) for line in self.path.read_text().splitlines()[2:]]
        self.assertEqual(
            [(record["kind"], record["number"], record["by"]) for record in records],
            [("approval", 1, "ada"), ("approval", 1, "bob"), ("decision", 1, "bob")],
        )

    def test_nothing_to_record_is_harmless(self) -> None:
        self.call()
        self.admission.flush()
        for late in self.put_off:
            late()
        self.assertEqual(self.recorded(), [("call", "call-1"), ("outcome", "call-1")])


class AutomaticTests(AdmissionCase):
    """Which escalations the auto-approver hears of."""

    def heard(self, verdict: Verdict, tool: ToolDefinition | None) -> AutomaticCall | None:
        """:returns: what it may know of the call."""
        call = self.admission.open("server", "tool")
        asked = Deferred.fromCoroutine(self.admission.ask(call, verdict, None, tool))
        (waiting,) = self.escalations.pending()
        self.escalations.deny_all("ada")
        self.failureResultOf(asked)
        return waiting.request.automatic

    def test_reversible_calls_and_others_where_the_rule_says_so(self) -> None:
        read, delete = (Resource(role, "path", "/srv/a") for role in ("read-path", "delete-path"))
        destroys = {"annotations": {"destructiveHint": True}}
        for name, definition, resource, needed in (
            ("read_file", {}, read, Automatic.REVERSIBLE),
            ("remove", {}, read, Automatic.ALWAYS),
            ("git_push", {}, read, Automatic.ALWAYS),
            ("move_file", {}, delete, Automatic.ALWAYS),
            ("write_file", destroys, read, Automatic.ALWAYS),
        ):
            tool = ToolDefinition("server", name, name, {"inputSchema": {}, **definition}, "d")
            for automatic in Automatic:
                verdict = Verdict(Decision.ESCALATE, "a", "why", {}, (resource,), ("a",), automatic=automatic)
                expected = AutomaticCall("why", (resource,)) if automatic >= needed else None
                self.assertEqual(self.heard(verdict, tool), expected, (name, automatic))
            self.assertIsNone(
                self.heard(Verdict(Decision.ESCALATE, "a", "why", {}, (resource,), ("a",), approvals=2), tool)
            )

    def test_what_is_no_tool_is_for_people(self) -> None:
        verdict = Verdict(Decision.ESCALATE, "a", "why", {}, (), ("a",), automatic=Automatic.ALWAYS)
        self.assertIsNone(self.heard(verdict, None))


class DenialTests(AdmissionCase):
    def test_denied_call_is_recorded_and_left_to_the_gate(self) -> None:
        verdict = Verdict(Decision.DENY, "a-rule", "never", {})
        self.admission.record(self.admission.open("server", "tool"), verdict)
        self.assertEqual(self.recorded(), [("call", "call-1")])
        with self.assertRaisesRegex(CallRefused, r"DENIED: never \(rule a-rule\)"):
            refuse_denied(verdict)

    def test_other_verdicts_are_not_refused(self) -> None:
        for decision in (Decision.ALLOW, Decision.ESCALATE):
            refuse_denied(Verdict(decision, "a-rule", "why", {}))

    def test_codes_tell_rules_withheld_tools_and_repetitions_apart(self) -> None:
        for rule, code in (("a", "denied-by-rule"), (BREAKER_RULE, BREAKER_RULE), (min(WITHHELD), WITHHELD_CODE)):
            with self.assertRaises(CallRefused) as caught:
                refuse_denied(Verdict(Decision.DENY, rule, "never", {}))
            self.assertEqual((caught.exception.status, caught.exception.why), ("denied", code))
