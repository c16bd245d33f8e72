"""Agents that do not read, and what comes in which order."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from ironcurtain.mcp_proxy import connection
from tests.mcp_proxy.support import RawAgent, fake_server, memory, sleep, until
from tests.mcp_proxy.test_protocol import Base

MIB = 1024 * 1024


def deafen(agent: RawAgent) -> None:
    """Stop reading what the proxy sends."""
    agent.transport.pauseProducing()  # type: ignore[union-attr]


class FlowTests(Base):
    """Back pressure both ways."""

    async def test_notifications_and_answers_keep_their_order(self) -> None:
        agent = await self.agent()
        for round_number in range(3):
            agent.messages.clear()
            await agent.call("fake__flood", {"count": 50, "size": 10, "round": round_number})
            numbers = [m["params"]["data"]["number"] for m in agent.messages]
            self.assertEqual(numbers, list(range(50)))
        agent.messages.clear()
        await agent.call("fake__progress", {"values": list(range(20))}, _meta={"progressToken": 0})
        self.assertEqual([m["params"]["progress"] for m in agent.messages], list(range(20)))
        self.assertEqual({json.dumps(m["params"]["progressToken"]) for m in agent.messages}, {"0"})

    async def test_a_flood_to_an_agent_that_does_not_read_stays_with_the_server(self) -> None:
        bench = await self.bench()
        agent = await bench.agent()
        deafen(agent)
        before = memory()
        call = Deferred.fromCoroutine(agent.call("fake__flood", {"count": 2000, "size": 100_000}))
        for _ in range(20):
            await sleep(0.1)
            self.assertLess(memory() - before, 64 * MIB)
        self.assertFalse(call.called)
        agent.transport.resumeProducing()  # type: ignore[union-attr]
        await call
        self.assertEqual([m["params"]["data"]["number"] for m in agent.messages], list(range(2000)))

    async def test_a_line_without_an_end_is_not_read_for_ever(self) -> None:
        self.patch(connection, "INBOUND_LIMIT", MIB)
        self.patch(connection, "ENDLESS", MIB)
        bench = await self.bench()
        other, agent = await bench.agent(), await bench.agent()
        with capturedLogs() as logged:
            for _ in range(64):
                agent.raw(b"x" * MIB)
            await agent.lost
        self.assertEqual([event["why"] for event in logged if "why" in event], ["sent a line without an end"])
        self.assertIn("structuredContent", (await other.call("fake__echo"))["result"])

    async def test_junk_is_not_answered_for_ever(self) -> None:
        agent = await self.agent()
        agent.raw(b"y\n" * (connection.JUNK_LINES + 1))
        await agent.lost
        self.assertLessEqual(sum("error" in message for message in agent.messages), connection.JUNK_LINES)

    async def test_requests_of_an_agent_that_does_not_read_are_not_read(self) -> None:
        agent = await self.agent()
        deafen(agent)
        ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 1000
        for _ in range(100):
            agent.raw(ping)
        before = memory()
        await until(lambda: agent.unsent() > 0)
        await sleep(0.3)
        waiting = agent.unsent()
        self.assertGreater(waiting, MIB)
        self.assertLess(memory() - before, 16 * MIB)
        agent.transport.resumeProducing()  # type: ignore[union-attr]
        await until(lambda: len(agent.messages) == 100_000, "all answers", 200.0)

    async def test_another_agent_is_not_slowed(self) -> None:
        self.patch(connection, "UNREAD_LIMIT", 8 * MIB)
        bench = await self.bench(fake_server(), fake_server("other"))
        deaf, reader = await bench.agent(), await bench.agent()
        deafen(deaf)
        for number in range(20):
            params = {"name": "fake__big", "arguments": {"size": 10 * MIB, "n": number}}
            deaf.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        before = memory()
        for number in range(50):
            self.assertIn("result", await reader.call("other__echo", {"n": number}))
            await sleep(0.01)
        self.assertFalse(deaf.lost.called)  # nobody waited for it to read, nor for its end
        self.assertLess(memory() - before, 100 * MIB)
        deaf.transport.resumeProducing()  # type: ignore[union-attr]
        await deaf.lost
        self.assertIn("result", await reader.call("fake__echo"))

    async def test_agents_of_one_session_have_their_own_ids_and_reports(self) -> None:
        bench = await self.bench()
        one, two = await bench.agent(), await bench.agent()
        params: dict[str, Any] = {"name": "fake__progress", "_meta": {"progressToken": "same"}}
        for agent, values in ((one, [1, 2]), (two, [7])):
            arguments = {"arguments": {"values": values}}
            agent.send({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {**params, **arguments}})
        await one.answer_to("same")
        await two.answer_to("same")
        self.assertEqual([m["params"]["progress"] for m in one.messages], [1, 2])
        self.assertEqual([m["params"]["progress"] for m in two.messages], [7])
