"""What commands say of MCP servers that break the protocol."""

from __future__ import annotations

import json

from tests.cli.cases import ProductCase
from tests.product import until


class FaultTests(ProductCase):
    """A server with wrong definitions."""

    def test_fault_of_a_server_is_reported(self) -> None:
        self.product.home.mkdir(mode=0o700)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        answers = [hello, {"tools": [{"name": "bad"}, 7]}]
        lines = [json.dumps({"jsonrpc": "2.0", "id": i + 1, "result": answer}) for i, answer in enumerate(answers)]
        script = f"read -r a; echo '{lines[0]}'; read -r b; read -r c; echo '{lines[1]}'; read -r d"
        servers = {"mcpServers": {"odd": {"command": "/bin/sh", "args": ["-c", script], "sandbox": "none"}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        process = self.product.start("mcp-proxy", "--workspace", ".")
        until(process.stderr, "MCP server odd: tool number 2: must be an object; left out")
        said = "tool bad: inputSchema is missing; one that allows any arguments is used"
        self.assertIn(f"the MCP server odd: {said}.", self.product.run("sessions").stdout)
        self.assertIn(said, self.product.json("sessions")[0]["server_faults"]["odd"])
        self.assertIn(f"MCP server odd: {said}", self.product.run("logs", "1").stdout)
        findings = json.loads(self.product.run("doctor", "--json").stdout)
        (found,) = (f for f in findings if said in f["detail"])
        self.assertEqual((found["what"], found["state"]), ("MCP server odd", "hint"))
        process.communicate()
