"""An agent that asks for far more than a person can read."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, gatherResults

from ironcurtain.escalation import Outcome
from ironcurtain.escalation.queue import LIMIT
from ironcurtain.mcp_proxy.calls import CallDecided
from ironcurtain.mcp_proxy.gate import GateLimits
from tests.mcp_proxy.support import RawAgent, fake_server, until
from tests.mcp_proxy.test_calls import code, text
from tests.mcp_proxy.test_protocol import Base

CALLS = 300


class FloodTests(Base):
    def flood(self, agent: RawAgent, count: int, different: int) -> list[Deferred[dict[str, Any]]]:
        """:returns: the answers to many calls at once, of which so many are different."""
        return [
            Deferred.fromCoroutine(agent.call("fake__echo", {"n": number % different, "body": "x" * 1000}))
            for number in range(count)
        ]

    async def test_what_is_too_much_fails_at_once_with_a_code_of_its_own(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"])
        answers = self.flood(agent, CALLS, CALLS)
        await until(lambda: sum(answer.called for answer in answers) == CALLS - LIMIT, "the refusals")
        refused = [answer for answer in answers if answer.called]
        self.assertEqual({code(await answer) for answer in refused}, {"too-many-questions"})
        self.assertEqual(len(self.top.escalations.pending()), LIMIT)
        self.assertEqual(len(self.top.escalations.deny_all("tester")), LIMIT)
        rest = await gatherResults([answer for answer in answers if answer not in refused])
        self.assertEqual({code(answer) for answer in rest}, {"denied-by-person"})
        decisions = [record["outcome"] for record in self.top.records("decision")]
        self.assertEqual((decisions.count("too-many"), decisions.count("denied")), (CALLS - LIMIT, LIMIT))
        ends = [(record["status"], record["error"]) for record in self.top.records("outcome")]
        self.assertEqual(ends.count(("denied", "too-many-questions")), CALLS - LIMIT)
        told = [event.outcome for event in self.top.events if isinstance(event, CallDecided)]
        self.assertEqual(told.count("too-many"), CALLS - LIMIT)

    async def test_equal_calls_are_one_question_and_each_is_recorded(self) -> None:
        limits = GateLimits(repeats=100)
        agent = await self.agent(fake_server(RECORD="record"), escalate=["echo"], limits=limits)
        answers = self.flood(agent, 20, 2)
        await until(lambda: sum(each.calls for each in self.top.escalations.pending()) == 20, "the questions")
        first, second = self.top.escalations.pending()
        self.assertEqual((first.calls, second.calls), (10, 10))
        self.top.escalations.decide(first.number, Outcome.APPROVED, "tester", calls=10)
        self.top.escalations.decide(second.number, Outcome.DENIED, "tester")
        results = [await answer for answer in answers]
        refused = [code(answer) for answer in results if "_meta" in answer["result"]]
        self.assertEqual(refused, ["denied-by-person"] * 10)
        made = [message for message in self.top.seen_by_server() if message["method"] == "tools/call"]
        self.assertEqual([message["params"]["arguments"]["n"] for message in made], [0] * 10)
        decisions = [(record["number"], record["outcome"]) for record in self.top.records("decision")]
        self.assertEqual(decisions.count((first.number, "approved")), 10)
        self.assertEqual(len({record["callId"] for record in self.top.records("decision")}), 20)

    async def test_repetitions_are_counted_for_each_client(self) -> None:
        first = await self.agent(limits=GateLimits(repeats=2))
        second = await self.top.agent()
        for client in (first, second):
            answers = [await client.call("fake__echo", {"a": 1}) for _ in range(3)]
            self.assertEqual(["_meta" in answer["result"] for answer in answers], [False, False, True])
            self.assertIn("this client made the same call more than 2 times within 60 s", text(answers[-1]))
