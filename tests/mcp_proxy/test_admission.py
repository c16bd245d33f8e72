"""When the outcome of a call is recorded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import AuditLog
from ironcurtain.escalation import EscalationQueue, closing_numbers
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.calls import CallEvent, CallFinished, CallRaised
from ironcurtain.policy import Decision, Verdict
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import at_once, scratch

ALLOWED = Verdict(Decision.ALLOW, "a-rule", "it may", {"a": 1})


class OutcomeTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.numbers = Clock(), itertools.count(1)
        self.events: list[CallEvent] = []
        self.put_off: list[Callable[[], None]] = []
        self.path = scratch(self) / "audit.jsonl"
        self.audit = AuditLog(self.path, "session-1", Redactor(), self.clock, self.clock.seconds, at_once)
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(self.audit.close())))
        self.admission = CallAdmission(
            session_id="session-1",
            audit=self.audit,
            escalations=EscalationQueue(
                next_number=lambda: succeed(1),
                new_id=lambda: "escalation",
                clock=self.clock,
                now=self.clock.seconds,
                next_closing=closing_numbers(0.0),
                timeout=300.0,
                attended=lambda: True,
            ),
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

    def test_nothing_to_record_is_harmless(self) -> None:
        self.call()
        self.admission.flush()
        for late in self.put_off:
            late()
        self.assertEqual(self.recorded(), [("call", "call-1"), ("outcome", "call-1")])
