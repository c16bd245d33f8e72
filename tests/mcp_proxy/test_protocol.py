"""The whole proxy on its socket, driven by a client that keeps to no rules: framing, ids, methods, names, lists."""

from __future__ import annotations

import fcntl
import json
import stat
from tempfile import NamedTemporaryFile
from typing import Any

from twisted.internet.defer import gatherResults
from twisted.trial.unittest import TestCase

from ironcurtain.jsonrpc.framing import INBOUND_LIMIT
from ironcurtain.mcp_proxy import router
from tests.mcp_proxy.support import HELLO, Bench, RawAgent, fake_server, memory, until


class Base(TestCase):
    """A proxy for each test."""

    def setUp(self) -> None:
        self.patch(router, "START_SECONDS", 60.0)  # servers may take their time

    async def bench(self, *servers: Any, **options: Any) -> Bench:
        """:returns: a proxy that is stopped after the test."""
        self.top = Bench(servers or [fake_server()], **options)
        self.addCleanup(self.top.stopped)
        return await self.top.start()

    async def agent(self, *servers: Any, **options: Any) -> RawAgent:
        """:returns: an agent of a new proxy."""
        return await (await self.bench(*servers, **options)).agent()


class FieldTests(Base):
    """Open in fields, closed in methods."""

    async def test_unknown_fields_survive_both_ways(self) -> None:
        agent = await self.agent()
        arguments: dict[str, Any] = {"big": 2**70, "float": 1.5, "none": None, "text": "é\u2028\\", "deep": [{"x": []}]}
        answer = await agent.call("fake__echo", arguments, unknown={"y": 1}, _meta={"traceparent": "t"})
        result = answer["result"]
        self.assertEqual(result["structuredContent"], {"got": arguments})
        self.assertEqual(result["x-unknown"], 2**70)
        sent = json.loads(result["content"][0]["text"])
        self.assertEqual(
            sent, {"unknown": {"y": 1}, "_meta": {"traceparent": "t"}, "name": "echo", "arguments": arguments}
        )
        listed = (await agent.request("tools/list"))["result"]["tools"][0]
        self.assertEqual(listed["x-unknown"], {"kept": [1.5, None, 2**70]})

    async def test_what_is_forwarded_is_what_was_judged(self) -> None:
        agent = await self.agent()
        agent.raw(
            b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"fake__crash","name":"fake__echo",'
            b'"arguments":{"a":1},"arguments":{"a":2,"a":3}}}\n'
        )
        answer = await agent.answer_to(9)
        self.assertEqual(json.loads(answer["result"]["content"][0]["text"]), {"name": "echo", "arguments": {"a": 3}})
        self.assertEqual(self.top.records("call")[-1]["arguments"], {"a": 3})

    async def test_a_server_sees_only_what_the_router_knows(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"))
        for method in (
            "x/batch",
            "tasks/list",
            "server/discover",
            "roots/list",
            "Tools/Call",
            "sampling/createMessage",
        ):
            answer = await agent.request(method, {"x": 1})
            self.assertEqual(answer["error"]["code"], -32601)
            agent.tell(method, {"x": 1})
        agent.tell("notifications/roots/list_changed")
        await agent.call("fake__echo", {}, task={}, inputResponses={"r": {"roots": []}}, requestState="s")
        seen = self.top.seen_by_server()
        lists = [*["tools/list"] * 4, "prompts/list", "resources/list", "resources/templates/list"]
        known = ["initialize", "notifications/initialized", *lists, "tools/call"]
        self.assertEqual([message["method"] for message in seen], known)
        self.assertEqual(seen[-1]["params"], {"name": "echo", "arguments": {}})

    async def test_unknown_notifications_of_a_server_pass(self) -> None:
        agent = await self.agent()
        await agent.call("fake__unknown_notice")
        notice = await agent.expect(lambda m: m.get("method") == "notifications/whatever")
        self.assertEqual(notice["params"], {"where": "/workspace", "x": 1.5})

    async def test_errors_of_a_server_are_kept(self) -> None:
        agent = await self.agent()
        answer = await agent.call("fake__error")
        error = {"code": -32050, "message": "refused in /workspace", "data": {"x-unknown": 1.5}}
        self.assertEqual(answer["error"], error)

    async def test_broken_text_of_a_server_is_mended(self) -> None:
        agent = await self.agent()
        for tool, text in (("badutf8", "caf\ufffd"), ("surrogate", "a\ufffd\\ud83d\U0001f600")):
            answer = await agent.call(f"fake__{tool}")
            self.assertEqual(answer["result"]["content"][0]["text"], text)


class FramingTests(Base):
    """Bytes in any slices, and what is no message."""

    async def test_slices_line_ends_and_empty_lines(self) -> None:
        agent = await self.agent()
        line = b'{"jsonrpc":"2.0","id":"%d","method":"ping"}'
        for byte in line % 1 + b"\r\n\n\r\n":
            agent.raw(bytes([byte]))
        agent.raw(line % 2 + b"\n" + line % 3 + b"\n" + line % 4)
        agent.raw(b"\n")
        for number in "1234":
            self.assertEqual((await agent.answer_to(number))["result"], {})

    async def test_what_is_no_message_is_answered_and_the_connection_lives(self) -> None:
        agent = await self.agent()
        for bad, code in (
            (b"{", -32700), (b"nonsense", -32700), (b"\xff\xfe", -32700), (b"[]", -32600), (b"7", -32600),
            (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'{"id":null,"method":"ping"}', -32600),
            (b"[" * 100_000 + b"]" * 100_000, -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        ):  # fmt: skip
            agent.raw(bad + b"\n")
            answer = await agent.answer_to(None)
            self.assertEqual(answer["error"]["code"], code, bad[:50])
        self.assertEqual((await agent.request("ping"))["result"], {})

    async def test_ids_of_all_kinds(self) -> None:
        agent = await self.agent()
        for identifier in (0, -5, 2**63 - 1, "", "7", "x" * 500):
            params = {"name": "fake__echo"}
            agent.send({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params})
            self.assertIn("result", await agent.answer_to(identifier))

    async def test_an_id_in_flight_is_refused(self) -> None:
        agent = await self.agent()
        for _ in range(2):
            params = {"name": "fake__sleep", "arguments": {"seconds": 0.3}}
            agent.send({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params})
        self.assertEqual((await agent.answer_to("a"))["error"]["code"], -32600)
        self.assertEqual((await agent.answer_to("a"))["result"]["content"][0]["text"], "slept")

    async def test_a_message_without_end_costs_little(self) -> None:
        agent = await self.agent()
        before, piece = memory(), b"x" * (1024 * 1024)
        for _ in range(30):  # many more would be taken for a line without an end
            agent.raw(piece)
            await until(lambda: agent.unsent() < 2 * len(piece), "the proxy to read")
        agent.raw(b"\n")
        self.assertEqual((await agent.answer_to(None))["error"]["code"], -32600)
        self.assertEqual((await agent.request("ping"))["result"], {})
        self.assertLess(memory() - before, 25 * 1024 * 1024)

    async def test_the_largest_message_passes(self) -> None:
        agent = await self.agent()
        text = "x" * (INBOUND_LIMIT - 1000)
        answer = await agent.call("fake__echo", {"text": text})
        self.assertEqual(answer["result"]["structuredContent"]["got"]["text"], text)


class LifecycleTests(Base):
    """The handshake."""

    async def test_the_socket_is_for_its_owner_only(self) -> None:
        await self.bench()
        self.assertEqual(stat.S_IMODE(self.top.socket.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.top.socket.parent.stat().st_mode), 0o700)

    async def test_order_and_versions(self) -> None:
        bench = await self.bench()
        agent = await bench.agent(hello=False)
        self.assertEqual((await agent.request("ping"))["result"], {})
        self.assertEqual((await agent.request("tools/list"))["error"]["code"], -32600)
        self.assertEqual((await agent.request("server/discover"))["error"]["code"], -32602)
        hello = (await agent.request("initialize", {**HELLO, "protocolVersion": "2024-11-05"}))["result"]
        self.assertEqual(hello["protocolVersion"], "2024-11-05")
        self.assertEqual((await agent.request("initialize", HELLO))["error"]["code"], -32600)
        newer = await bench.agent(hello=False)
        hello = (await newer.request("initialize", {**HELLO, "protocolVersion": "2026-07-28"}))["result"]
        self.assertEqual(hello["protocolVersion"], "2025-11-25")

    async def test_capabilities_and_instructions_are_merged(self) -> None:
        bench = await self.bench(fake_server("a", INSTRUCTIONS="first\x1b[2J"), fake_server("b", INSTRUCTIONS="second"))
        hello = await (await bench.agent(hello=False)).hello()
        self.assertEqual(set(hello["capabilities"]), {"tools", "resources", "prompts", "logging", "completions"})
        self.assertEqual(hello["capabilities"]["tools"], {"listChanged": True})
        self.assertEqual(hello["instructions"], "# a\n\nfirst\\x1b[2J\n\n# b\n\nsecond")
        self.assertEqual(hello["serverInfo"]["name"], "ironcurtain")

    async def test_a_slow_server_is_not_waited_for(self) -> None:
        self.patch(router, "START_SECONDS", 0.5)
        with NamedTemporaryFile() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            bench = await self.bench(fake_server("slow", HELD_BY=held.name), fake_server("fast"))
            agent = await bench.agent(hello=False)
            hello = await agent.hello()
            self.assertIn("resources", hello["capabilities"])
            self.assertEqual(await self.servers(agent, "fast"), {"fast"})
        self.assertEqual(await self.servers(agent, "slow"), {"fast", "slow"})

    async def servers(self, agent: RawAgent, awaited: str) -> set[str]:
        """:returns: whose tools are listed, as soon as one server's are among them: its changes are announced."""
        while True:
            tools = (await agent.request("tools/list"))["result"]["tools"]
            if awaited in (found := {tool["name"].partition("__")[0] for tool in tools}):
                return found
            await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")

    async def test_a_server_is_never_told_that_the_agent_can_do_what_it_cannot(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"))
        await agent.call("fake__echo")
        self.assertEqual(self.top.seen_by_server()[0]["params"]["capabilities"].keys(), {"elicitation"})  # a person can
        self.assertEqual(self.top.seen_by_server()[0]["params"]["protocolVersion"], "2025-11-25")


class NameTests(Base):
    """Names are matched exactly."""

    async def test_names_are_matched_exactly(self) -> None:
        agent = await self.agent()
        wrong = (
            "fake__Echo",
            "fake__echo ",
            " fake__echo",
            "echo",
            "fake/echo",
            "fake__../echo",
            "fake__echo\x00",
            "",
            "x" * 9999,
        )
        for name in wrong:
            answer = await agent.call(name)
            self.assertEqual(answer["error"]["code"], -32602, name[:50])
        for params in (
            {},
            {"name": 7},
            {"name": "fake__echo", "arguments": []},
            {"name": "fake__echo", "arguments": None},
        ):
            self.assertEqual((await agent.request("tools/call", params))["error"]["code"], -32602)
        calls = self.top.records("call")
        self.assertEqual([record["decision"] for record in calls], ["deny"] * len(wrong))
        self.assertEqual({record["rule"] for record in calls}, {"unknown-tool"})

    async def test_odd_names_find_their_tool(self) -> None:
        agent = await self.agent()
        names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
        (odd,) = (name for name in names if name.startswith("fake__odd_result"))
        answer = await agent.call(odd)
        self.assertEqual(answer["result"]["content"][0]["text"], "odd result was called")

    async def test_two_servers_may_have_the_same_tools(self) -> None:
        agent = await self.agent(fake_server("a"), fake_server("b"))
        one, two = await gatherResults([agent.request("tools/call", {"name": f"{s}__environment"}) for s in "ab"])
        processes = {json.loads(answer["result"]["content"][0]["text"])["pid"] for answer in (one, two)}
        self.assertEqual(len(processes), 2)


class ListTests(Base):
    """Lists, pages, changes."""

    async def test_all_pages_of_a_server_are_one_list(self) -> None:
        agent = await self.agent(fake_server(EXTRA="1000"))
        result = (await agent.request("tools/list"))["result"]
        self.assertGreater(len(result["tools"]), 1000)
        self.assertNotIn("nextCursor", result)

    async def test_long_lists_have_cursors_of_ours(self) -> None:
        self.patch(router, "PAGE", 10)
        agent = await self.agent()
        names, cursor = [], None
        while True:
            result = (await agent.request("tools/list", {} if cursor is None else {"cursor": cursor}))["result"]
            names += [tool["name"] for tool in result["tools"]]
            cursor = result.get("nextCursor")
            if cursor is None:
                break
            self.assertEqual(len(result["tools"]), 10)
        self.assertEqual(names, list(self.top.proxy.gate._backends.catalogue.tools))
        for wrong in ("7", "0:5", 7, "", None):
            answer = await agent.request("tools/list", {"cursor": wrong})
            self.assertEqual("error" in answer, wrong is not None, wrong)

    async def test_a_changed_list_is_told_and_fetched(self) -> None:
        agent = await self.agent()
        await agent.call("fake__rename")
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
        self.assertIn("fake__renamed", names)
        self.assertIn("result", await agent.call("fake__renamed"))


class OtherMethodTests(Base):
    """Resources, prompts, completion, logging: under the same rules."""

    async def test_resources(self) -> None:
        agent = await self.agent()
        listed = (await agent.request("resources/list"))["result"]["resources"]
        uris = [resource["uri"] for resource in listed]
        self.assertEqual(uris, ["test://static", "file:///workspace/notes.txt", "file:///etc/shadow"])
        self.assertEqual(listed[0]["x-unknown"], 1)
        self.assertEqual(listed[1]["name"], "notes in /workspace")
        read = (await agent.request("resources/read", {"uri": uris[1]}))["result"]
        self.assertEqual(read["contents"][0], {"uri": uris[1], "text": f"content of {uris[1]}"})
        self.assertTrue(read["x-unknown"])
        templated = await agent.request("resources/read", {"uri": "test://items/7"})
        self.assertEqual(templated["result"]["contents"][0]["uri"], "test://items/7")
        unknown = await agent.request("resources/read", {"uri": "test://other"})
        self.assertEqual(unknown["error"]["code"], -32002)

    async def test_resources_are_judged_like_files_that_are_read(self) -> None:
        bench = await self.bench(fake_server("filesystem", RECORD="record"), rest=False)
        agent = await bench.agent()
        for method in ("resources/read", "resources/subscribe"):
            for uri in ("file:///etc/shadow", "test://static", "test://items/../../etc/shadow"):
                answer = await agent.request(method, {"uri": uri})
                self.assertEqual(answer["error"]["code"], -32001, uri)
                self.assertEqual(answer["error"]["data"]["ironcurtain/code"], "denied-by-rule")
        allowed = await agent.request("resources/read", {"uri": "file:///workspace/notes.txt"})
        self.assertIn("result", allowed)
        methods = [message["method"] for message in bench.seen_by_server()]
        self.assertEqual(methods.count("resources/read"), 1)
        self.assertNotIn("resources/subscribe", methods)
        denied = [record for record in bench.records("call") if record["decision"] == "deny"]
        self.assertEqual(len(denied), 6)

    async def test_updates_reach_those_who_subscribed(self) -> None:
        bench = await self.bench(fake_server(RECORD="record"))
        one, two = await bench.agent(), await bench.agent()
        self.assertEqual((await one.request("resources/subscribe", {"uri": "test://static"}))["result"], {})
        await two.call("fake__unknown_notice")
        await one.expect(lambda m: m.get("method") == "notifications/resources/updated")
        self.assertFalse([m for m in two.messages if m.get("method") == "notifications/resources/updated"])
        await one.request("resources/unsubscribe", {"uri": "test://static"})
        methods = [message["method"] for message in bench.seen_by_server()]
        self.assertEqual(methods.count("resources/unsubscribe"), 1)

    async def test_prompts_and_completion(self) -> None:
        agent = await self.agent()
        (prompt,) = (await agent.request("prompts/list"))["result"]["prompts"]
        self.assertEqual((prompt["name"], prompt["x-unknown"]), ("fake__greet", 1))
        got = await agent.request("prompts/get", {"name": "fake__greet", "arguments": {"who": "you"}, "x": 1})
        sent = json.loads(got["result"]["messages"][0]["content"]["text"])
        self.assertEqual(sent, {"name": "greet", "arguments": {"who": "you"}, "x": 1})
        self.assertEqual((await agent.request("prompts/get", {"name": "greet"}))["error"]["code"], -32602)
        for reference in (
            {"type": "ref/prompt", "name": "fake__greet"},
            {"type": "ref/resource", "uri": "test://items/{id}"},
        ):
            params = {"ref": reference, "argument": {"name": "who", "value": "y"}}
            done = (await agent.request("completion/complete", params))["result"]["completion"]["values"]
            own = {**reference, "name": "greet"} if "name" in reference else reference
            self.assertEqual(json.loads(done[0])["ref"], own)
        self.assertEqual((await agent.request("completion/complete", {"ref": {"name": "x"}}))["error"]["code"], -32602)
        audited = [record["tool"] for record in self.top.records("call")]
        self.assertEqual(audited, ["prompts/get", "completion/complete", "completion/complete"])

    async def test_log_levels_reach_the_servers(self) -> None:
        agent = await self.agent(fake_server(RECORD="record"))
        self.assertEqual((await agent.request("logging/setLevel", {"level": "error"}))["result"], {})
        self.assertEqual(self.top.seen_by_server()[-1]["params"], {"level": "error"})
        self.assertEqual((await agent.request("logging/setLevel", {}))["error"]["code"], -32602)
