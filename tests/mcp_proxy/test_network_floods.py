"""However many connections an agent tries, questions and records are bounded, and none is made without permission."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import Outcome
from ironcurtain.escalation.queue import LIMIT
from ironcurtain.mcp_proxy.network_gate import QUESTIONS
from ironcurtain.mcp_proxy.network_words import ONCE_SECONDS
from ironcurtain.network.refusal_records import REFUSALS, WINDOW, Meter
from ironcurtain.policy.loading import default_annotations
from ironcurtain.policy.recorded import SessionRecords
from ironcurtain.providers.provider import RequestRefusal
from tests.escalation.doubles import TIMEOUT
from tests.mcp_proxy.test_network_gate import NetworkGateCase
from tests.policy.test_network import rule


class BoundTests(NetworkGateCase):
    def test_noisy_agent_floods_neither_the_person_nor_the_log(self) -> None:
        self.make()
        minutes = 20
        for number in range(minutes * 100):
            self.connect(f"h{number}.test")
            self.clock.advance(0.6)
        self.assertLessEqual(len(self.escalations.pending()), LIMIT)
        asked = {each["callId"] for each in self.records("decision")} | {
            each.request.call_id for each in self.escalations.pending()
        }
        self.assertLessEqual(len(asked), (minutes + 1) * QUESTIONS)
        self.assertLessEqual(len(self.records("call")), (minutes + 1) * (QUESTIONS + REFUSALS))
        broken = [each for each in self.records("call") if each["rule"] == "circuit-breaker"]
        self.assertLessEqual(len(broken), minutes + 1)
        self.assertGreater(sum(each["count"] for each in self.records("repeats")), 1000)

    def test_refusals_by_rule_are_recorded_in_a_bounded_number(self) -> None:
        self.make(rule("no", "deny"))
        for number in range(1000):
            self.assertEqual(self.code(self.connect(f"h{number}.test")), "denied-by-rule")
        self.assertEqual(len(self.records("call")), REFUSALS)
        self.assertEqual(len(self.refused), 1000)
        self.clock.advance(WINDOW)
        self.connect("later.test")
        self.connect("last.test")
        self.gate.close()
        self.assertEqual(len(self.records("call")), REFUSALS + 2)
        self.assertEqual([each["count"] for each in self.records("unrecorded")], [1000 - REFUSALS])

    def test_equal_connections_are_recorded_once_a_minute_with_their_number(self) -> None:
        self.make(rule("yes", "allow", "a.test"))
        for _ in range(240):
            self.assertEqual(self.code(self.connect()), "")
            self.clock.advance(0.5)
        self.gate.close()
        self.assertEqual(len(self.records("call")), 2)
        self.assertEqual([(each["count"], each["allowed"]) for each in self.records("repeats")], [(119, True)] * 2)
        followed = SessionRecords(default_annotations())
        list(followed.calls(self.records("call", "decision", "outcome", "repeats")))
        self.assertEqual(len(followed.history.uses["network", "connect"]), 240)

    def test_rate_counts_connections_that_are_not_recorded(self) -> None:
        self.make(rule("often", "deny", "a.test", rate={"calls": 5, "seconds": 60}), rule("yes", "allow", "a.test"))
        self.assertEqual([self.code(self.connect()) for _ in range(6)], [""] * 5 + ["denied-by-rule"])

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("cdxrt"), st.integers(0, 3)), max_size=40))
    def test_every_connection_is_answered_and_none_without_permission(self, steps: list[tuple[str, int]]) -> None:
        self.make()
        waiting: list[tuple[int, Deferred[RequestRefusal | None]]] = []
        approved: dict[int, float] = {}
        for step, number in steps:
            if step == "c":
                waiting.append((number, self.connect(f"h{number}.test")))
            elif step == "x" and waiting:
                _, answer = waiting.pop(number % len(waiting))
                answer.addErrback(lambda _: None)
                answer.cancel()
            elif step in "dr" and (asked := self.escalations.pending()):
                chosen = asked[number % len(asked)]
                host = int(chosen.request.arguments["host"][1])
                if step == "r":
                    approved[host] = self.clock.seconds()
                self.escalations.decide(chosen.number, Outcome.APPROVED if step == "r" else Outcome.DENIED, "ada")
            else:
                self.clock.advance(number * 60)
            now = self.clock.seconds()
            for entry in [each for each in waiting if each[1].called]:
                waiting.remove(entry)
                if self.successResultOf(entry[1]) is None:
                    self.assertLess(now - approved.get(entry[0], -1e9), ONCE_SECONDS)
            self.assertLessEqual(len(self.escalations.pending()), 4)
        self.clock.advance(TIMEOUT)
        for _, answer in waiting:
            self.assertNotEqual(self.code(answer), "")


class MeterTests(SynchronousTestCase):
    @given(st.lists(st.floats(0, 30), max_size=60))
    def test_no_window_has_more_events_than_allowed(self, pauses: list[float]) -> None:
        meter, now, taken = Meter(5, 60.0), 0.0, list[float]()
        for pause in pauses:
            now += pause
            if meter.take(now):
                taken.append(now)
            self.assertLessEqual(sum(now - time < 60.0 for time in taken), 5)
