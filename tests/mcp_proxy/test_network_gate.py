"""Questions, answers and records of connections."""

from __future__ import annotations

import itertools
import json
from collections.abc import Coroutine
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.syncing import InThread
from ironcurtain.escalation import Escalation, Outcome
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.calls import CallEvent
from ironcurtain.mcp_proxy.memory import CallMemory
from ironcurtain.mcp_proxy.network_gate import NetworkGate, RefusedConnection
from ironcurtain.mcp_proxy.network_words import ONCE_SECONDS
from ironcurtain.mcp_proxy.standing_answers import LINGER_SECONDS
from ironcurtain.mitm_proxy.refusals import sentence
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import ManualThread, at_once, scratch
from tests.escalation.doubles import TIMEOUT, make_queue
from tests.policy.test_network import engine, rule

AGENT = "the agent"


class NetworkGateCase(SynchronousTestCase):
    """A gate with its records, on a clock."""

    attended = True

    def make(self, *rules: dict[str, Any], thread: InThread = at_once, durable: bool = False) -> None:
        """Make a gate over these rules."""
        self.clock, numbers = Clock(), itertools.count(1)
        self.clock.advance(1000)
        self.path = scratch(self) / "audit.jsonl"
        self.audit = AuditLog(self.path, "session-1", Redactor(), self.clock, self.clock.seconds, thread)
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(self.audit.close())))
        self.escalations = make_queue(self.clock, attended=lambda: self.attended)
        self.events, self.refused, self.why = list[CallEvent](), list[RefusedConnection](), ""
        policy = engine(*rules)
        self.admission = CallAdmission(
            session_id="session-1",
            audit=self.audit,
            escalations=self.escalations,
            clock=self.clock,
            new_id=lambda: f"call-{next(numbers)}",
            policy_version=lambda: policy.policy_version,
            events=self.events.append,
            soon=lambda later: later(),
        )
        self.gate = NetworkGate(
            engine=policy,
            admission=self.admission,
            memory=CallMemory(self.clock.seconds),
            clock=self.clock,
            durable=durable,
            stopped=lambda: self.why,
            refused=self.refused.append,
        )

    def start(self, work: Coroutine[Any, Any, RequestRefusal | None]) -> Deferred[RequestRefusal | None]:
        """:returns: fires with the answer."""
        return Deferred.fromCoroutine(work)

    def connect(self, host: str = "a.test", port: int = 443, party: str = AGENT) -> Deferred[RequestRefusal | None]:
        """:returns: fires with the answer about a connection."""
        return self.start(self.gate.judge(party).connect(host, port))

    def request(self, url: str, method: str = "GET") -> Deferred[RequestRefusal | None]:
        """:returns: fires with the answer about a request."""
        return self.start(self.gate.judge(AGENT).request(method, url))

    def code(self, answer: Deferred[RequestRefusal | None]) -> str:
        """:returns: the code of a refusal; empty if there is none."""
        refusal = self.successResultOf(answer)
        return "" if refusal is None else refusal.code

    def pending(self) -> Escalation:
        """:returns: the only question."""
        (waiting,) = self.escalations.pending()
        return waiting

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """:returns: the records of some kinds."""
        self.admission.flush()
        return [each for each in map(json.loads, self.path.read_text().splitlines()) if each["kind"] in kinds]


