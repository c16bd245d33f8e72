"""What is said about the servers of ``mcp-servers.json`` before they start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ironcurtain.mcp_proxy.launch import OWN_SERVERS
from tests.cli.test_commands import CommandCase


class ServerNotesTests(CommandCase):
    """``ironcurtain config check`` and ``ironcurtain doctor``"""

    def test_fields_of_other_clients_and_servers_that_cannot_start_are_noted(self) -> None:
        self.run_command("init")
        servers = {
            "a": {"command": "true", "alwaysAllow": ["x"], "env": {"TOKEN": "${THE_TOKEN}"}},
            "b": {"command": "no-such-program"},
            "c": {"command": "true", "env": {"TOKEN": "${UNSET_TOKEN}"}},
        }
        (self.home / "mcp-servers.json").write_text(json.dumps({"servers": servers}))
        self.environ["THE_TOKEN"] = "value-of-the-token"
        result = self.run_command("config", "check")
        self.assertEqual(result.exit_code, 0, result.output)
        notes = [
            "server a: ignored: alwaysAllow (what is allowed is said in policy.toml)",
            "server a: gets THE_TOKEN of your environment",
            "server b does not start: there is no program 'no-such-program' in its PATH",
            "server c does not start: env.TOKEN: the environment variable UNSET_TOKEN is not set; set it, or write "
            "${UNSET_TOKEN:-default}",
        ]
        told = " ".join(result.output.split())
        for note in notes:
            self.assertIn(f"note mcp-servers.json: {note}", told)
        self.assertNotIn("value-of-the-token", result.output)
        found = json.loads(self.run_command("config", "check", "--json").stdout)
        self.assertEqual([file["notes"] for file in found], [[], [], notes, []])

    def test_servers_are_looked_up_as_their_start_does(self) -> None:
        self.home.mkdir(mode=0o700)
        served = self.person / "bin" / "served"
        served.parent.mkdir()
        served.write_text("#!/bin/sh\n")
        served.chmod(0o755)
        servers = {
            "own-path": {"command": "served", "env": {"PATH": f"{served.parent}:/usr/bin:/bin", "KEY": "${THE_KEY}"}},
            "no-path": {"command": "served"},
            "boxed": {"command": "docker", "args": ["run", "x"]},
        }
        (self.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
        program = str(Path(sys.executable).parent / "ironcurtain")
        environ = {**os.environ, **self.environ, "THE_KEY": "value-of-the-key"}
        told = subprocess.run([program, "doctor"], env=environ, capture_output=True, text=True, check=False).stdout
        self.assertRegex(told, r"MCP server own-path: (served, in a sandbox, with THE_KEY|does not start: no sandbox)")
        self.assertIn("MCP server no-path: does not start: there is no program 'served' in its PATH", told)
        self.assertIn("MCP server boxed: does not start: docker needs its engine", told)
        self.assertNotIn("value-of-the-key", told)

    def test_servers_are_looked_up_with_the_kind_of_sandbox_that_is_set(self) -> None:
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text('[sandbox]\nkind = "landlock"\n')
        own = {"command": sys.executable, "args": [*OWN_SERVERS[1], "$WORKSPACE"]}
        listed = {"command": "true", "sandbox": {"network": ["example.org"]}}
        servers = {"git-remote": own, "tickets": listed}
        (self.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
        told = self.run_command("config", "check").stdout
        for name in servers:
            self.assertIn(f"server {name} does not start: no sandbox can be made for it", told)
