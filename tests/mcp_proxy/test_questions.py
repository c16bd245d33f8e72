"""What servers ask: roots, samples of the agent's model, questions to a person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.mcp_proxy.server_fields import AgentRequest
from tests.mcp_proxy.support import RawAgent, fake_server, until
from tests.mcp_proxy.test_calls import text
from tests.mcp_proxy.test_protocol import Base

CAPABLE: dict[str, Any] = {
    "capabilities": {"sampling": {}, "elicitation": {"form": {}}, "roots": {"listChanged": True}}
}


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
        self.assertEqual(bench.seen_by_server()[0]["params"]["capabilities"], {})

    async def test_ping_is_answered_and_unknown_questions_are_refused(self) -> None:
        agent = await self.agent()
        self.assertEqual(await self.ask(agent, "ping"), {"result": {}})
        self.assertEqual((await self.ask(agent, "x/unknown"))["error"]["code"], -32601)

    async def test_sampling_is_refused_unless_it_is_allowed(self) -> None:
        bench = await self.bench()
        agent = await bench.agent(**CAPABLE)
        self.assertEqual((await self.ask(agent, "sampling/createMessage"))["error"]["code"], -32601)
        self.assertEqual(agent.messages, [])
        self.assertEqual(bench.records("question")[0]["answeredBy"], "nobody")

    async def test_without_a_person_questions_are_declined(self) -> None:
        bench = await self.bench()
        agent = await bench.agent(**CAPABLE)
        self.assertEqual(await self.ask(agent, "elicitation/create"), {"result": {"action": "decline"}})
        self.assertEqual(agent.messages, [])

    async def test_a_person_is_asked_with_the_server_named(self) -> None:
        asked = []

        async def elicit(server: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            asked.append((server, params))
            return {"action": "accept", "content": {"name": "x"}}

        agent = await self.agent(fake_server(RECORD="record"), elicit=elicit)
        params = {"message": "your name?", "requestedSchema": {}}
        answer = await self.ask(agent, "elicitation/create", params)
        self.assertEqual(answer, {"result": {"action": "accept", "content": {"name": "x"}}})
        self.assertEqual(asked, [("fake", params)])
        self.assertEqual(self.top.seen_by_server()[0]["params"]["capabilities"], {"elicitation": {}})
        (record,) = self.top.records("question")
        self.assertEqual((record["answeredBy"], record["action"]), ("person", "accept"))
        self.assertNotIn("content", record)

    async def test_what_is_allowed_goes_to_the_agent_and_back(self) -> None:
        allowed: frozenset[AgentRequest] = frozenset(("sampling", "elicitation"))
        servers = [fake_server(name, requests=allowed, RECORD=f"record-{name}") for name in "ab"]
        bench = await self.bench(*servers)
        agent = await bench.agent(**CAPABLE)
        params = {"x-unknown": 2**70, "where": str(bench.workspace), "_meta": {"progressToken": 1, "kept": 2}}
        calls = [Deferred.fromCoroutine(self.ask(agent, "sampling/createMessage", params, name)) for name in "ab"]
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
        elicit = Deferred.fromCoroutine(self.ask(agent, "elicitation/create", {}, "a"))
        question = await agent.expect(lambda m: m.get("method") == "elicitation/create")
        agent.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": 1, "message": "no", "x": 1.5}})
        self.assertEqual((await elicit)["error"], {"code": 1, "message": "no", "x": 1.5})

    async def test_what_the_agent_cannot_do_is_not_claimed(self) -> None:
        allowed: frozenset[AgentRequest] = frozenset(("sampling", "elicitation"))
        bench = await self.bench(fake_server(requests=allowed, RECORD="record"))
        await bench.agent(capabilities={"sampling": {"tools": {}}})
        self.assertEqual(bench.seen_by_server()[0]["params"]["capabilities"], {"sampling": {"tools": {}}})

    async def test_a_question_dies_with_the_agent_that_was_asked(self) -> None:
        bench = await self.bench(fake_server(requests=frozenset({"sampling"}), RECORD="record"))
        agent = await bench.agent(**CAPABLE)
        call = Deferred.fromCoroutine(self.ask(agent, "sampling/createMessage"))
        call.addErrback(lambda _: None)
        await agent.expect(lambda m: m.get("method") == "sampling/createMessage")
        agent.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: "error" in bench.seen_by_server()[-1])
        await call