class QuestionTests(NetworkGateCase):
    def test_question_says_who_wants_what_and_what_an_approval_means(self) -> None:
        self.make()
        answer = self.connect("API.a.test.")
        asked = self.pending().request
        self.assertEqual((asked.server, asked.tool), ("network", "connect"))
        self.assertEqual(asked.arguments, {"host": "api.a.test", "port": 443, "party": AGENT})
        self.assertIn("the agent wants to connect to api.a.test:443, and no rule is about it", asked.reason)
        self.assertIn("once means all connections to this host and port for 5 minutes", asked.reason)
        self.assertEqual(asked.reason.count("api.a.test:443"), 1)
        assert asked.scope is not None
        self.assertEqual(asked.scope.words, 'network.connect at api.a.test:443 with party="the agent", port=443')
        self.assertNoResult(answer)
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.assertIsNone(self.successResultOf(answer))

    def test_question_says_what_an_approval_opens_in_place_of_a_host(self) -> None:
        self.make()
        judge = self.gate.judge(AGENT, None, {("a.test", 443): "the npm registry, read-only"})
        answer = self.start(judge.connect("a.test", 443))
        self.assertIn(
            "an approval opens the npm registry, read-only; once means for 5 min", self.pending().request.reason
        )
        self.escalations.decide(1, Outcome.DENIED, "ada")
        self.assertEqual(self.code(answer), "denied-by-person")
        self.connect("a.test", 8443)
        self.assertIn("all connections to this host and port", self.pending().request.reason)

    def test_equal_questions_are_one_and_one_record_answers_all(self) -> None:
        self.make()
        answers = [self.connect() for _ in range(85)]
        self.assertEqual(self.pending().calls, 1)
        self.escalations.decide(1, Outcome.APPROVED, "ada", calls=1)
        self.assertEqual([self.successResultOf(answer) for answer in answers], [None] * 85)
        self.assertEqual(len(self.records("call", "decision", "outcome")), 3)

    def test_question_stays_for_a_while_after_all_were_withdrawn(self) -> None:
        self.make()
        first, second = self.connect(), self.connect()
        for each in (first, second):
            each.cancel()
            self.failureResultOf(each)
            self.clock.advance(LINGER_SECONDS - 1)
            self.pending()
        self.clock.advance(1)
        self.assertEqual(self.escalations.pending(), [])
        self.assertEqual([each["status"] for each in self.records("outcome")], ["withdrawn"])
        self.assertNoResult(self.connect())

    def test_program_that_tries_again_waits_for_the_same_question(self) -> None:
        self.make()
        for _ in range(5):  # as pip does, which gives up after 15 seconds
            attempt = self.connect()
            self.clock.advance(15)
            attempt.cancel()
            self.failureResultOf(attempt)
        self.assertEqual(self.pending().number, 1)
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.code(self.connect()), "")
        self.clock.advance(LINGER_SECONDS)
        self.assertEqual([each["status"] for each in self.records("outcome")], ["success"])

    def test_questions_end_with_the_session(self) -> None:
        self.make()
        answers = [self.connect(host) for host in ("a.test", "b.test")]
        self.gate.close()
        self.assertEqual(self.escalations.pending(), [])
        self.assertEqual([self.code(answer) for answer in answers], ["withdrawn"] * 2)

    def test_approval_holds_for_a_while_for_this_host_and_port(self) -> None:
        self.make()
        first = self.connect()
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.successResultOf(first)
        self.clock.advance(ONCE_SECONDS - 1)
        self.assertEqual(self.code(self.connect()), "")
        for other in (self.connect(port=80), self.connect("b.test"), self.connect(party="server x")):
            self.assertNoResult(other)
        self.clock.advance(1)
        self.assertNoResult(self.connect())

    def test_kept_approval_holds_until_it_is_revoked(self) -> None:
        self.make()
        first = self.connect()
        self.escalations.decide(1, Outcome.APPROVED, "ada", keep=True)
        self.successResultOf(first)
        for _ in range(3):
            self.clock.advance(ONCE_SECONDS)
            self.assertEqual(self.code(self.connect()), "")
        self.assertNoResult(self.connect(port=8443))
        self.escalations.revoke(1, "ada")
        self.assertEqual(self.code(self.request("https://a.test/")), "")
        self.gate.forget_approvals()
        self.assertNoResult(self.request("https://a.test/"))
        self.assertNoResult(self.connect())

    def test_connections_whose_bytes_nobody_judges_end_with_their_approval(self) -> None:
        self.make(rule("yes", "allow", "b.test"))
        first = self.connect()
        self.escalations.decide(1, Outcome.APPROVED, "ada", keep=True)
        self.successResultOf(first)
        judge, ended = self.gate.judge("the agent"), list[str]()
        for host in ("a.test", "b.test"):
            judge.hold(host, 443, partial(ended.append, host))
        judge.hold("a.test", 443, partial(ended.append, "over"))()
        self.escalations.revoke(1, "ada")
        self.gate.forget_approvals()
        self.assertEqual(ended, ["a.test"])

    def test_denial_is_not_asked_again_for_a_while(self) -> None:
        self.make()
        first = self.connect()
        self.escalations.decide(1, Outcome.DENIED, "ada")
        self.assertEqual(self.code(first), "denied-by-person")
        self.clock.advance(ONCE_SECONDS - 1)
        self.assertEqual(self.code(self.connect()), "denied-by-person")
        self.clock.advance(1)
        self.assertNoResult(self.connect())

    def test_unanswered_question_is_refused_and_may_be_asked_again(self) -> None:
        self.make()
        first = self.connect()
        self.clock.advance(TIMEOUT)
        self.assertEqual(self.code(first), "expired")
        self.assertEqual(self.code(self.connect()), "expired")
        self.clock.advance(60)
        self.assertNoResult(self.connect())

    def test_rule_that_denies_meanwhile_counts(self) -> None:
        often = rule("often", "deny", rate={"calls": 1, "seconds": 600})
        self.make(often, rule("yes", "allow", "b.test"))
        first = self.connect()
        self.assertEqual(self.code(self.connect("b.test")), "")
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.code(first), "changed-meanwhile")

    def test_two_people_can_be_required(self) -> None:
        self.make({**rule("two", "escalate"), "approvals": 2})
        answer = self.connect()
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.assertNoResult(answer)
        self.escalations.decide(1, Outcome.APPROVED, "bob")
        self.assertIsNone(self.successResultOf(answer))

    def test_lookalikes_of_an_approved_host_are_asked_or_refused(self) -> None:
        self.make()
        first = self.connect("a.test")
        self.escalations.decide(1, Outcome.APPROVED, "ada", keep=True)
        self.successResultOf(first)
        self.assertEqual(self.code(self.connect("A.TEST.")), "")
        for host in ("b.a.test", "xa.test", "a.test.evil.test", "a-test"):
            self.assertNoResult(self.connect(host))
        for host in ("a.test\0.evil.test", "a.test%00", "a.test:80", "0x7f.1", "::ffff:127.0.0.1"):
            self.assertEqual(self.code(self.connect(host)), "denied-by-rule", host)


