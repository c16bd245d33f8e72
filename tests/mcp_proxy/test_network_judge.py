"""A session's proxy judges connections of its programs by the same policy, queue and log as calls."""

from __future__ import annotations

import json

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.escalation import Outcome
from ironcurtain.policy.history import AfterCondition
from ironcurtain.policy.rules import Conditions, Rule
from tests.mcp_proxy.support import Bench, fake_server


class NetworkJudgeTests(TestCase):
    async def test_connections_are_asked_kept_revoked_and_recorded(self) -> None:
        bench = Bench([])
        self.addCleanup(bench.stop)
        await bench.start()
        judge = bench.proxy.network_judge("server x")
        asked = [Deferred.fromCoroutine(judge.connect("a.test", 443)) for _ in range(2)]
        bench.escalations.decide(1, Outcome.APPROVED, "ada", keep=True)
        for answer in asked:
            self.assertIsNone(await answer)
        self.assertIsNone(await judge.connect("a.test", 443))
        bench.escalations.revoke(1, "ada")
        again = Deferred.fromCoroutine(judge.connect("a.test", 443))
        self.assertEqual([each.number for each in bench.escalations.pending()], [2])
        await bench.proxy.stop()
        refusal = await again
        assert refusal is not None
        self.assertEqual(refusal.code, "withdrawn")
        records = map(json.loads, (bench.top / "audit.jsonl").read_text().splitlines())
        kinds = [each["kind"] for each in records if each["kind"] in ("call", "decision", "outcome", "repeats")]
        self.assertEqual(sorted(kinds), sorted(["call", "decision", "outcome"] * 2 + ["repeats"]))

    async def test_rules_about_calls_see_connections(self) -> None:
        after = Conditions(tool=("echo",), after=AfterCondition(server=("network",)))
        opens = Rule("open", Conditions(server=("network",)), "allow")
        bench = Bench([fake_server()], rules=[Rule("no-echo-after", after, "deny"), opens])
        self.addCleanup(bench.stop)
        agent = await (await bench.start()).agent()
        self.assertFalse((await agent.call("fake__echo", {"text": "a"}))["result"].get("isError", False))
        self.assertIsNone(await bench.proxy.network_judge("the agent").connect("a.test", 443))
        self.assertTrue((await agent.call("fake__echo", {"text": "a"}))["result"]["isError"])
