"""Connections of revision 2026-07-28, which have no handshake: the protocol's state, and on the proxy's socket."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ListToolsResult
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import Outcome
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy import envelope
from ironcurtain.mcp_proxy.envelope import (
    CAPABILITIES_KEY,
    HANDSHAKE_ONLY,
    LEVEL_KEY,
    MODERN_VERSION,
    SERVER_KEY,
    SUBSCRIPTION_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_KEY,
)
from ironcurtain.mcp_proxy.modern_link import ROUNDS
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.mcp_proxy.session import AgentSession, Start
from tests.mcp_proxy.support import RawAgent, fake_server, until
from tests.mcp_proxy.test_calls import text
from tests.mcp_proxy.test_protocol import Base
from tests.mcp_proxy.test_session import HELLO, message, request, sent

METHODS = frozenset(("tools/list", "tools/call", "server/discover", "subscriptions/listen", *HANDSHAKE_ONLY))
MODERN_SERVER = Path(__file__).with_name("modern_server.py")
META = {VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: {}}

json_values = st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=3)
members = st.dictionaries(st.text(), json_values, max_size=3)


class EnvelopeTests(SynchronousTestCase):
    """Requests and results of the revision."""

    @given(members)
    def test_the_envelope_is_all_that_is_removed(self, params: dict[str, Any]) -> None:
        for name in ("_meta", "inputResponses", "requestState"):
            params.pop(name, None)
        self.assertEqual(envelope.opened({**params, "_meta": META}), (params, ""))
        kept = {"progressToken": 1, "x": None}
        self.assertEqual(envelope.opened({**params, "_meta": {**META, **kept}})[0], {**params, "_meta": kept})
        self.assertEqual(envelope.opened(envelope.enveloped(params, {"x": {}}))[0], params)

    @given(members)
    def test_every_result_is_complete_and_else_unchanged(self, result: dict[str, Any]) -> None:
        result.pop("_meta", None)
        done = json.loads(envelope.completed("tools/call", codec.encode({**result, "_meta": {"x": [1.5]}})))
        self.assertEqual(done.pop("_meta"), {"x": [1.5], SERVER_KEY: dict(envelope.IDENTITY)})
        self.assertEqual(done, {**result, "resultType": "complete"})

    def test_a_server_cannot_ask_through_a_result(self) -> None:
        asking = b'{"resultType":"input_required","inputRequests":{},"_meta":null}'
        self.assertEqual(json.loads(envelope.completed("tools/call", asking))["resultType"], "complete")

    def test_what_may_be_kept_says_how_long(self) -> None:
        answer = ListToolsResult.model_validate_json(envelope.completed("tools/list", b'{"tools":[],"ttlMs":7}'))
        self.assertEqual((answer.ttl_ms, answer.cache_scope), (7, "private"))

    def test_no_object_is_no_result(self) -> None:
        for raw in (b"[]", b"1", b'{"_meta":3}'):
            self.assertRaises(codec.InvalidMessage, envelope.completed, "tools/call", raw)


class SessionTests(SynchronousTestCase):
    """The protocol state of a connection without a handshake."""

    def setUp(self) -> None:
        self.session = AgentSession(METHODS)

    def start(self, identifier: Any, method: str, meta: Any = META, **params: Any) -> Start:
        """:returns: what a request starts."""
        command = self.session.receive(request(identifier, method, {**params, "_meta": meta}))
        assert isinstance(command, Start), command
        return command

    def error(self, method: str, params: Any) -> dict[str, Any]:
        """:returns: the error that a request is answered with."""
        return dict(sent(self.session.receive(request("wrong", method, params)))["error"])

    def test_the_first_request_decides(self) -> None:
        started = self.start(1, "tools/call", name="x")
        self.assertEqual((started.params, self.session.version), ({"name": "x"}, MODERN_VERSION))
        self.assertEqual(self.session.client, {})
        refused = self.error("initialize", HELLO)
        self.assertEqual(
            (refused["code"], refused["data"]["supported"]), (UNSUPPORTED_PROTOCOL_VERSION, [MODERN_VERSION])
        )
        for method in sorted(HANDSHAKE_ONLY - {"initialize"}):
            self.assertEqual(self.error(method, {"_meta": META})["code"], codec.METHOD_NOT_FOUND)

    def test_after_a_handshake_no_request_has_an_envelope(self) -> None:
        self.session.receive(request(1, "initialize", HELLO))
        self.assertEqual(self.error("tools/list", {"_meta": META})["code"], codec.INVALID_REQUEST)
        self.assertEqual(self.error("server/discover", {})["code"], codec.METHOD_NOT_FOUND)
        self.assertIsInstance(self.session.receive(request(2, "tools/list")), Start)

    def test_an_initialize_with_an_envelope_is_a_handshake(self) -> None:
        self.assertIsInstance(self.session.receive(request(1, "initialize", {**HELLO, "_meta": META})), Start)
        self.assertFalse(self.session.modern)

    def test_what_ended_with_the_handshake_is_unknown_at_the_beginning_too(self) -> None:
        for method in sorted(HANDSHAKE_ONLY):
            self.assertEqual(self.error(method, {"_meta": META})["code"], codec.METHOD_NOT_FOUND)
        self.assertEqual(self.error("server/discover", {})["code"], codec.INVALID_PARAMS)
        self.assertEqual(self.session.version, "")

    def test_each_request_needs_its_envelope(self) -> None:
        wrong: list[tuple[Any, int]] = [
            ({VERSION_KEY: "2027-01-01", CAPABILITIES_KEY: {}}, UNSUPPORTED_PROTOCOL_VERSION),
            ({VERSION_KEY: 7, CAPABILITIES_KEY: {}}, UNSUPPORTED_PROTOCOL_VERSION),
            ({VERSION_KEY: MODERN_VERSION}, codec.INVALID_PARAMS),
            ({VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: []}, codec.INVALID_PARAMS),
        ]
        for meta, code in wrong:
            self.assertEqual(self.error("tools/list", {"_meta": meta})["code"], code)
            self.assertEqual(self.session.version, "")
        self.start(1, "tools/list")
        self.assertEqual(self.error("tools/list", {})["code"], codec.INVALID_PARAMS)

    def test_answers_to_questions_that_nobody_asked_are_refused(self) -> None:
        for name in ("inputResponses", "requestState"):
            self.assertEqual(self.error("tools/call", {"_meta": META, name: {}})["code"], codec.INVALID_PARAMS)

    def test_notifications_go_to_those_who_listen(self) -> None:
        changed, updated = "notifications/tools/list_changed", "notifications/resources/updated"
        self.assertEqual(self.session.notices(changed, None), [])
        wanted = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["a", "b"]}
        started = self.start("one", "subscriptions/listen", notifications=wanted)
        accepted = envelope.read_filter(started.params)._replace(uris=frozenset("a"))
        confirmed = sent(self.session.listen(started.key, accepted))
        self.assertEqual(confirmed["method"], "notifications/subscriptions/acknowledged")
        self.assertEqual(
            confirmed["params"]["notifications"], {"toolsListChanged": True, "resourceSubscriptions": ["a"]}
        )
        (line,) = self.session.notices(changed, None)
        self.assertEqual(sent(line)["params"], {"_meta": {SUBSCRIPTION_KEY: "one"}})
        (line,) = self.session.notices(updated, b'{"uri":"a","_meta":{"x":1}}')
        self.assertEqual(sent(line)["params"], {"uri": "a", "_meta": {"x": 1, SUBSCRIPTION_KEY: "one"}})
        for method, params in (
            ("notifications/prompts/list_changed", b"{}"),
            (updated, b'{"uri":"b"}'),
            (updated, b"["),
        ):
            self.assertEqual(self.session.notices(method, params), [])
        self.assertTrue(self.session.listens_to("a"))
        self.session.receive(message(method="notifications/cancelled", params={"requestId": "one"}))
        self.assertEqual((self.session.notices(changed, None), self.session.listens_to("a")), ([], False))
        self.assertIsNone(self.session.listen(started.key, accepted))

    def test_log_messages_are_sent_while_a_request_asks_for_them(self) -> None:
        error, debug = ((b'{"level":"%b","data":1}' % level) for level in (b"error", b"debug"))
        started = self.start(1, "tools/call", {**META, LEVEL_KEY: "warning"})
        self.assertEqual(len(self.session.notices("notifications/message", error)), 1)
        for params in (debug, b'{"level":"x"}', None):
            self.assertEqual(self.session.notices("notifications/message", params), [])
        self.session.finish(started.key, b"{}")
        self.assertEqual(self.session.notices("notifications/message", error), [])

    def test_a_result_that_is_none_is_an_error(self) -> None:
        started = self.start(1, "tools/call")
        self.assertEqual(sent(self.session.finish(started.key, b"[]"))["error"]["code"], codec.INTERNAL_ERROR)

    def test_filters_have_a_limit(self) -> None:
        many = ["x"] * (envelope.SUBSCRIPTIONS_LIMIT + 1)
        filters: list[Any] = [{"resourceSubscriptions": many}, {"resourceSubscriptions": [1]}, [], None, "x"]
        for wrong in filters:
            self.assertRaises(envelope.BadEnvelope, envelope.read_filter, {"notifications": wrong})


class SocketTests(Base):
    """On the proxy's socket."""

    async def listening(self, agent: RawAgent, **wanted: Any) -> tuple[int, dict[str, Any]]:
        """:returns: the id of a request that listens, and what it was granted."""
        agent.send(
            {
                "jsonrpc": "2.0",
                "id": 77,
                "method": "subscriptions/listen",
                "params": {"notifications": wanted, "_meta": META},
            }
        )
        confirmed = await agent.expect(lambda m: m.get("method") == "notifications/subscriptions/acknowledged")
        return 77, confirmed["params"]["notifications"]

    async def test_discovery_and_a_call(self) -> None:
        agent = await (await self.bench(fake_server())).agent(hello=False)
        found = (await agent.request("server/discover", {"_meta": META}))["result"]
        self.assertEqual((found["supportedVersions"], found["resultType"]), ([MODERN_VERSION], "complete"))
        self.assertIn("resources", found["capabilities"])
        answer = await agent.call("fake__echo", {"a": 1}, _meta=META)
        self.assertEqual(answer["result"]["structuredContent"], {"got": {"a": 1}})
        self.assertEqual(json.loads(answer["result"]["content"][0]["text"]), {"name": "echo", "arguments": {"a": 1}})
        missing = await agent.request("resources/read", {"uri": "test://none", "_meta": META})
        self.assertEqual(missing["error"]["code"], codec.INVALID_PARAMS)

    async def test_a_call_is_enough_to_begin(self) -> None:
        agent = await (await self.bench(fake_server())).agent(hello=False)
        answer = await agent.call("fake__echo", {"a": 1}, _meta=META)
        self.assertEqual(answer["result"]["resultType"], "complete")

    async def test_changes_are_sent_to_those_who_listen(self) -> None:
        bench = await self.bench(fake_server(RECORD="record"))
        agent = await bench.agent(hello=False)
        number, granted = await self.listening(
            agent, toolsListChanged=True, resourceSubscriptions=["test://static", "test://none"]
        )
        self.assertEqual(granted, {"toolsListChanged": True, "resourceSubscriptions": ["test://static"]})
        await agent.call("fake__rename", {}, _meta=META)
        changed = await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        self.assertEqual(changed["params"]["_meta"], {SUBSCRIPTION_KEY: number})
        agent.tell("notifications/cancelled", {"requestId": number})
        await agent.call("fake__echo", {}, _meta=META)
        self.assertIn("resources/unsubscribe", [each["method"] for each in bench.seen_by_server()])