class UnattendedTests(NetworkGateCase):
    attended = False

    def test_connection_that_nobody_can_allow_is_refused_at_once(self) -> None:
        self.make()
        refusal = self.successResultOf(self.connect())
        assert refusal is not None
        self.assertEqual((refusal.status, refusal.code), (403, "nobody-to-ask"))
        self.assertIn("the connection to a.test:443 is refused", refusal.reason)
        self.assertIn("(rule structural-network-ask)", refusal.reason)
        self.assertIn("MCP server ironcurtain", refusal.reason)
        self.assertIn(
            "only the person can allow it, with a rule for the server network;", sentence(refusal.reason, 300)
        )

    def test_refusal_of_a_closed_registry_names_the_settings_that_open_it(self) -> None:
        self.make()
        judge = self.gate.judge(AGENT, None, {("registry.npmjs.org", 443): "the npm registry, read-only"})
        refusal = self.successResultOf(self.start(judge.connect("registry.npmjs.org", 443)))
        assert refusal is not None
        shown = sentence(refusal.reason, 300)
        self.assertIn("only the person can allow it, with [registries] in the settings;", shown)

    def test_refusal_is_reported(self) -> None:
        self.make()
        self.successResultOf(self.connect("::ffff:1"))
        self.successResultOf(self.request("https://a.test:8443/x"))
        self.assertEqual(
            [each[:4] for each in self.refused],
            [
                ("::ffff:1", "CONNECT", "[::ffff:1]:443", "default-deny"),
                ("a.test", "CONNECT", "a.test:8443", "structural-network-ask"),
            ],
        )


