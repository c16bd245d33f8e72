from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.chain import timestamp
from ironcurtain.container_agent.proxies import LONG_WAIT, Spent, Traffic, known_prices, spent_before
from ironcurtain.errors import AccountLimitReached, SessionError
from ironcurtain.home.sections import Agents, Budget, Price
from ironcurtain.home.settings import Settings
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.mitm_proxy.recording import ProviderNotice, ProxiedRequest, ProxiedResponse
from ironcurtain.session import events
from ironcurtain.session.refused_requests import KINDS_TOLD

PRICED = Settings(prices={"m": Price(input=1_000_000.0, output=0.0)})
"""A model of which each token that it reads costs a dollar."""


def response(tokens: Tokens | None, status: int = 200, model: str = "m", error: str = "") -> ProxiedResponse:
    """:returns: the end of a request."""
    return ProxiedResponse("r", "anthropic", status, 0.1, 10, tokens, False, model, error)


class TrafficTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.events: list[events.SessionEvent] = []
        self.exhausted: list[SessionError] = []
        self.logged: list[str] = []

    def log(self, source: str, line: str) -> None:
        self.logged.append(line)

    def traffic(self, settings: Settings = PRICED, spent: Spent | None = None) -> Traffic:
        made = Traffic(
            settings, spent or Spent(), self.events.append, self.exhausted.append, self.clock.seconds, self.log
        )
        made.begin()
        return made

    def test_tokens_and_cost_of_a_message(self) -> None:
        traffic = self.traffic()
        traffic.heard(response(Tokens(2, 3)))
        traffic.heard(response(Tokens(1, 1, cache_read_tokens=4)))
        usage = traffic.usage()
        self.assertEqual((usage.input_tokens, usage.output_tokens, usage.cost), (7, 4, 3.0))
        self.assertTrue(usage.token_tracking_available)
        steps = [event.step for event in self.events if isinstance(event, events.StepFinished)]
        self.assertEqual(steps, [1, 2])
        for begin in (traffic.begin, traffic.rest):
            begin()
            self.assertEqual(traffic.usage().input_tokens, 0)
            traffic.heard(response(Tokens(2, 3)))

    def test_an_answer_that_the_model_s_limit_cut_off_is_known_until_another_follows(self) -> None:
        traffic = self.traffic()
        traffic.heard(response(Tokens(1, 1))._replace(cut=True))
        self.assertTrue(traffic.cut)
        traffic.heard(response(Tokens(1, 1)))
        self.assertFalse(traffic.cut)

    def test_a_long_wait_is_told_at_once_and_a_short_one_by_the_agent(self) -> None:
        traffic = self.traffic()
        for wait in (LONG_WAIT - 1, 3600.0):
            traffic.heard(response(None, status=429)._replace(wait=wait))
        told = [event.delay for event in self.events if isinstance(event, events.ModelRetry)]
        self.assertEqual((told, self.exhausted), ([3600.0], []))

    def test_a_wait_that_is_too_long_ends_the_message(self) -> None:
        traffic = self.traffic(Settings(agents=Agents(longest_wait_seconds=600.0)))
        traffic.heard(response(None, status=429)._replace(wait=3600.0))
        [error] = self.exhausted
        self.assertIn("ends in 3600 s; agents.longest_wait_seconds allows 600", str(error))
        assert isinstance(error, AccountLimitReached)
        self.assertEqual(error.seconds, 3600.0)

    def test_tokens_that_nobody_told_are_not_available(self) -> None:
        traffic = self.traffic()
        self.assertFalse(traffic.usage().token_tracking_available)
        traffic.heard(response(None))
        self.assertFalse(traffic.usage().token_tracking_available)
        self.assertEqual(len(self.events), 1)

    def test_refusals_and_errors_are_no_steps(self) -> None:
        traffic = self.traffic()
        for status, error in ((403, ""), (529, ""), (0, "no connection"), (200, "the client went away")):
            traffic.heard(response(None, status, error=error))
        self.assertEqual(self.events, [])

    def test_what_was_not_let_through_is_reported(self) -> None:
        traffic = self.traffic()
        traffic.heard(ProxiedRequest("r", "", "evil.test", "GET", "/x", "deny", "host-not-allowed", "no such host"))
        traffic.heard(ProxiedRequest("r", "anthropic", "h", "POST", "/v1/messages", "allow", "rule", ""))
        wanted = events.RequestRefused(host="evil.test", method="GET", path="/x", reason="no such host")
        self.assertEqual(self.events, [wanted])

    def test_each_refused_host_is_told_of_once_and_counted_in_the_log(self) -> None:
        traffic = self.traffic()
        refused = [ProxiedRequest("r", "", "t.test", "CONNECT", "t.test:443", "deny", "host-not-allowed", "no")] * 100
        for event in refused:
            traffic.heard(event)
        traffic.heard(ProxiedRequest("r", "", "u.test", "CONNECT", "u.test:443", "deny", "host-not-allowed", "no"))
        traffic.heard(ProxiedRequest("r", "", "t.test", "POST", "/x", "deny", "provider-acts", "no search"))
        told = [(event.host, event.reason) for event in self.events if isinstance(event, events.RequestRefused)]
        self.assertEqual(told, [("t.test", "no"), ("u.test", "no"), ("t.test", "no search")])
        self.assertEqual(
            self.logged, [f"requests to t.test were refused {times} times so far: no" for times in (10, 100)]
        )

    def test_refusals_are_not_told_without_end(self) -> None:
        traffic = self.traffic()
        for number in range(1000):
            traffic.heard(ProxiedRequest("r", "", f"h{number}", "CONNECT", "", "deny", "host-not-allowed", "no"))
        self.assertEqual(len(self.events), KINDS_TOLD + 2)
        self.assertEqual([line[:27] for line in self.logged], ["requests to other hosts wer"] * 2)

    def test_a_provider_that_fails_is_told_of_at_once(self) -> None:
        traffic = self.traffic()
        traffic.heard(ProviderNotice("anthropic", "api.anthropic.com refuses the API key (401)"))
        self.assertEqual(self.events, [events.Notice(text="api.anthropic.com refuses the API key (401)")])

    def test_every_limit_stops_once_and_refuses_the_next_request(self) -> None:
        for budget in (Budget(steps=2), Budget(tokens=10), Budget(cost=6.0)):
            self.exhausted.clear()
            traffic = self.traffic(Settings(prices=PRICED.prices, budget=budget))
            traffic.heard(response(Tokens(3, 2)))
            self.assertEqual((self.exhausted, traffic.refusal()), ([], ""))
            for _ in range(2):
                traffic.heard(response(Tokens(3, 2)))
            self.assertEqual(len(self.exhausted), 1)
            self.assertIn("budget used up", traffic.refusal())
            self.assertRaises(SessionError, traffic.begin)

    def test_time_counts_while_a_message_is_worked_on(self) -> None:
        traffic = self.traffic(Settings(budget=Budget(seconds=10)))
        self.clock.advance(9)
        traffic.look()
        self.assertEqual(self.exhausted, [])
        self.assertEqual([type(event) for event in self.events], [events.BudgetWarning])
        self.clock.advance(1)
        traffic.look()
        traffic.look()
        self.assertEqual(len(self.exhausted), 1)

    def test_time_of_runs_that_a_crash_cut_off_counts_up_to_the_last_record(self) -> None:
        def seconds(*records: tuple[str, float]) -> float:
            written = [
                {"kind": kind, "time": timestamp(1.5e9 + time), **({"durationMs": 500.0} if kind == "run-end" else {})}
                for kind, time in records
            ]
            return spent_before(written, {}).seconds

        cut_off = (("run", 10), ("model-response", 14), ("call", 17))
        ended = (("run", 90), ("run-end", 91), ("end", 95))
        for kind in ("resumed", "recovered"):
            again = (kind, 80)
            self.assertEqual(seconds(*cut_off, again), 7.0)
            self.assertEqual(seconds(*cut_off, again, *ended, ("resumed", 99)), 7.5)
            self.assertEqual(seconds(*cut_off, again, *cut_off, ("resumed", 180)), 14.0)
        self.assertEqual(seconds(*cut_off), 7.0)
        self.assertEqual(seconds(("run", 10), ("call", 4)), 0.0)  # the clock was set back

    def test_what_was_used_before_a_crash_counts(self) -> None:
        records: list[dict[str, Any]] = [
            {
                "kind": "model-response",
                "usage": {"input": 2, "output": 3, "cacheRead": 1, "cacheWrite": 0},
                "model": "m",
            },
            {"kind": "model-response", "status": 403},
            {"kind": "run-end", "durationMs": 1500.0},
            {"kind": "call"},
        ]
        spent = spent_before(records, known_prices(PRICED))
        self.assertEqual((spent.steps, spent.seconds, spent.tokens, spent.cost), (1, 1.5, 6, 2.0))
        traffic = Traffic(
            Settings(budget=Budget(tokens=6)),
            spent,
            self.events.append,
            self.exhausted.append,
            self.clock.seconds,
            self.log,
        )
        self.assertRaises(SessionError, traffic.begin)
