from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.threads import deferToThread
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from twisted.trial.unittest import SkipTest, TestCase
from twisted.web.server import Request, Site
from zope.interface import implementer

from ironcurtain.control import wire
from ironcurtain.control.listening import listen
from ironcurtain.control.server import ControlResource
from ironcurtain.errors import UsageError
from ironcurtain.operations import Principal
from ironcurtain.operations.operations import Operations
from tests.audit.doubles import scratch
from tests.control.doubles import Answer, ask, connect, parse, say
from tests.session.doubles import PlainAgent, World, make_request

SESSION = "/v1/sessions/1"

FOREIGN = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"GET /v1/sessions HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
while data := s.recv(65536):
    os.write(1, data)
"""


class ServerTestCase(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.world = World(scratch(self), reactor=reactor)
        self.operations = Operations(self.world.manager)
        self.path = scratch(self) / "s" / "control.sock"
        self.port: IListeningPort = listen(reactor, self.path, self.operations)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.finish()))  # trial calls tearDown after the clean-ups
        answer = await self.ask("POST", "/v1/sessions", {"kind": "plain", "task": "look"})
        self.assertEqual(answer.status, 200)

    async def finish(self) -> None:
        await self.world.manager.stop("the end")
        self.world.watcher.stop()
        stopped = self.port.stopListening()
        if stopped is not None:
            await stopped

    async def ask(self, method: str, target: str, body: object = None, headers: str = "") -> Answer:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return await ask(self.path, method, target, data, headers)

    def assertRefused(self, answer: Answer, status: int, code: str, what: object = None) -> None:
        self.assertEqual((answer.status, answer.headers.get("content-type")), (status, "application/json"), what)
        error = answer.json()["error"]
        self.assertEqual(error["code"], code, what)
        self.assertNotIn("Traceback", error["message"])
        self.assertLess(len(error["message"]), 300)


class SocketTests(ServerTestCase):
    def test_it_is_the_owners_alone(self) -> None:
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.path.parent.stat().st_mode & 0o777, 0o700)

    async def test_another_user_is_refused_although_the_modes_let_him(self) -> None:
        if os.geteuid() != 0:
            raise SkipTest("only the superuser can become somebody else")
        self.path.parent.parent.chmod(0o711)
        self.path.parent.chmod(0o711)
        self.path.chmod(0o666)
        command = [sys.executable, "-c", FOREIGN, str(self.path)]
        result = await deferToThread(subprocess.run, command, capture_output=True, check=True, timeout=60)
        (answer,) = parse(result.stdout)
        self.assertRefused(answer, 403, "NOT_ALLOWED")

    async def test_requests_leave_no_lines_in_the_log(self) -> None:
        logged: list[str] = []

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            logged.append(str(event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        self.assertEqual((await self.ask("GET", "/v1/sessions")).status, 200)
        self.assertEqual([line for line in logged if "/v1/" in line], [])

    async def test_what_a_dead_process_left_is_replaced(self) -> None:
        path = self.path.with_name("old.sock")
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        port = listen(reactor, path, self.operations)
        self.assertEqual((await ask(path, "GET", "/v1/sessions")).status, 200)
        stopped = port.stopListening()
        assert stopped is not None
        await stopped
        self.assertFalse(path.exists())

    async def test_a_path_too_long_is_refused_by_name(self) -> None:
        path = self.path.with_name("x" * 120)
        error = self.assertRaises(UsageError, listen, reactor, path, self.operations)
        self.assertIn(str(path), str(error))


class AnswerTests(ServerTestCase):
    async def test_a_session_from_start_to_stop(self) -> None:
        (info,) = (await self.ask("GET", "/v1/sessions")).json()
        self.assertEqual((info["number"], info["label"], info["state"]), (1, "plain: look", "ready"))
        self.assertEqual((await self.ask("GET", f"/v1/sessions/{info['id']}")).json(), info)
        reply = (await self.ask("POST", f"{SESSION}/messages", {"text": "hello"})).json()
        self.assertEqual(reply["text"], "you said hello")
        self.assertEqual((await self.ask("POST", f"{SESSION}/cancel")).json(), {"cancelled": False})
        self.assertEqual(len((await self.ask("GET", f"{SESSION}/history")).json()), 1)
        self.assertEqual((await self.ask("DELETE", SESSION)).json()["state"], "closed")
        self.assertRefused(await self.ask("POST", f"{SESSION}/messages", {"text": "x"}), 409, "SESSION_CLOSED")

    async def test_an_escalation(self) -> None:
        core = self.world.agents[0].core
        assert core is not None
        asked = core.escalations.ask(make_request(core))
        (view,) = (await self.ask("GET", "/v1/escalations")).json()
        target = f"/v1/escalations/{view['number']}"
        wrong = {"decision": "approved", "digest": "0" * 64}
        self.assertRefused(await self.ask("POST", target, wrong), 409, "STALE_DECISION")
        right = {"decision": "approved", "digest": view["digest"]}
        self.assertEqual((await self.ask("POST", target, right)).json()["outcome"], "approved")
        self.assertTrue((await asked).by.startswith("local:"))
        self.assertRefused(await self.ask("POST", target, right), 409, "STALE_DECISION")
        self.assertEqual((await self.ask("GET", "/v1/escalations")).json(), [])
        self.assertEqual(len((await self.ask("GET", "/v1/escalations?closed=1")).json()), 1)

    async def test_decision_for_which_nobody_waits_any_more_is_refused(self) -> None:
        core = self.world.agents[0].core
        assert core is not None
        core.escalations.ask(make_request(core))
        (waiting,) = (await self.ask("GET", "/v1/escalations")).json()
        path, deny = f"/v1/escalations/{waiting['number']}", {"decision": "denied"}
        for until in (f"{time.monotonic() - 0.1}", "nan", "-inf"):
            header = f"{wire.UNTIL_HEADER}: {until}\r\n"
            for method, target, body in (
                ("POST", path, deny),
                ("POST", "/v1/escalations/deny-all", {}),
                ("DELETE", SESSION, None),
            ):
                self.assertRefused(await self.ask(method, target, body, header), 500, "UNAVAILABLE", target)
        wrong = await self.ask("POST", path, deny, f"{wire.UNTIL_HEADER}: soon\r\n")
        self.assertRefused(wrong, 400, "USAGE")
        self.assertEqual((await self.ask("GET", "/v1/escalations")).json(), [waiting])
        in_time = f"{wire.UNTIL_HEADER}: {time.monotonic() + 60}\r\n"
        self.assertEqual((await self.ask("POST", path, deny, in_time)).json()["outcome"], "denied")

    async def test_a_failed_start_says_why(self) -> None:
        self.world.next_agent = PlainAgent(trouble=RuntimeError("no model"))
        answer = await self.ask("POST", "/v1/sessions", {"kind": "plain"})
        self.assertRefused(answer, 409, "SESSION_INIT_FAILED")
        self.assertIn("no model", answer.json()["error"]["message"])


class HostileTests(ServerTestCase):
    async def test_methods_that_no_path_has(self) -> None:
        for method in ("PUT", "PATCH", "TRACE", "GETS", "get", "POST"):
            for target in (SESSION, f"{SESSION}/history"):
                self.assertRefused(await self.ask(method, target), 404, "NOT_FOUND", (method, target))
        for target in ("/v1/escalations/1", f"{SESSION}/messages", f"{SESSION}/cancel"):
            self.assertRefused(await self.ask("GET", target), 404, "NOT_FOUND", target)

    async def test_paths_that_lead_nowhere(self) -> None:
        for target in (
            "/",
            "/v1",
            "/v1/sessions/",
            "/v1/sessions/../../etc/passwd",
            "/v1/sessions/..%2f..%2fetc%2fpasswd/history",
            "/v1/sessions/%31",
            "/v1/sessions/1/history/",
            "/v1/sessions/1/audit.jsonl",
            "//v1/sessions",
            "/v1/sessions/" + "a" * 41,
            "/v1/sessions/" + "1" * 9000,
            "/v1/sessions/%00",
            "/v1/escalations/-1",
            "/v1/escalations/" + "1" * 19,
            "/v1/sessions/1;x",
            "/v1/sessions/2",
            "/v1/sessions/2/history",
            "/v1/sessions/2/events",
        ):
            self.assertRefused(await self.ask("GET", target), 404, "NOT_FOUND", target)

    async def test_bodies_that_are_wrong(self) -> None:
        deep = b'{"kind":"plain","options":{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}}"
        for body in (
            b"",
            b"{",
            b"null",
            b"[]",
            b'"plain"',
            b"\xff\xfe",
            b"{}",
            b'{"kind":1}',
            b'{"kind":"plain","task":null}',
            b'{"kind":"plain","options":[]}',
            b'{"kind":"plain","extra":1}',
            b'{"kind":"other"}',
            b'{"kind":"plain","workspace":"relative"}',
            b'{"kind":"plain","workspace":"/x\\u0000y"}',
            b'{"kind":"\\ud800"}',
            deep,
        ):
            self.assertRefused(await self.ask("POST", "/v1/sessions", body), 400, "USAGE", body[:40])
        for body in (b'{"text":5}', b'{"text":"x","more":1}', b"[1]"):
            self.assertRefused(await self.ask("POST", f"{SESSION}/messages", body), 400, "USAGE", body)
        for body in (b'{"decision":"maybe"}', b'{"decision":"withdrawn"}', b'{"decision":"approved","digest":7}'):
            self.assertRefused(await self.ask("POST", "/v1/escalations/1", body), 400, "USAGE", body)
        self.assertEqual(len(self.world.manager.all()), 1)

    async def test_bodies_of_other_types_are_no_forms(self) -> None:
        for kind in ("application/x-www-form-urlencoded", "text/plain"):
            answer = await self.ask("POST", "/v1/sessions", b"kind=plain", f"Content-Type: {kind}\r\n")
            self.assertRefused(answer, 400, "USAGE", kind)

    async def test_a_body_over_the_limit(self) -> None:
        body = b'{"text":"' + b"x" * wire.BODY_LIMIT + b'"}'
        self.assertRefused(await self.ask("POST", f"{SESSION}/messages", body), 400, "USAGE")
        head = f"POST {SESSION}/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        (answer,) = await say(self.path, head.encode() + chunk * 9 + b"0\r\n\r\n")
        self.assertRefused(answer, 400, "USAGE")

    async def test_a_body_at_the_limit(self) -> None:
        text = "x" * (wire.BODY_LIMIT - len(b'{"text": ""}'))
        answer = await self.ask("POST", f"{SESSION}/messages", {"text": text})
        self.assertEqual((answer.status, len(answer.json()["text"])), (200, len("you said " + text)))

    async def test_queries_that_are_no_numbers(self) -> None:
        for query in ("after=x", "after=-1", "after=1.5", "after=", "after=" + "9" * 5000, "after=%00", "after=%C2%B2"):
            self.assertRefused(await self.ask("GET", f"{SESSION}/events?{query}"), 400, "USAGE", query[:20])
        for query in ("closed=yes", "closed=1&after=x"):
            self.assertRefused(await self.ask("GET", f"/v1/escalations?{query}"), 400, "USAGE", query)

    async def test_several_requests_at_once_are_answered_in_their_order(self) -> None:
        one = b"GET /v1/sessions HTTP/1.1\r\nHost: x\r\n\r\n"
        two = b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n"
        last = b"GET /v1/escalations HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answers = await say(self.path, one + two + one + last)
        self.assertEqual([answer.status for answer in answers], [200, 404, 200, 200])
        self.assertEqual(answers[-1].json(), [])

    async def test_what_is_no_http_harms_nobody(self) -> None:
        for data in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET /v1/sessions/\x00 HTTP/1.1\r\n\r\n",
            b"GET /v1/sessions HTTP/9.9\r\n\r\n",
            b"GET /v1/sessions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
            b"GET /v1/sessions HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            b"GET /v1/sessions HTTP/1.1\r\nTransfer-Encoding: weird\r\n\r\n",
            b"GET /v1/sessions HTTP/1.1\r\n" + b"x: " + b"y" * 70_000 + b"\r\n\r\n",
        ):
            connection = await connect(self.path)
            connection.transport.write(data)  # type: ignore[union-attr]
            connection.transport.loseWriteConnection()  # type: ignore[union-attr]
            self.assertNotIn(b"Traceback", await connection.closed, data[:60])
        self.assertEqual((await self.ask("GET", "/v1/sessions")).status, 200)

    async def test_a_peer_that_goes_in_the_middle_harms_nobody(self) -> None:
        for data in (b"GET /v1/sess", b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"):
            connection = await connect(self.path)
            connection.transport.write(data)  # type: ignore[union-attr]
            connection.transport.loseConnection()  # type: ignore[union-attr]
            await connection.closed
        self.assertEqual((await self.ask("GET", "/v1/sessions")).status, 200)


class CrashTests(TestCase):
    async def test_a_bug_is_answered_without_its_details(self) -> None:
        def fail(request: Request) -> Principal:
            raise RuntimeError("secret detail")

        operations = Operations(World(scratch(self)).manager)
        path = Path(scratch(self) / "s.sock")
        port = reactor.listenUNIX(str(path), Site(ControlResource(operations, fail)))  # type: ignore[attr-defined]
        answer = await ask(path, "GET", "/v1/sessions")
        await port.stopListening()
        self.assertEqual((answer.status, answer.headers["content-type"]), (500, "application/json"))
        self.assertNotIn(b"secret detail", answer.body)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
