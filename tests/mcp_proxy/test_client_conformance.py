"""The MCP project's own conformance suite as a server behind the proxy (revision 2026-07-28)."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import TestCase

from ironcurtain.mcp_proxy.servers_config import HttpServer
from ironcurtain.secrets.redaction import Secret
from tests.mcp_proxy.npm import module, node
from tests.mcp_proxy.support import Bench, the_reactor, until
from tests.mcp_proxy.test_conformance import NEXT

SCENARIOS = (
    "request-metadata",
    "http-standard-headers",
    "http-invalid-tool-headers",
    "http-custom-headers",
    "json-schema-ref-no-deref",
    "sep-2322-client-request-state",
    "tools_call",
)
"""About a client's requests. Logging in is the SDK's part."""

HOLD = 'printf %s "$0" > url.part; mv url.part url; read end < end'
"""The suite's client: writes down where the server is, and lets it serve until the test is done."""

ARGUMENTS: Mapping[str, Any] = {"string": "x", "integer": 1, "number": 1, "boolean": True}
"""An argument of each type."""

HEADERS = {
    "region": "us-west1",
    "priority": 42,
    "verbose": False,
    "debug": True,
    "empty_val": "",
    "method_val": "test-method",
    "float_val": 3.14159,
    "non_ascii_val": "Hello, 世界",
    "whitespace_val": " padded ",
    "leading_space_val": " us-west1",
    "trailing_space_val": "us-west1 ",
    "internal_space_val": "us west 1",
    "control_char_val": "line1\nline2",
    "crlf_val": "line1\r\nline2",
    "tab_val": "\tindented",
    "query": "SELECT * FROM users",
}
CALLS: Mapping[str, Mapping[str, Any]] = {
    "add_numbers": {"a": 2, "b": 3},
    "lookup_user": {},
    "my-hyphenated-tool": {},
    "test_custom_headers": HEADERS,
    "test_headers": {},
    "test_custom_headers_null": {"region": "us-east1", "priority": 1, "query": "SELECT 1"},
    "test_mrtr_echo_state": {},
    "test_mrtr_no_result_type": {},
    "test_mrtr_no_state": {},
    "test_mrtr_unrelated": {},
    "valid_tool": {"region": "x"},
}
"""The suite's tools, which are all annotated, and what those are called with for which it wants certain arguments."""


class ClientConformanceTests(TestCase):
    async def test_the_suite_finds_no_fault_in_requests_to_a_server(self) -> None:
        for scenario in SCENARIOS:
            passed, failed = await self._tried(scenario)
            self.assertEqual((scenario, failed), (scenario, []))
            self.assertGreater(passed, 0)

    async def _tried(self, scenario: str) -> tuple[int, list[str]]:
        directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, directory)
        os.mkfifo(directory / "end")
        command = shlex.join(["/bin/sh", "-c", HOLD])
        line = [str(module(*NEXT)), "client", "--command", command, "--scenario", scenario, "--timeout", "200000"]
        line += ["--spec-version", "2026-07-28", "--output-dir", str(directory)]
        suite: Deferred[Any] = getProcessOutputAndValue(node(), line, dict(os.environ), str(directory), the_reactor)
        await until((directory / "url").exists, "the suite's server")
        try:
            await self._use((directory / "url").read_text().replace("localhost", "127.0.0.1"))
        finally:
            (directory / "end").write_text("\n")
            await suite
        checks = [check for path in directory.rglob("checks.json") for check in json.loads(path.read_text())]
        failed = [f"{each['id']}: {each.get('errorMessage')}" for each in checks if each["status"] == "FAILURE"]
        return sum(each["status"] == "SUCCESS" for each in checks), failed

    async def _use(self, url: str) -> None:
        roles = {tool: dict.fromkeys(arguments, ("none",)) for tool, arguments in CALLS.items()}
        bench = Bench([HttpServer("far", Secret(url))], annotate=roles)
        bench.fill_in({"confirmed": True})
        await bench.start()
        try:
            await bench.proxy.gate.settled(60)
            agent = await bench.agent()
            for tool in (await agent.request("tools/list"))["result"]["tools"]:
                name = tool["name"]
                await agent.call(name, CALLS.get(name.removeprefix("far__")) or _arguments(tool["inputSchema"]))
            for resource in (await agent.request("resources/list")).get("result", {}).get("resources", ()):
                await agent.request("resources/read", {"uri": resource["uri"]})
            for prompt in (await agent.request("prompts/list")).get("result", {}).get("prompts", ()):
                await agent.request("prompts/get", {"name": prompt["name"]})
        finally:
            await bench.stop()


def _arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: ARGUMENTS.get(each.get("type", ""), None) for name, each in schema.get("properties", {}).items()}