class RuleTests(NetworkGateCase):
    def test_refusal_names_the_rule_and_its_reason(self) -> None:
        self.make({**rule("no-bins", "deny", "bin.test"), "reason": "strangers read there"})
        refusal = self.successResultOf(self.connect("bin.test", 22))
        assert refusal is not None
        start = "the connection to bin.test:22 is refused: strangers read there (rule no-bins)."
        self.assertTrue(refusal.reason.startswith(start), refusal.reason)
        self.assertEqual((refusal.status, refusal.code), (403, "denied-by-rule"))

    def test_text_of_the_agent_is_escaped(self) -> None:
        self.make()
        refusal = self.successResultOf(self.connect("a\r\nx: y\x1b[31m" + "b" * 5000))
        assert refusal is not None
        self.assertTrue(refusal.reason.isprintable(), refusal.reason)
        self.assertLess(len(refusal.reason), 1000)

    def test_telemetry_is_refused_quietly_and_recorded_once(self) -> None:
        self.make()
        for _ in range(50):
            refusal = self.successResultOf(self.connect("statsig.anthropic.com"))
            assert refusal is not None
            self.assertEqual((refusal.status, refusal.code), (404, "telemetry"))
            self.clock.advance(3600)
        self.assertEqual(self.refused, [])
        self.assertEqual(len(self.records("call")), 1)
        self.gate.close()
        self.assertEqual([each["count"] for each in self.records("repeats")], [49])

    def test_nothing_leaves_once_the_session_must_not_go_on(self) -> None:
        self.make(rule("yes", "allow", "a.test"))
        self.assertEqual(self.code(self.connect()), "")
        self.why = "a protected path is in the workspace"
        self.assertEqual(self.code(self.connect()), "denied-by-rule")
        self.assertEqual(self.code(self.request("https://a.test/")), "denied-by-rule")

    def test_nothing_leaves_that_cannot_be_recorded(self) -> None:
        self.make(rule("yes", "allow", "a.test"))
        self.successResultOf(Deferred.fromCoroutine(self.audit.close()))
        for answer in (self.connect(), self.connect("b.test")):
            self.assertEqual(self.code(answer), "audit-unavailable")

    def test_connection_can_wait_until_its_record_is_on_disk(self) -> None:
        thread = ManualThread()
        ways: list[InThread] = [at_once]
        self.make(rule("yes", "allow", "a.test"), thread=lambda work: ways[0](work), durable=True)
        self.assertEqual(self.code(self.connect("a.test", 443)), "")
        ways[0] = thread
        answer, withdrawn = self.connect("a.test", 80), self.request("https://a.test/")
        withdrawn.cancel()
        self.failureResultOf(withdrawn)
        self.assertNoResult(answer)
        ways[0] = at_once
        thread.run()
        self.assertEqual(self.code(answer), "")
        self.assertEqual([each["status"] for each in self.records("outcome")], ["success", "cancelled", "success"])

    def test_hosts_that_the_settings_of_a_server_list_need_no_rule(self) -> None:
        self.make(rule("no", "deny", "evil.test"), rule("ask", "escalate", "ask.test"))
        listed = {("a.test", 443), ("127.0.0.1", 5432), ("evil.test", 443), ("ask.test", 443), ("api.segment.io", 443)}
        judge = self.gate.judge("server x", lambda host, port: (host, port) in listed)
        for host, port, expected in (
            ("a.test", 443, ""),
            ("A.test.", 443, ""),
            ("127.0.0.1", 5432, ""),
            ("api.segment.io", 443, ""),
            ("evil.test", 443, "denied-by-rule"),
            ("127.0.0.1", 5433, "denied-by-rule"),
        ):
            self.assertEqual(self.code(self.start(judge.connect(host, port))), expected, host)
        for host, port in (("a.test", 80), ("ask.test", 443)):
            self.assertNoResult(self.start(judge.connect(host, port)))
        self.assertNoResult(self.connect("a.test"))
        self.assertEqual(self.records("call")[0]["rule"], "configured-network")

    def test_private_addresses_of_hosts_that_a_rule_names(self) -> None:
        self.make(rule("yes", "allow", "gitea.lan", "*.test"))
        judge = self.gate.judge(AGENT)
        self.assertTrue(judge.may_be_private("gitea.lan", 443))
        self.assertFalse(judge.may_be_private("a.test", 443))
