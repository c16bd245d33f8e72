"""The file of MCP servers."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, SandboxConfig, read_servers
from ironcurtain.secrets.redaction import Secret


def read(servers: Any, **more: Any) -> tuple[Any, ...]:
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
        self.assertEqual(servers, (CommandServer("a", "x"), CommandServer("b", "y", ("1",), {"K": "v"})))

    def test_our_additions(self) -> None:
        (server,) = read(
            {
                "a": {
                    "command": "x",
                    "cwd": "$WORKSPACE/sub",
                    "env_command": {"TOKEN": "pass show x"},
                    "sandbox": {"read": ["/usr"], "write": ["$WORKSPACE"], "network": ["example.com"]},
                    "agent_requests": ["sampling"],
                    "startup_timeout_sec": 90,
                }
            },
            version=1,
        )
        self.assertEqual(server.cwd, "/srv/w/sub")
        self.assertEqual(server.environment_commands, {"TOKEN": "pass show x"})
        self.assertEqual(server.sandbox, SandboxConfig(("/usr",), ("/srv/w",), ("example.com",)))
        self.assertEqual((server.agent_requests, server.start_seconds), ({"sampling"}, 90.0))

    def test_variables_in_arguments(self) -> None:
        arguments = ["$WORKSPACE", "--root=${HOME}/x", "$WORKSPACES", "$$HOME", "$OTHER", "~"]
        (server,) = read({"a": {"command": "$HOME", "args": arguments}})
        self.assertEqual(server.args, ("/srv/w", "--root=/home/me/x", "$WORKSPACES", "$/home/me", "$OTHER", "~"))
        self.assertEqual(server.command, "$HOME")

    def test_disabled_servers_are_left_out(self) -> None:
        self.assertEqual(
            read({"a": {"command": "x", "disabled": True}, "b": {"url": "http://x", "disabled": True}}), ()
        )

    def test_servers_behind_http(self) -> None:
        servers = read(
            {
                "a": {"url": "https://example.org/mcp?key=k"},
                "b": {
                    "type": "http",
                    "url": "http://127.0.0.1:3000/mcp",
                    "headers": {"X-Key": "a b"},
                    "headers_command": {"Authorization": "pass show b"},
                    "ca_file": "$HOME/ca.pem",
                    "agent_requests": ["elicitation"],
                },
            }
        )
        commands = {"Authorization": "pass show b"}
        expected = HttpServer(
            "b",
            Secret("http://127.0.0.1:3000/mcp"),
            {"X-Key": Secret("a b")},
            commands,
            "/home/me/ca.pem",
            frozenset(["elicitation"]),
        )
        self.assertEqual(servers, (HttpServer("a", Secret("https://example.org/mcp?key=k")), expected))
        self.assertEqual(servers[0].host, "example.org")
        self.assertNotIn("key=k", repr(servers))

    def test_addresses_that_secrets_are_not_sent_to(self) -> None:
        for url in ("http://example.org/mcp", "http://localhost/mcp", "https://me:pw@example.org/", "ftp://x", "", "x"):
            self.assertIn("mcpServers.far.url: must look like https://", self.refused({"far": {"url": url}}))
        self.assertIn("mcpServers.far.url", self.refused({"far": {"type": "http"}}))
        self.assertIn("streamable HTTP", self.refused({"far": {"type": "sse", "url": "https://example.org/sse"}}))

    def test_headers_that_cannot_be_sent(self) -> None:
        for name in ("", "a b", "a:", "Host", "MCP-Session-Id", "é"):
            for member in ("headers", "headers_command"):
                refused = self.refused({"far": {"url": "https://example.org/", member: {name: "x"}}})
                self.assertIn(f"mcpServers.far.{member}.{name}: ", refused)
                self.assertIn("cannot be set here", refused)
        twice = {"headers": {"X-Key": "a"}, "headers_command": {"x-key": "b"}}
        refused = self.refused({"far": {"url": "https://example.org/", **twice}})
        self.assertIn("mcpServers.far.headers_command.x-key: cannot be set here, or not again", refused)
        for value in ("", " a", "a\r\nb: c", "é", "\0"):
            refused = self.refused({"far": {"url": "https://example.org/", "headers": {"X-Key": value}}})
            self.assertIn("headers.X-Key: its value cannot be sent", refused)

    def test_fields_of_the_other_kind(self) -> None:
        for field, value in (("args", ["x"]), ("env", {"A": "b"}), ("sandbox", {}), ("cwd", "/"), ("command", "x")):
            message = self.refused({"far": {"url": "https://example.org/", field: value}})
            self.assertIn(f"mcpServers.far.{field}: has no meaning for a server that is reached by HTTP", message)
        for field, value in (("headers", {"A": "b"}), ("ca_file", "x"), ("headers_command", {"A": "b"})):
            self.assertIn("that is run as a command", self.refused({"near": {"command": "x", field: value}}))

    def test_names_are_checked(self) -> None:
        for name in ("", "a__b", "a_", "_a", "-a", "a b", "a/b", "é", "x" * 33, "a\n"):
            self.assertIn("a server's name", self.refused({name: {"command": "x"}}))
        for name in ("a", "A-1", "a_b", "x" * 32):
            self.assertEqual(read({name: {"command": "x"}})[0].name, name)

    def test_what_is_wrong_is_named(self) -> None:
        self.assertIn("mcpServers.a.args", self.refused({"a": {"command": "x", "args": "y"}}))
        self.assertIn("autoApprove", self.refused({"a": {"command": "x", "autoApprove": ["z"]}}))
        self.assertIn("needs a command, or a url", self.refused({"a": {}}))
        self.assertIn("not an absolute path", self.refused({"a": {"command": "x", "sandbox": {"read": ["rel"]}}}))
        self.assertIn("mcpServers.a", self.refused({"a": {"command": "x", "sandbox": {"network": True}}}))
        self.assertIn("environment variable", self.refused({"a": {"command": "x", "env": {"A=B": "c"}}}))
        self.assertIn("version", self.refused({}, version=2))

    def test_what_is_no_file(self) -> None:
        twice = b'{"mcpServers": {}, "mcpServers": {}}'
        for text in (b"", b"{", b"[]", b"{}", b'{"mcpServers": []}', b"\xff", twice):
            with self.assertRaises(ConfigurationError):
                read_servers(text, "mcp-servers.json", workspace="/w", home="/h")
