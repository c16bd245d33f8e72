"""Forms of servers: a person fills them in, and neither the agent nor a program does."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy import link, questions
from ironcurtain.mcp_proxy.questions import A_MINUTE, OPEN
from ironcurtain.mcp_proxy.server_fields import AgentRequest
from tests.mcp_proxy.support import RawAgent, fake_server, sleep, until
from tests.mcp_proxy.test_calls import text
from tests.mcp_proxy.test_protocol import Base
from tests.mcp_proxy.test_questions import CAPABLE

NAME = {"name": {"type": "string", "title": "Your name", "minLength": 2}}


def asking(properties: Any = NAME, message: str = "Who are you?", **more: Any) -> dict[str, Any]:
    """:returns: the parameters of a form."""
    return {"message": message, "requestedSchema": {"type": "object", "properties": properties, **more}}


class FormTests(Base):
    def ask(self, agent: RawAgent, params: Any) -> Deferred[dict[str, Any]]:
        """:returns: fires with what a server gets when it sends a form."""

        async def asked() -> dict[str, Any]:
            answer = await agent.call("fake__ask", {"method": "elicitation/create", "params": params})
            return dict(json.loads(text(answer)))

        return Deferred.fromCoroutine(asked())

    async def test_values_of_a_person_reach_the_server_and_only_it(self) -> None:
        sampling: frozenset[AgentRequest] = frozenset({"sampling"})
        bench = await self.bench(fake_server(requests=sampling))
        agent = await bench.agent(**CAPABLE)
        asked = self.ask(agent, asking())
        waiting = await bench.pending()
        self.assertEqual((waiting.request.server, waiting.request.tool), ("fake", "elicitation/create"))
        bench.escalations.answer(waiting.number, {"name": "Ada Lovelace"}, "tester")
        self.assertEqual(await asked, {"result": {"action": "accept", "content": {"name": "Ada Lovelace"}}})
        self.assertEqual(agent.messages, [])
        (question,) = bench.records("question")
        (decision,) = bench.records("decision")
        self.assertEqual((question["arguments"], question["decision"]), (asking(), "escalate"))
        self.assertEqual((decision["callId"], decision["by"]), (question["callId"], "tester"))
        self.assertEqual(decision["outcome"], "answered")
        (outcome,) = [record for record in bench.records("outcome") if record["callId"] == question["callId"]]
        self.assertEqual((outcome["status"], outcome["size"] > 20, len(outcome["digest"])), ("success", True, 64))
        mine = json.dumps([record for record in bench.records() if record.get("callId") == question["callId"]])
        self.assertNotIn("Ada Lovelace", mine + repr(bench.events))

    async def test_declined_and_cancelled_forms_say_so(self) -> None:
        bench = await self.bench()
        agent = await bench.agent()
        for action in ("decline", "cancel"):
            asked = self.ask(agent, asking())
            number = (await bench.pending()).number
            if action == "decline":
                bench.escalations.decide(number, Outcome.DENIED, "tester")
            else:
                bench.escalations.answer(number, None, "tester")
            self.assertEqual(await asked, {"result": {"action": action}})
        self.assertEqual([record["outcome"] for record in bench.records("decision")], ["denied", "cancelled"])

    async def test_late_form_is_cancelled(self) -> None:
        bench = await self.bench(timeout=0.2)
        agent = await bench.agent()
        self.assertEqual(await self.ask(agent, asking()), {"result": {"action": "cancel"}})
        self.assertEqual([record["outcome"] for record in bench.records("decision")], ["expired"])

    async def test_form_is_declined_where_nobody_is(self) -> None:
        agent = await self.agent(attended=False)
        self.assertEqual(await self.ask(agent, asking()), {"result": {"action": "decline"}})

    async def test_form_that_asks_for_a_secret_is_shown_to_nobody(self) -> None:
        bench = await self.bench()
        agent = await bench.agent()
        error = (await self.ask(agent, asking({"github_token": {"type": "string"}})))["error"]
        self.assertIn("the field github_token asks for a secret", error["message"])
        self.assertEqual(bench.escalations.history() + bench.escalations.pending(), [])
        self.assertIn("a form of MCP server fake was refused: the field github_token asks for a secret", bench.told[-1])
        self.assertEqual([r["rule"] for r in bench.records("question")], ["form-asks-for-secret"])

    async def test_address_is_shown_and_accepted_without_values(self) -> None:
        bench = await self.bench()
        agent = await bench.agent()
        asked = self.ask(agent, {"mode": "url", "elicitationId": "1", "message": "m", "url": "https://a.example/x"})
        waiting = await bench.pending()
        assert waiting.request.form is not None
        self.assertEqual(waiting.request.form.host, "a.example")
        bench.escalations.answer(waiting.number, {}, "tester")
        self.assertEqual(await asked, {"result": {"action": "accept"}})

    async def test_flood_of_forms_is_bounded(self) -> None:
        self.patch(questions, "MINUTE", 3600.0)  # on a busy machine, this can take a minute
        bench = await self.bench()
        agent = await bench.agent()
        asked = [self.ask(agent, asking(message=str(number))) for number in range(OPEN + 3)]
        await until(lambda: sum(each.called for each in asked) == 3, "three refusals")
        await until(lambda: len(bench.escalations.pending()) == OPEN, "the others")
        refused = [each for each in asked if each.called]
        self.assertEqual({(await each)["error"]["code"] for each in refused}, {-32600})
        bench.escalations.deny_all("tester")
        for each in asked:
            if each not in refused:
                self.assertEqual(await each, {"result": {"action": "decline"}})
        bench.fill_in({"name": "Ada"})
        answers = [await self.ask(agent, asking()) for _ in range(A_MINUTE)]
        self.assertEqual(sum("result" in answer for answer in answers), A_MINUTE - OPEN)
        self.assertIn("too-many-questions", [record["rule"] for record in bench.records("question")])

    async def test_form_is_withdrawn_with_the_last_call_of_its_server(self) -> None:
        bench = await self.bench(fake_server(RECORD="record"))
        agent, other = await bench.agent(), await bench.agent()
        self.ask(agent, asking()).addErrback(lambda _: None)
        await bench.pending()
        second = self.ask(other, asking())
        await until(lambda: len(bench.escalations.pending()) == 2, "two forms")
        agent.transport.abortConnection()  # type: ignore[union-attr]
        await agent.lost
        await until(
            lambda: "cancelled" in [record["status"] for record in bench.records("outcome")], "the cancellation"
        )
        self.assertEqual(len(bench.escalations.pending()), 2)
        other.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: not bench.escalations.pending(), "the end of the forms")
        second.addErrback(lambda _: None)
        self.assertEqual({each.outcome for each in bench.escalations.history()}, {Outcome.WITHDRAWN})

    async def test_call_is_not_given_up_while_its_server_waits_for_a_person(self) -> None:
        self.patch(link, "SWEEP_SECONDS", 0.05)
        bench = await self.bench()
        agent = await bench.agent()
        asked = self.ask(agent, asking())
        number = (await bench.pending()).number
        usual = link.SILENCE_SECONDS
        self.patch(link, "SILENCE_SECONDS", 0.2)
        await sleep(0.6)
        self.patch(link, "SILENCE_SECONDS", usual)  # what the server does itself may take its time
        bench.escalations.answer(number, {"name": "Ada"}, "tester")
        self.assertEqual((await asked)["result"]["action"], "accept")

    async def test_agent_is_told_that_a_person_is_asked(self) -> None:
        bench = await self.bench()
        agent = await bench.agent()
        call = {"method": "elicitation/create", "params": asking()}
        params = {"name": "fake__ask", "arguments": call, "_meta": {"progressToken": 7}}
        answer = agent.request("tools/call", params)
        progress = (await agent.expect(lambda m: m.get("method") == "notifications/progress"))["params"]
        self.assertIn("waiting for a person", progress["message"])
        self.assertNotIn("Who are you?", json.dumps(progress))
        bench.escalations.answer((await bench.pending()).number, None, "tester")
        await answer

    async def test_form_ends_with_its_server(self) -> None:
        bench = await self.bench()
        agent = await bench.agent()
        asked = self.ask(agent, asking())
        await bench.pending()
        asked.addErrback(lambda _: None)
        await bench.proxy.stop()
        self.assertEqual([each.outcome for each in bench.escalations.history()], [Outcome.WITHDRAWN])


class WaitingTests(Base):
    """Servers whose handshake depends on the agent."""

    async def test_agents_start_does_not_wait_for_servers_that_wait_for_it(self) -> None:
        bench = await self.bench(fake_server(requests=frozenset({"sampling"})))
        waited = [name for names in [await bench.proxy.ready(250, False, lambda names: None)] for name in names]
        self.assertEqual((waited, bench.down), ([], []))
        agent = await bench.agent(**CAPABLE)
        tools = (await agent.request("tools/list"))["result"]["tools"]
        self.assertIn("fake__ask", [tool["name"] for tool in tools])

    async def test_servers_come_up_where_no_agent_connects(self) -> None:
        bench = await self.bench(fake_server(requests=frozenset({"sampling"}), RECORD="record"))
        await bench.proxy.ready(250, False, lambda names: None)
        self.assertEqual(bench.proxy.gate.tools(), [])
        bench.proxy.without_agents()
        await bench.proxy.ready(250, False, lambda names: None)
        self.assertIn("ask", [tool.name for tool in bench.proxy.gate.tools()])
        self.assertNotIn("sampling", bench.seen_by_server()[0]["params"]["capabilities"])
