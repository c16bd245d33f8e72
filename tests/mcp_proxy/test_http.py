"""Servers that are reached by HTTP: a real one, and one that lies."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import HTTPError

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.web.server import Site

from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy import http_channel, http_transport
from ironcurtain.mcp_proxy.servers_config import HttpServer
from ironcurtain.secrets.redaction import Secret
from tests.audit.doubles import scratch
from tests.mcp_proxy.liar import KEY, Liar
from tests.mcp_proxy.support import Bench, RawAgent, the_reactor, threads_are_over, until
from tests.mcp_proxy.test_calls import code, text
from tests.mcp_proxy.test_protocol import Base
from tests.model_stub.certificates import Authority
from tests.ports import free_port

HTTP_SERVER = Path(__file__).with_name("http_server.py")


def start(listener: socket.socket, *options: str) -> tuple[HttpServer, subprocess.Popen[bytes]]:
    """:returns: how to reach a new server, and its process."""
    fd = listener.fileno()
    process = subprocess.Popen([sys.executable, str(HTTP_SERVER), str(fd), *options], pass_fds=[fd])
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    return HttpServer("far", Secret(url), {"X-Api-Key": Secret(KEY)}, {"Authorization": "one"}), process


class RealTests(Base):
    """The official SDK's server, in processes of its own; tests that do not change one share it."""

    shared: ClassVar[dict[tuple[str, ...], HttpServer]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.shared = {}

    def serve(self, *options: str, listener: socket.socket | None = None) -> HttpServer:
        """:returns: how to reach a new server, which ends with the test."""
        self.listener = listener or socket.create_server(("127.0.0.1", free_port()))
        self.listener_name = self.listener.getsockname()
        self.addCleanup(self.listener.close)
        server, self.server = start(self.listener, *options)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        return server

    def shared_server(self, *options: str) -> HttpServer:
        """:returns: how to reach a server that ends with the class."""
        if options not in self.shared:
            with socket.create_server(("127.0.0.1", free_port())) as listener:
                server, process = start(listener, *options)
            self.addClassCleanup(process.wait)
            self.addClassCleanup(process.kill)
            self.shared[options] = server
        return self.shared[options]

    async def far(self, *options: str, alone: bool = False, **more: Any) -> RawAgent:
        """
        :param alone: whether no other test may use the server, as this one changes or ends it.
        :returns: an agent before a server that is up.
        """
        known: dict[str, tuple[str, ...]] = {"value": ("none",), "size": ("none",)}
        server = self.serve(*options) if alone else self.shared_server(*options)
        bench = await self.bench(server, annotate={"echo": known, "big": known}, **more)
        await bench.proxy.gate.settled(60)
        return await bench.agent()

    async def test_calls_are_judged_and_answered(self) -> None:
        for options in ((), ("--json",), ("--json", "--handshake")):
            agent = await self.far(*options, deny=["crash"])
            self.assertEqual(text(await agent.call("far__echo", {"value": "é ☃ x"})), "é ☃ x")
            self.assertIn("deny-crash", text(await agent.call("far__crash")))
            self.assertEqual(self.top.records("call")[0]["arguments"], {"value": "é ☃ x"})
            listed = (await agent.request("tools/list"))["result"]["tools"]
            self.assertIn("far__echo", [tool["name"] for tool in listed])
            self.assertEqual(text(await agent.call("far__echo", {"value": "still there"})), "still there")

    async def test_headers_reach_it_and_no_log(self) -> None:
        agent = await self.far()
        headers = json.loads(text(await agent.call("far__environment")))["headers"]
        names = ("mcp-protocol-version", "mcp-method", "mcp-name")
        self.assertEqual([headers[name] for name in names], ["2026-07-28", "tools/call", "environment"])
        self.assertNotIn("mcp-session-id", headers)
        self.assertEqual((headers["x-api-key"], headers["authorization"]), (KEY, "secret of one"))
        await agent.call("far__echo", {"value": f"{KEY} and {'secret of one'}"})
        (arguments,) = [record["arguments"] for record in self.top.records("call")[1:]]
        self.assertEqual(arguments, {"value": "[redacted] and [redacted]"})

    async def test_progress_is_passed_on(self) -> None:
        agent = await self.far()
        answer = await agent.call("far__progress", {}, _meta={"progressToken": "p"})
        self.assertEqual(text(answer), "done")
        steps = [m["params"]["message"] for m in agent.messages if m["method"] == "notifications/progress"]
        self.assertEqual(steps, ["step 1", "step 2", "step 3"])

    async def test_a_cancelled_call_is_cancelled_there(self) -> None:
        for options in ((), ("--handshake",)):
            agent = await self.far(*options)
            agent.send({"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params": {"name": "far__sleep"}})
            await agent.call("far__echo", {"value": "x"})
            agent.tell("notifications/cancelled", {"requestId": "s"})
            for _ in range(200):
                if text(await agent.call("far__stubborn")) == '["sleep"]':
                    break
            else:
                self.fail("the server never heard of it")

    async def test_it_may_ask_a_person(self) -> None:
        agent = await self.far("--handshake")
        self.top.fill_in({"name": "Ada"})
        self.assertIn("Ada", text(await agent.call("far__ask")))

    async def test_changed_lists_are_heard_of(self) -> None:
        for options in ((), ("--handshake",)):
            agent = await self.far(*options, alone=True)
            await agent.call("far__change")
            await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
            listed = (await agent.request("tools/list"))["result"]["tools"]
            self.assertIn("far__renamed", [tool["name"] for tool in listed])

    async def test_a_large_result(self) -> None:
        agent = await self.far()
        self.assertEqual(len(text(await agent.call("far__big", {"size": 5 * 1024 * 1024}))), 5 * 1024 * 1024)

    async def test_a_crash_is_told_and_mended(self) -> None:
        agent = await self.far(alone=True)
        self.assertEqual(code(await agent.call("far__crash")), "backend-failed")
        self.server.wait()
        self.listener.close()
        self.assertEqual(code(await agent.call("far__echo", {"value": "x"})), "backend-failed")
        await until(lambda: "cannot be reached" in "".join(line for _, line in self.top.errors), "the reason")
        self.serve(listener=socket.create_server(self.listener_name))
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        self.assertEqual(text(await agent.call("far__echo", {"value": "again"})), "again")

    async def test_the_session_there_ends_with_ours(self) -> None:
        bench = Bench([self.serve("--handshake")])
        await bench.start()
        await bench.proxy.gate.settled(60)
        headers = json.loads(text(await (await bench.agent()).call("far__environment")))["headers"]
        await bench.stop()
        self.assertEqual(bench.errors, [])
        names = ("accept", "content-type", "mcp-session-id", "mcp-protocol-version")
        again = urllib.request.Request(
            f"http://127.0.0.1:{self.listener_name[1]}/mcp",
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
            {name: headers[name] for name in names},
        )
        failed = await self.assertFailure(deferToThread(urllib.request.urlopen, again, None, 30), HTTPError)
        failed.close()
        self.assertEqual(failed.code, 404)


class LyingCase(Base):
    """A server with TLS that has habits."""

    def setUp(self) -> None:
        super().setUp()
        self.authority, self.liar = Authority.make(), Liar()
        self.ca_file = str(scratch(self) / "ca.pem")
        Path(self.ca_file).write_bytes(self.authority.pem)
        self.addCleanup(threads_are_over)

    def lying(
        self,
        path: str,
        ca_file: str | None = None,
        host: str = "127.0.0.1",
        names: Sequence[str] = ("127.0.0.1",),
        **more: Any,
    ) -> HttpServer:
        """:returns: how to reach a server that has a habit."""
        factory = TLSMemoryBIOFactory(self.authority.server(*names), False, Site(self.liar))
        port = the_reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        url = f"https://{host}:{port.getHost().port}/{path}?api_key={KEY}"
        return HttpServer("far", Secret(url), ca_file=self.ca_file if ca_file is None else ca_file, **more)


class LiarTests(LyingCase):
    """What a server may do to us."""

    async def called(self, path: str) -> dict[str, Any]:
        """:returns: what a call of a server with a habit gives."""
        bench = await self.bench(self.lying(path))
        await bench.proxy.gate.settled(60)
        return await (await bench.agent()).call("far__echo")

    async def log(self, server: HttpServer) -> str:
        """:returns: what the log says first of a server."""
        bench = await self.bench(server)
        await until(lambda: bool(bench.errors), "a line in the log")
        return "\n".join(line for _, line in bench.errors)

    async def test_the_revision_and_the_session_are_named(self) -> None:
        answer = await self.called("long")
        self.assertEqual(len(text(answer)), 100_000)
        probe, first, *others = (headers for method, _, headers in self.liar.seen if method == b"POST")
        self.assertEqual(probe.getRawHeaders("mcp-protocol-version"), ["2026-07-28"])
        self.assertFalse(first.hasHeader("mcp-session-id") or first.hasHeader("mcp-protocol-version"))
        for headers in others:
            self.assertEqual(headers.getRawHeaders("mcp-session-id"), ["s2"])
            self.assertFalse(headers.hasHeader("mcp-method"))
            self.assertEqual(headers.getRawHeaders("mcp-protocol-version"), ["2025-06-18"])
        await self.top.proxy.stop()
        self.assertIn(b"DELETE", [method for method, _, _ in self.liar.seen])

    async def test_a_certificate_nobody_knows(self) -> None:
        self.assertIn("its certificate is not valid", await self.log(self.lying("long", "")))
        self.assertEqual(self.liar.seen, [])

    async def test_a_certificate_for_another_name(self) -> None:
        self.assertIn("its certificate is not valid", await self.log(self.lying("long", host="localhost")))

    async def test_a_file_that_is_no_certificate(self) -> None:
        self.assertIn("contains no PEM certificate", await self.log(self.lying("long", os.devnull)))

    async def test_nobody_listens(self) -> None:
        said = await self.log(HttpServer("far", Secret("https://127.0.0.1:1/mcp")))
        self.assertIn("cannot be reached: check its url and the network", said)
        for foreign in ("Errno", "attempts", "TLS"):
            self.assertNotIn(foreign, said)

    async def test_other_places_are_not_followed_to(self) -> None:
        said = await self.log(self.lying("redirect", headers={"X-Key": Secret(KEY)}))
        self.assertIn("which is not followed", said)
        self.assertNotIn(KEY, said)

    async def test_a_redirect_within_the_server_is_followed(self) -> None:
        self.assertEqual(len(text(await self.called("slash"))), 100_000)

    async def test_a_redirect_with_much_behind_it_is_not_read_to_its_end(self) -> None:
        for module in (http_channel, http_transport):
            self.patch(module, "OUTBOUND_LIMIT", 50_000)
        self.assertIn("more than 50000 bytes", await self.log(self.lying("drain")))

    async def test_moved_endpoint_gets_the_same_message(self) -> None:
        for path in ("moved", "found"):
            self.assertEqual(len(text(await self.called(path))), 100_000)

    async def test_refused_redirect_gives_the_reason_without_its_address(self) -> None:
        for path, why in (
            ("redirect", "it redirects to another origin, https://127.0.0.2:1, which is not followed"),
            ("see-other", "it redirects by HTTP status 303, which does not keep the message"),
            ("nowhere", "it redirects (HTTP status 308) without a valid address"),
            ("somebody", "it redirects to an address with a user name"),
        ):
            said = await self.log(self.lying(path))
            self.assertIn(why, said)
            self.assertNotIn(KEY, said)

    async def test_streams_are_not_opened_all_the_time_nor_cookies_kept(self) -> None:
        self.patch(http_transport, "STREAM_SECONDS", 0.2)
        began = the_reactor.seconds()
        answer = await self.called("streams")
        self.assertIn("result", answer)
        await until(lambda: sum(method == b"GET" for method, _, _ in self.liar.seen) > 2, "three streams")
        streams = [headers for method, _, headers in self.liar.seen if method == b"GET"]
        self.assertFalse(any(headers.hasHeader("cookie") for headers in streams))
        self.assertLess(len(streams), (the_reactor.seconds() - began) / http_transport.STREAM_SECONDS + 3)

    async def test_a_subscription_that_ends_is_renewed_but_not_all_the_time(self) -> None:
        self.patch(http_transport, "STREAM_SECONDS", 0.2)
        began = the_reactor.seconds()
        bench = await self.bench(self.lying("modern"))
        await bench.proxy.gate.settled(60)

        def streams() -> int:
            methods = (headers.getRawHeaders("mcp-method") for _, _, headers in self.liar.seen)
            return sum(method == ["subscriptions/listen"] for method in methods)

        await until(lambda: streams() > 2, "three streams")
        self.assertLess(streams(), (the_reactor.seconds() - began) / http_transport.STREAM_SECONDS + 3)
        self.assertNotIn("initialize", [headers.getRawHeaders("mcp-method") for _, _, headers in self.liar.seen])

    async def test_questions_without_end_to_which_it_takes_no_answers(self) -> None:
        self.patch(http_channel, "UNSENT_LIMIT", 1000)
        ping = b'data: {"jsonrpc":"2.0","id":%d,"method":"ping"}\n\n'
        self.liar.questions = b"".join(ping % number for number in range(1000))
        bench = await self.bench(self.lying("streams"))
        await until(lambda: ("far", "does not read its input") in bench.errors, "the reason")

    async def test_a_notification_that_is_not_answered_holds_up_nothing_for_long(self) -> None:
        self.patch(http_channel, "ANSWER_SECONDS", 0.3)
        bench = await self.bench(self.lying("deaf"))
        await bench.proxy.gate.settled(60)
        agent = await bench.agent()
        for number in range(2):
            agent.send({"jsonrpc": "2.0", "id": f"c{number}", "method": "tools/call", "params": {"name": "far__echo"}})
            agent.tell("notifications/cancelled", {"requestId": f"c{number}"})
        await until(lambda: ("far", "does not accept messages") in bench.errors, "the reason")

    async def test_what_cannot_be_sent_fails_alone(self) -> None:
        deep: Any = 1
        for _ in range(300):
            deep = [deep]
        bench = await self.bench(self.lying("long"), annotate={"echo": {"value": ("none",)}})
        await bench.proxy.gate.settled(60)
        agent = await bench.agent()
        refused = await agent.call("far__echo", _meta={"value": deep})
        self.assertEqual(refused["error"]["message"], "these parameters cannot be sent by HTTP")
        self.assertEqual(len(text(await agent.call("far__echo"))), 100_000)
        self.assertEqual([line for _, line in bench.errors if "404" not in line], [])

    async def test_an_answer_that_cannot_be_sent_is_an_error_there(self) -> None:
        deep: Any = 1
        for _ in range(300):
            deep = [deep]

        self.liar.questions = b'data: {"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}\n\n'
        bench = await self.bench(self.lying("streams", agent_requests=frozenset({"sampling"})))
        agent = await bench.agent(capabilities={"sampling": {}})
        await bench.decide(Outcome.APPROVED)
        question = await agent.expect(lambda m: m.get("method") == "sampling/createMessage")
        agent.send({"jsonrpc": "2.0", "id": question["id"], "result": {"deep": deep}})
        await until(lambda: bool(self.liar.answers), "an answer")
        (answer,) = self.liar.answers[:1]
        self.assertEqual((answer["id"], answer["error"]["message"]), (7, "the answer cannot be sent by HTTP"))

    async def test_it_wants_other_headers(self) -> None:
        server = self.lying("unauthorized", headers={"Authorization": Secret(KEY)})
        self.assertIn("HTTP status 401", await self.log(server))
        await until(lambda: any("refused the configured headers" in line for _, line in self.top.errors), "the reason")

    async def test_a_session_that_it_forgot_is_begun_anew(self) -> None:
        answer = await self.called("forgetful")
        self.assertEqual(code(answer), "backend-failed")
        await until(lambda: ("far", "ended the session") in self.top.errors, "the reason")
        agent = self.top.agents[0]
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        sessions = [headers.getRawHeaders("mcp-session-id") for _, _, headers in self.liar.seen]
        self.assertEqual(sum(session is None for session in sessions), 4)

    async def test_what_is_compressed_is_refused(self) -> None:
        answer = await self.called("compressed")
        self.assertEqual(code(answer), "backend-failed")
        self.assertIn("compressed", text(answer))

    async def test_answers_over_the_limit(self) -> None:
        for module in (http_channel, http_transport):
            self.patch(module, "OUTBOUND_LIMIT", 50_000)
        for path in ("long", "event"):
            answer = await self.called(path)
            self.assertRegex(json.dumps(answer), "more than 50000 bytes|exceed")

    async def test_answers_to_nothing_and_no_answers(self) -> None:
        answer = await self.called("no-json")
        self.assertEqual(code(answer), "backend-failed")
        self.assertIn("sent an answer that cannot be read: it is not JSON", text(answer))
        self.assertEqual(len(text(await self.called("other"))), 100_000)

    async def test_a_silent_server_holds_up_no_end(self) -> None:
        bench = Bench([self.lying("silent")])
        await bench.start()
        await bench.proxy.gate.settled(60)
        agent = await bench.agent()
        call = Deferred.fromCoroutine(agent.call("far__echo"))
        call.addErrback(lambda _: None)
        await until(lambda: len(self.liar.seen) > 4, "the call")
        await bench.stop()

    async def test_what_its_command_prints_must_be_a_header(self) -> None:
        server = HttpServer("far", Secret("https://127.0.0.1:1/mcp"), {}, {"Authorization": "two\nlines"})
        self.assertIn("cannot be sent", await self.log(server))
