"""The MCP project's own conformance suite against the proxy, with a server behind it that has all that it asks for."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.utils import getProcessOutputAndValue
from twisted.python.failure import Failure

from ironcurtain.mcp_proxy.servers_config import CommandServer
from tests.mcp_proxy.conformance_server import TOOLS
from tests.mcp_proxy.npm import module, node
from tests.mcp_proxy.stateless_front import StatelessFront
from tests.mcp_proxy.support import Bench, the_reactor
from tests.mcp_proxy.test_protocol import Base

HERE = Path(__file__).parent
SUITE = ("@modelcontextprotocol", "conformance", "dist", "index.js")
NEXT = ("conformance-next", "dist", "index.js")
"""The two suites; the newer one knows revision 2026-07-28."""

OTHERS = frozenset(("dns-rebinding-protection", "sse-multiple-streams"))
"""Scenarios about HTTP itself, which is the front's and not ours."""

FORMS = frozenset(("tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"))
"""Scenarios in which the suite's agent wants to fill in a form; ours wait for a person."""

RUNS = ((), ("--scenario", "json-schema-2020-12"))
"""The suite's usual scenarios, and what is left but for HTTP."""

FEWEST = 31
"""How many checks the suite made when this was written."""


NOT_OURS = re.compile(
    r"dns-rebinding-protection|http-.*"  # about HTTP itself, which is the front's
    r"|input-required-result-.*"  # agents never get results that require input: the proxy answers the questions
    r"|tasks-.*"  # an extension that the proxy does not have
    r"|json-schema-2020-12"  # pending in the suite
    r"|sep-2575-http-server-header-mismatch-400"  # the front's too
    r"|sep-2575-server-rejects-undeclared-capability|sep-2575-missing-capability-http-400"  # needs such a server's tool
)
"""Scenarios and checks of the newer suite that are left out."""

FEWEST_NEXT = 70
"""How many checks the newer suite made when this was written."""


class Front(ProcessProtocol):
    """:ivar port: fires with the port; :ivar ended: when the process has ended."""

    def __init__(self) -> None:
        self.port: Deferred[int] = Deferred()
        self.ended: Deferred[None] = Deferred()

    def outReceived(self, data: bytes) -> None:
        if not self.port.called:
            self.port.callback(int(data))

    def errReceived(self, data: bytes) -> None:
        sys.stderr.write(data.decode("utf-8", "replace"))

    def processEnded(self, reason: Failure) -> None:
        self.ended.callback(None)


class ConformanceTests(Base):
    async def test_the_suite_finds_no_fault(self) -> None:
        program, suite, bench = await self._ready(*SUITE)
        port = await self._front(program, str(bench.socket), "suite__")
        passed, failed = await self._checks(program, suite, f"http://localhost:{port}/mcp")
        self.assertEqual(failed, {})
        self.assertGreaterEqual(passed, FEWEST)

    async def test_the_newer_suite_finds_no_fault_without_a_handshake(self) -> None:
        program, suite, bench = await self._ready(*NEXT)
        front = StatelessFront(str(bench.socket), "suite__")
        self.addCleanup(front.port.stopListening)
        directory = tempfile.mkdtemp(prefix="ic-")
        self.addCleanup(shutil.rmtree, directory)
        line = [suite, "server", "--url", front.url, "--output-dir", directory, "--requirements", "2026-07-28"]
        await getProcessOutputAndValue(program, line, dict(os.environ), directory, the_reactor)
        passed, failed = 0, list[tuple[str, str, str]]()
        for path in Path(directory).rglob("checks.json"):
            scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", path.parent.name)
            for check in json.loads(path.read_text()):
                if NOT_OURS.fullmatch(scenario) or NOT_OURS.fullmatch(check["id"]):
                    continue
                passed += check["status"] == "SUCCESS"
                if check["status"] == "FAILURE":
                    failed.append((scenario, check["id"], str(check.get("errorMessage"))))
        self.assertEqual(failed, [])
        self.assertGreaterEqual(passed, FEWEST_NEXT)

    async def _ready(self, *suite: str) -> tuple[str, str, Bench]:
        """:returns: a Node, the suite that it runs, and a proxy with the server behind it."""
        path, program = str(module(*suite)), node()
        annotate = {name: dict.fromkeys(properties, ("none",)) for name, (properties, _) in TOOLS.items()}
        server = CommandServer(
            "suite", sys.executable, ("-S", str(HERE / "conformance_server.py")),
            agent_requests=frozenset({"sampling"}),
        )  # fmt: skip
        bench = await self.bench(server, annotate=annotate)
        bench.permit()
        bench.fill_in({})
        return program, path, bench

    async def _front(self, program: str, *arguments: str) -> int:
        front = Front()
        command = [program, str(HERE / "http_front.mjs"), *arguments]
        process = the_reactor.spawnProcess(front, program, command, env=dict(os.environ))
        self.addCleanup(lambda: front.ended)
        self.addCleanup(process.signalProcess, "KILL")
        return await front.port

    async def _checks(self, program: str, suite: str, address: str) -> tuple[int, dict[str, list[str]]]:
        """:returns: how many checks passed, and what failed, by scenario."""
        directory = tempfile.mkdtemp(prefix="ic-")
        self.addCleanup(shutil.rmtree, directory)
        for words in RUNS:
            line = [suite, "server", "--url", address, "--output-dir", directory, *words]
            out, err, _ = await getProcessOutputAndValue(program, line, dict(os.environ), directory, the_reactor)
            self.assertIn(b"passed", (out + err).lower())
        results = {path.parent.name: json.loads(path.read_text()) for path in Path(directory).rglob("checks.json")}
        passed, failed = 0, dict[str, list[str]]()
        for name, checks in results.items():
            scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", name) if name.startswith("server-") else name
            if scenario in OTHERS | FORMS:
                continue
            passed += sum(check["status"] == "SUCCESS" for check in checks)
            if wrong := [str(check.get("errorMessage")) for check in checks if check["status"] == "FAILURE"]:
                failed[scenario] = wrong
        return passed, failed
