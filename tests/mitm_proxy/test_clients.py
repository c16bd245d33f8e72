"""Real clients, each a process of its own, and a provider that keeps the rules of the real one."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.utils import getProcessOutputAndValue

from ironcurtain.home.sections import Provider
from ironcurtain.providers.rules import provider_rules
from tests.mitm_proxy.messages import HOST
from tests.mitm_proxy.support import REAL_KEY, Base, Bench
from tests.mitm_proxy.waiting import the_reactor, until
from tests.model_stub.replies import Answer, Refusal, Reply, Text
from tests.model_stub.server import ModelStub
from tests.ports import free_port
from tests.programs import program

HERE = Path(__file__).parent
MESSAGES = [{"role": "user", "content": "What does your key look like?"}]
QUESTION = json.dumps({"model": "claude-x", "max_tokens": 100, "messages": MESSAGES})
STREAMED = json.dumps({"model": "claude-x", "max_tokens": 100, "messages": MESSAGES, "stream": True})
HEADERS = ("content-type: application/json", "anthropic-version: 2023-06-01")
ECHO = Text(("It is {{key}}, ", "or {{key:base64}}, ", "or {{key:escaped}}."))


class ClientTests(Base):
    """What agents are made of."""

    async def stub(self, *replies: Reply) -> tuple[Bench, ModelStub]:
        """:returns: a bench in front of a stub that answers so."""
        bench, stub = Bench(), ModelStub(the_reactor, replies, keys=[REAL_KEY])
        await bench.origin.start("localhost")
        self.addCleanup(bench.stopped)
        await stub.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(stub.stop()))
        ca_file = bench.top / "stub.pem"
        ca_file.write_bytes(stub.authority.pem)
        table = Provider(base_url=stub.url, ca_file=str(ca_file))
        await bench.start_proxy(provider_rules({"anthropic": table}, ["anthropic"]))
        return bench, stub

    async def run_client(self, name: str, *arguments: str, **environ: str) -> list[dict[str, Any]]:
        """:returns: the JSON that a client printed, one value a line."""
        output, errors, status = await getProcessOutputAndValue(name, arguments, env={**os.environ, **environ})
        self.assertEqual(status, 0, errors.decode())
        return [json.loads(line) for line in output.splitlines()]

    async def through_socat(self, bench: Bench) -> str:
        """:returns: the address of a proxy with a port."""
        port = free_port()
        listening = f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,nodelay"
        process: Any = the_reactor.spawnProcess(
            _Ending(), program("socat"), ["socat", listening, f"UNIX-CONNECT:{bench.socket}"]
        )
        self.addCleanup(lambda: Deferred.fromCoroutine(process.proto.stop(process)))
        await until(lambda: _listens(port), "socat")
        return f"http://127.0.0.1:{port}"

    async def curl(self, bench: Bench, proxy: str, *more: str, path: str = "/v1/messages") -> tuple[str, str]:
        """:returns: what curl printed, and what it complained of."""
        headers = [argument for header in (*HEADERS, f"x-api-key: {bench.key}") for argument in ("-H", header)]
        output, errors, _ = await getProcessOutputAndValue(
            program("curl"),
            [
                *("-sS", "--max-time", "60", "--proxy", proxy, "--cacert", str(bench.authority.certificate_path)),
                *(*headers, *more, f"https://{HOST}{path}"),
            ],
            env={"PATH": os.environ["PATH"]},
        )
        return output.decode(), errors.decode()

    async def test_curl_through_socat(self) -> None:
        bench, stub = await self.stub(Answer((ECHO,)), Answer((Text(("large",)),)))
        proxy = await self.through_socat(bench)
        answer = json.loads((await self.curl(bench, proxy, "-d", QUESTION))[0])
        self.assertTrue(answer["content"][0]["text"].startswith("It is ***"))
        large = bench.top / "large.json"
        content = [{"role": "user", "content": "x" * 3_000_000}]
        large.write_text(json.dumps({"model": "claude-x", "max_tokens": 5, "messages": content}))
        output, _ = await self.curl(bench, proxy, "-d", f"@{large}", "-H", "expect: 100-continue")
        answer = json.loads(output)
        self.assertEqual(answer["content"][0]["text"], "large")
        self.assertEqual([record.refused for record in stub.requests], ["", ""])

    async def test_curl_is_refused(self) -> None:
        bench, stub = await self.stub()
        proxy = await self.through_socat(bench)
        answer, _ = await self.curl(bench, proxy, "-d", QUESTION, "-w", "%{http_code}", path="/v1/files")
        self.assertTrue(answer.endswith("403"))
        self.assertIn("IronCurtain: POST /v1/files", answer)
        answer, errors = await self.curl(bench, proxy, "--connect-to", f"{HOST}:443:evil.example:443")
        self.assertEqual(answer, "")
        self.assertIn("certificate", errors)  # the one for evil.example does not help
        self.assertEqual(stub.requests, [])

    async def test_python(self) -> None:
        bench, stub = await self.stub(Answer((Text(("one",)),)), Refusal(529, message="busy, {{key}}"))
        proxy = await self.through_socat(bench)
        arguments = (proxy, HOST, bench.key, str(bench.authority.certificate_path), QUESTION)
        answers = await self.run_client(sys.executable, str(HERE / "python_client.py"), *arguments)
        self.assertEqual([answer["status"] for answer in answers], [200, 529])
        self.assertIn("busy, ***", answers[1]["body"])
        self.assertEqual(stub.connections, 1)

    async def test_node(self) -> None:
        for how in ("fetch", "https"):
            bench, stub = await self.stub(*[Answer((ECHO, Text(("a", "b", "c"))))] * 2)
            arguments = (str(bench.socket), HOST, bench.key, how, STREAMED)
            ca_file = str(bench.authority.certificate_path)
            answers = await self.run_client(
                program("node"), str(HERE / "node_client.mjs"), *arguments, NODE_EXTRA_CA_CERTS=ca_file
            )
            self.assertEqual([answer["status"] for answer in answers], [200, 200])
            for answer in answers:
                self.assertNotIn(REAL_KEY[20:], answer["body"])
                self.assertIn("message_stop", answer["body"])
            self.assertEqual(stub.connections, 1)
            self.assertEqual([record["usage"]["output"] for record in bench.records("model-response")], [5, 5])


class _Ending(ProcessProtocol):
    """A process that is ended when the test is over."""

    def __init__(self) -> None:
        self._ended = False

    def processEnded(self, reason: object) -> None:
        self._ended = True

    async def stop(self, process: Any) -> None:
        """End it, and wait until it has."""
        process.signalProcess("TERM")
        await until(lambda: self._ended, "the end of a process")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
