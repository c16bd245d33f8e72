"""The file of MCP servers."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.mcp_proxy.servers_config import SandboxConfig, ServerConfig, read_servers


def read(servers: Any, **more: Any) -> tuple[ServerConfig, ...]:
    """:returns: what is read from a file with these servers."""
    text = json.dumps({"mcpServers": servers, **more}).encode()
    return read_servers(text, "mcp-servers.json", workspace="/srv/w", home="/home/me")


class ReadTests(SynchronousTestCase):
    """What is taken, and what is refused, by name."""

    def refused(self, servers: Any, **more: Any) -> str:
        """:returns: the message that a file is refused with."""
        with self.assertRaises(ConfigurationError) as caught:
            read(servers, **more)
        return str(caught.exception)

    def test_the_usual_shape(self) -> None:
        servers = read(
            {"a": {"command": "x"}, "b": {"type": "stdio", "command": "y", "args": ["1"], "env": {"K": "v"}}}
        )
        self.assertEqual(servers, (ServerConfig("a", "x"), ServerConfig("b", "y", ("1",), {"K": "v"})))

    def test_our_additions(self) -> None:
        (server,) = read(
            {
                "a": {
                    "command": "x",
                    "cwd": "$WORKSPACE/sub",
                    "env_command": {"TOKEN": "pass show x"},
                    "sandbox": {"read": ["/usr"], "write": ["$WORKSPACE"], "network": ["example.com"]},
                    "agent_requests": ["sampling"],
                }
            },
            version=1,
        )
        self.assertEqual(server.cwd, "/srv/w/sub")
        self.assertEqual(server.environment_commands, {"TOKEN": "pass show x"})
        self.assertEqual(server.sandbox, SandboxConfig(("/usr",), ("/srv/w",), ("example.com",)))
        self.assertEqual(server.agent_requests, {"sampling"})

    def test_variables_in_arguments(self) -> None:
        arguments = ["$WORKSPACE", "--root=${HOME}/x", "$WORKSPACES", "$$HOME", "$OTHER", "~"]
        (server,) = read({"a": {"command": "$HOME", "args": arguments}})
        self.assertEqual(server.args, ("/srv/w", "--root=/home/me/x", "$WORKSPACES", "$/home/me", "$OTHER", "~"))
        self.assertEqual(server.command, "$HOME")

    def test_disabled_servers_are_left_out(self) -> None:
        self.assertEqual(
            read({"a": {"command": "x", "disabled": True}, "b": {"url": "http://x", "disabled": True}}), ()
        )

    def test_http_backends_are_refused_clearly(self) -> None:
        for server in ({"url": "https://example.com/mcp", "headers": {"A": "b"}}, {"type": "http", "command": "x"}):
            message = self.refused({"remote": server})
            self.assertIn("servers reached by HTTP are not supported in this version", message)
            self.assertIn("remote", message)

    def test_names_are_checked(self) -> None:
        for name in ("", "a__b", "a_", "_a", "-a", "a b", "a/b", "é", "x" * 33, "a\n"):
            self.assertIn("a server's name", self.refused({name: {"command": "x"}}))
        for name in ("a", "A-1", "a_b", "x" * 32):
            self.assertEqual(read({name: {"command": "x"}})[0].name, name)

    def test_what_is_wrong_is_named(self) -> None:
        self.assertIn("mcpServers.a.args", self.refused({"a": {"command": "x", "args": "y"}}))
        self.assertIn("autoApprove", self.refused({"a": {"command": "x", "autoApprove": ["z"]}}))
        self.assertIn("needs a command", self.refused({"a": {}}))
        self.assertIn("not an absolute path", self.refused({"a": {"command": "x", "sandbox": {"read": ["rel"]}}}))
        self.assertIn("mcpServers.a", self.refused({"a": {"command": "x", "sandbox": {"network": True}}}))
        self.assertIn("environment variable", self.refused({"a": {"command": "x", "env": {"A=B": "c"}}}))
        self.assertIn("version", self.refused({}, version=2))

    def test_what_is_no_file(self) -> None:
        for text in (b"", b"{", b"[]", b"{}", b'{"mcpServers": []}', b"\xff"):
            with self.assertRaises(ConfigurationError):
                read_servers(text, "mcp-servers.json", workspace="/w", home="/h")
