"""What servers ask: roots, samples of the agent's model, questions to a person."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy.server_fields import AgentRequest
from tests.mcp_proxy.support import RawAgent, fake_server, until
from tests.mcp_proxy.test_calls import text
from tests.mcp_proxy.test_protocol import Base

CAPABLE: dict[str, Any] = {
    "capabilities": {"sampling": {}, "elicitation": {"form": {}}, "roots": {"listChanged": True}}
}

SAMPLING: frozenset[AgentRequest] = frozenset({"sampling"})
FORMS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
"""What every server may use."""


class QuestionTests(Base):
    """Who answers."""

    async def ask(self, agent: RawAgent, method: str, params: Any = None, server: str = "fake") -> dict[str, Any]:
        """:returns: what a server gets when it asks."""
        answer = await agent.call(f"{server}__ask", {"method": method, "params": params or {}})
        return dict(json.loads(text(answer)))

    async def test_roots_are_ours_and_the_agent_is_never_asked(self) -> None:
        bench = await self.bench(fake_server(RECORD="record"))
        agent = await bench.agent(**CAPABLE)
        answer = await agent.call("fake__ask", {"method": "roots/list"})
        roots = bench.seen_by_server()[-1]["result"]["roots"]
        self.assertEqual(roots, [{"uri": f"file://{bench.workspace}", "name": "workspace"}])
        self.assertIn("/workspace", text(answer))
        self.assertEqual(agent.messages, [])
        self.assertEqual(bench.seen_by_server()[0]["params"]["capabilities"], FORMS)

    async def test_ping_is_answered_and_unknown_questions_are_refused(self) -> None:
        agent = await self.agent()
        self.assertEqual(await self.ask(agent, "ping"), {"result": {}})
        self.assertEqual((await self.ask(agent, "x/unknown"))["error"]["code"], -32601)

    async def test_sampling_is_refused_unless_it_is_allowed(self) -> None:
        bench = await self.bench()
        agent = await bench.agent(**CAPABLE)
        self.assertEqual((await self.ask(agent, "sampling/createMessage"))["error"]["code"], -32601)
        self.assertEqual((agent.messages, bench.escalations.history()), ([], []))
        (record,) = bench.records("question")
        self.assertEqual((record["decision"], record["rule"]), ("deny", "sampling-not-allowed"))

    async def test_permitted_sampling_goes_to_the_agent_and_back(self) -> None:
        servers = [fake_server(name, requests=SAMPLING, RECORD=f"record-{name}") for name in "ab"]
        bench = await self.bench(*servers)
        agent = await bench.agent(**CAPABLE)
        params = {"x-unknown": 2**70, "where": str(bench.workspace), "_meta": {"progressToken": 1, "kept": 2}}
        calls = [Deferred.fromCoroutine(self.ask(agent, "sampling/createMessage", params, name)) for name in "ab"]
        await until(lambda: len(bench.escalations.pending()) == 2, "two questions")
        self.assertEqual(agent.messages, [])
        for escalation in bench.escalations.pending():
            bench.escalations.decide(escalation.number, Outcome.APPROVED, "tester")
        questions = [await agent.expect(lambda m: m.get("method") == "sampling/createMessage") for _ in calls]
        self.assertEqual(len({question["id"] for question in questions}), 2)
        for question in questions:
            expected = {"x-unknown": 2**70, "where": "/workspace", "_meta": {"kept": 2}}
            self.assertEqual(question["params"], expected)
            result = {"content": question["id"], "x-unknown": 2**70}
            agent.send({"jsonrpc": "2.0", "id": question["id"], "result": result})
            agent.send({"jsonrpc": "2.0", "id": question["id"], "result": {"second": True}})
        answers = [(await call)["result"] for call in calls]
        self.assertCountEqual(answers, [{"content": q["id"], "x-unknown": 2**70} for q in questions])

    async def test_person_sees_messages_and_model_and_may_keep_the_approval(self) -> None:
        bench = await self.bench(fake_server(requests=SAMPLING))
        agent = await bench.agent(**CAPABLE)
        wishes = {"hints": [{"name": "small\x1b"}, {"name": "fast"}, 7]}
        params = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "modelPreferences": wishes}
        call = Deferred.fromCoroutine(self.ask(agent, "sampling/createMessage", params))
        request = (await bench.pending()).request
        self.assertEqual((request.server, request.tool, request.arguments), ("fake", "sampling/createMessage", params))
        self.assertIn("it would like small\\x1b or fast, and the agent chooses", request.reason)
        self.assertIsNone(request.automatic)
        bench.escalations.decide((await bench.pending()).number, Outcome.APPROVED, "tester", keep=True)
        for _ in range(2):
            question = await agent.expect(lambda m: m.get("method") == "sampling/createMessage")
            agent.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": 1, "message": "no", "x": 1.5}})
            self.assertEqual((await call)["error"], {"code": 1, "message": "no", "x": 1.5})
            call = Deferred.fromCoroutine(self.ask(agent, "sampling/createMessage", {"messages": []}))
        await agent.expect(lambda m: m.get("method") == "sampling/createMessage")
        self.assertEqual(len(bench.escalations.history()), 1)
        call.addErrback(lambda _: None)

    async def test_denied_sampling_does_not_reach_the_agent(self) -> None:
        bench = await self.bench(fake_server(requests=SAMPLING))
        agent = await bench.agent(**CAPABLE)
        call = Deferred.fromCoroutine(self.ask(agent, "sampling/createMessage"))
        await bench.decide(Outcome.DENIED)
        self.assertIn("denied-by-person", (await call)["error"]["message"])
        self.assertEqual(agent.messages, [])
        self.assertEqual([record["status"] for record in bench.records("outcome")], ["denied", "success"])

    async def test_what_the_agent_cannot_do_is_not_claimed(self) -> None:
        bench = await self.bench(fake_server(requests=SAMPLING, RECORD="record"))
        await bench.agent(capabilities={"sampling": {"tools": {}}})
        claimed = bench.seen_by_server()[0]["params"]["capabilities"]
        self.assertEqual(claimed, {"sampling": {"tools": {}}, **FORMS})

    async def test_a_question_dies_with_the_agent_that_was_asked(self) -> None:
        bench = await self.bench(fake_server(requests=SAMPLING, RECORD="record"))
        agent = await bench.agent(**CAPABLE)
        call = Deferred.fromCoroutine(self.ask(agent, "sampling/createMessage"))
        call.addErrback(lambda _: None)
        await bench.decide(Outcome.APPROVED)
        await agent.expect(lambda m: m.get("method") == "sampling/createMessage")
        agent.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: "error" in bench.seen_by_server()[-1])
        await call
