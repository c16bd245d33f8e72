"""Servers that break the protocol: what agents and people get."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy import restarting, router
from ironcurtain.mcp_proxy.faults import FAULTS_LIMIT, ServerFaults
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.policy.rules import Conditions, Rule
from tests.audit.doubles import scratch
from tests.mcp_proxy.support import Bench, fake_server, sleep
from tests.mcp_proxy.test_calls import code, text
from tests.mcp_proxy.test_protocol import Base


class RecordTests(SynchronousTestCase):
    """The record of faults."""

    def setUp(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.faults = ServerFaults(self.report)

    def report(self, server: str, sentence: str) -> str:
        self.told.append((server, sentence))
        return sentence.upper()

    def test_fault_is_reported_once(self) -> None:
        for _ in range(2):
            self.faults.add("a", "tools/call", "one")
        self.assertEqual(self.told, [("a", "one")])
        self.assertEqual(self.faults.shown(), {"a": ("ONE",)})

    def test_faults_of_a_list_replace_those_before(self) -> None:
        self.faults.add("a", "tools/call", "kept")
        self.faults.replace("a", "tools/list", ["one", "two"])
        self.faults.replace("a", "tools/list", ["two", "three"])
        self.assertEqual(self.faults.shown(), {"a": ("KEPT", "TWO", "THREE")})
        self.assertEqual([sentence for _, sentence in self.told], ["kept", "one", "two", "three"])

    def test_number_of_faults_is_bounded(self) -> None:
        for number in range(2 * FAULTS_LIMIT):
            self.faults.add("a", "tools/call", str(number))
        self.assertEqual((len(self.told), len(self.faults.shown()["a"])), (FAULTS_LIMIT, FAULTS_LIMIT))


def answer(**members: Any) -> str:
    """:returns: an answer for ``RAW``."""
    return json.dumps({"jsonrpc": "2.0", "id": "ID", **members}).replace('"ID"', "ID")


class ReadyTests(Base):
    """Sessions that wait for slow servers."""

    async def held(self, seconds: float = 60.0) -> tuple[Bench, list[list[str]], Any]:
        """:returns: a proxy before two servers that do not answer, one named by the policy; and what holds that up."""
        top = scratch(self)
        locks = {name: (top / name).open("x") for name in ("named", "other")}
        for lock in locks.values():
            fcntl.flock(lock, fcntl.LOCK_EX)
        named, other = (fake_server(name, HELD_BY=lock.name) for name, lock in locks.items())
        rule = Rule("named", Conditions(server=("named",)), "allow", "tests")
        bench = await self.bench(replace(named, start_seconds=seconds), other, rules=[rule])
        for lock in locks.values():  # they are released before the servers are told to end
            self.addCleanup(lock.close)
        return bench, [], locks["named"]

    async def test_patient_session_waits_for_servers_that_the_policy_names(self) -> None:
        bench, waiting, lock = await self.held()
        ready = Deferred.fromCoroutine(bench.proxy.ready(0.0, True, waiting.append))
        self.assertEqual((waiting, ready.called), ([["named"]], False))
        lock.close()
        self.assertEqual(await ready, {"other": ""})
        self.assertIn("named", {tool.server for tool in bench.proxy.gate.tools()})

    async def test_other_sessions_go_on_without_them(self) -> None:
        bench, waiting, _ = await self.held()
        self.assertEqual(await bench.proxy.ready(0.0, False, waiting.append), {"named": "", "other": ""})
        self.assertEqual(waiting, [])

    async def test_server_that_takes_longer_than_it_may_is_down(self) -> None:
        bench, waiting, _ = await self.held(0.2)
        self.assertEqual(await bench.proxy.ready(0.0, True, waiting.append), {"other": ""})
        self.assertEqual(bench.proxy.failures, {"named": "was not ready within 0.2 s"})


class ProxyTests(Base):
    """One bad part does not spoil the whole."""

    async def raw(self, **answers: str) -> Any:
        """:returns: an agent of a proxy before a server that gives these answers, and before a sound one."""
        named = {name.replace("_", "/"): said for name, said in answers.items()}
        return await self.agent(fake_server(RAW=json.dumps({**named, **answers})), fake_server("sound"))

    async def test_bad_definition_spoils_no_list_and_is_named(self) -> None:
        tools = [{"name": "bad", "inputSchema": []}, {"name": "echo", "description": 5}]
        agent = await self.raw(tools_list=answer(result={"tools": tools}))
        listed = {tool["name"]: tool for tool in (await agent.request("tools/list"))["result"]["tools"]}
        self.assertEqual(listed["fake__echo"], {"name": "fake__echo", "inputSchema": {"type": "object"}})
        self.assertNotIn("fake__bad", listed)
        self.assertIn("sound__echo", listed)
        faults = self.top.proxy.faults
        self.assertEqual(list(faults), ["fake"])
        self.assertIn("tool bad: inputSchema must be an object; left out", faults["fake"])
        for fault in faults["fake"]:
            self.assertIn(f"MCP server fake: {fault}", self.top.told)

    async def test_tool_that_is_listed_twice_is_named(self) -> None:
        tools = [{"name": "echo", "description": text, "inputSchema": {"type": "object"}} for text in ("one", "two")]
        agent = await self.raw(tools_list=answer(result={"tools": tools}))
        listed = [t for t in (await agent.request("tools/list"))["result"]["tools"] if t["name"] == "fake__echo"]
        self.assertEqual([tool["description"] for tool in listed], ["one"])
        self.assertEqual(self.top.proxy.faults["fake"], ("tool echo: listed more than once; the first is used",))

    async def test_lists_that_do_not_go_on_keep_what_was_read(self) -> None:
        tools = [{"name": "echo", "inputSchema": {"type": "object"}}]
        for cursor, why in (
            ({"page": 2}, "nextCursor in its answer to tools/list must be a string; what follows is left out"),
            (7, "its answers to tools/list begin again; what follows is left out"),
            ("same", "its answers to tools/list begin again; what follows is left out"),
        ):
            agent = await self.raw(tools_list=answer(result={"tools": tools, "nextCursor": cursor}))
            names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
            self.assertEqual(names.count("fake__echo"), 1)
            self.assertIn("sound__echo", names)
            self.assertIn(why, self.top.proxy.faults["fake"])

    async def test_cursor_that_is_a_number_is_sent_back(self) -> None:
        agent = await self.agent(fake_server(NUMBERS="1"))
        names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
        self.assertIn("fake__overlong", names)
        self.assertEqual(self.top.proxy.faults, {})

    async def test_server_that_does_not_name_its_tools_has_them(self) -> None:
        hello: dict[str, Any] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "serverInfo": {"name": "x", "version": "1"},
        }
        agent = await self.raw(initialize=answer(result=hello))
        names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
        self.assertIn("fake__echo", names)
        self.assertEqual(self.top.proxy.faults["fake"], ("it has tools, which its capabilities do not name",))

    async def test_messages_on_one_line_are_all_read(self) -> None:
        notice = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}})
        agent = await self.raw(echo=notice + answer(result={"content": [{"type": "text", "text": "here"}]}))
        self.assertEqual(text(await agent.call("fake__echo")), "here")

    async def test_unknown_version_is_named(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 60.0)
        for version, named in (("0.1", 'speaks protocol version "0.1"'), (None, "names no protocol version")):
            hello: dict[str, Any] = {"protocolVersion": version, "capabilities": {}}
            bench = await self.bench(fake_server(RAW=json.dumps({"initialize": answer(result=hello)})))
            await bench.proxy.gate.settled(60)
            self.assertIn(f"{named}; supported are 2024-11-05, ", bench.proxy.failures["fake"])

    async def test_list_that_cannot_be_read_leaves_the_others(self) -> None:
        agent = await self.raw(
            prompts_list=answer(result={"prompts": [float("nan")]}), resources_list=answer(result={})
        )
        self.assertIn("fake__echo", [t["name"] for t in (await agent.request("tools/list"))["result"]["tools"]])
        first, second = self.top.proxy.faults["fake"]
        self.assertRegex(first, "its answer to prompts/list cannot be read: .*NaN")
        self.assertEqual(second, "its answer to resources/list has no list of resources")

    async def test_result_that_clients_refuse_is_mended_and_named(self) -> None:
        agent = await self.raw(echo=answer(result={"content": [], "structuredContent": [1, 2]}))
        for _ in range(2):
            result = (await agent.call("fake__echo"))["result"]
            self.assertEqual(result["structuredContent"], {"result": [1, 2]})
            self.assertEqual(result["content"], [{"type": "text", "text": "[1,2]"}])
        (fault,) = self.top.proxy.faults["fake"]
        self.assertRegex(fault, "^tools/call echo: its result is wrong .*structuredContent")

    async def test_unreadable_answer_ends_its_call_with_the_reason(self) -> None:
        agent = await self.raw(
            echo=answer(result={"content": [], "structuredContent": {"v": float("nan")}}),
            fail='{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"cut',
            sleep=answer(error=None),
            where=answer(error="no\ttabs").replace("\\t", "\t"),
        )
        for tool, why in (("echo", "contains NaN"), ("fail", "not JSON"), ("sleep", "neither a result nor an error")):
            failed = await agent.call(f"fake__{tool}")
            self.assertEqual(code(failed), "backend-failed")
            self.assertIn("FAILED: MCP server fake sent an answer that cannot be read: it ", text(failed))
            self.assertIn(why, text(failed))
            self.assertTrue(any(why in line for _, line in self.top.errors))
        self.assertEqual((await agent.call("fake__where"))["error"], {"code": -32603, "message": "no\ttabs"})

    async def test_unreadable_handshake_is_why_a_server_is_down(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 60.0)
        bench = await self.bench(fake_server(RAW=json.dumps({"initialize": answer(result=[])})))
        await bench.proxy.gate.settled(60)
        self.assertIn("cannot be read: its result is not an object", bench.proxy.failures["fake"])

    async def test_starting_server_that_spoke_tells_why_it_is_not_ready(self) -> None:
        self.patch(restarting, "FIRST_DELAY", 0.01)
        script = "echo 'Please log in first'; exec sleep 600"
        self.patch(router, "START_SECONDS", 0.0)
        for seconds, why in ((600.0, "is not ready yet"), (3.0, "was not ready within 3 s")):
            mute = CommandServer("mute", "/bin/sh", ("-c", script), sandbox=None, start_seconds=seconds)
            bench = await self.bench(mute)
            said = f"{why}; instead of messages it sent 'Please log in first'"
            while said not in bench.proxy.failures.get("mute", ""):
                await sleep(0.02)