class ServerTests(Base):
    """A server without a handshake, behind the proxy."""

    async def joined(self, **options: Any) -> RawAgent:
        """:returns: an agent of a proxy for that server."""
        server = CommandServer("modern", sys.executable, ("-S", str(MODERN_SERVER)), sandbox=None)
        bench = await self.bench(server, annotate={"insist": {}, "sample": {}}, **options)
        await bench.proxy.gate.settled(60)
        return await bench.agent()

    async def test_calls_and_changes(self) -> None:
        agent = await self.joined()
        self.assertEqual(text(await agent.call("modern__echo", {"a": 1})), '{"name": "echo", "arguments": {"a": 1}}')
        await agent.call("modern__change")
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        self.assertFalse([m for m in agent.messages if "subscriptions" in m.get("method", "")])

    async def test_a_person_answers_its_questions(self) -> None:
        agent = await self.joined()
        self.top.fill_in({"x": 1})
        answer = await agent.call("modern__ask")
        self.assertEqual(json.loads(text(answer)), {"q": {"action": "accept", "content": {"x": 1}}})
        (closed,) = self.top.escalations.history()
        self.assertEqual((closed.request.server, closed.request.arguments["message"]), ("modern", "Which?"))
        self.assertEqual([r["tool"] for r in self.top.records("question")], ["elicitation/create"])

    async def test_its_question_ends_with_the_call(self) -> None:
        agent = await self.joined()
        agent.request("tools/call", {"name": "modern__ask", "arguments": {}}).addErrback(lambda _: None)
        await self.top.pending()
        agent.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: not self.top.escalations.pending(), "the end of the question")
        self.assertIs(self.top.escalations.history()[0].outcome, Outcome.WITHDRAWN)

    async def test_it_may_not_use_the_agents_model(self) -> None:
        answer = await (await self.joined()).call("modern__sample")
        self.assertIn("sampling is not allowed", json.dumps(answer))

    async def test_it_does_not_ask_for_ever(self) -> None:
        agent = await self.joined()
        self.top.fill_in({})
        answer = await agent.call("modern__insist")
        self.assertIn(f"more than {ROUNDS} times", json.dumps(answer))
        self.assertEqual(len(self.top.records("question")), ROUNDS)
