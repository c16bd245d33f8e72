"""Files of servers as other MCP clients have them, in ``clients/``."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, ServerConfig, read_servers

FILES = Path(__file__).parent / "clients"

ENVIRON = {
    "ISSUES_TOKEN": "issues-token-1",
    "DB_TOOLS": "/opt/db",
    "DB_URL": "postgres://ada:pw@db/x",
    "TICKETS_TOKEN": "tickets-token-1",
    "REMOTE_KEY": "remote-key-1",
    "FIGURES_TOKEN": "figures-token-1",
    "CODE_API_KEY": "code-key-1",
    "DOCS_TOKEN": "docs-token-1",
    "SOME_TOKEN": "some-token-1",
    "REVIEW_USER": "ada",
    "HUB_TOKEN": "hub-token-1",
    "HUB_TEAM": "red",
}


def read(client: str, environ: dict[str, str] = ENVIRON) -> dict[str, ServerConfig]:
    """:returns: the servers of a client's file, by name."""
    text = (FILES / f"{client}.json").read_text()
    found = read_servers(text, f"{client}.json", workspace="/srv/w", home="/home/ada", environ=environ)
    return {server.name: server for server in found}


class ClientTests(SynchronousTestCase):
    def command(self, server: ServerConfig, *argv: str, **environment: str) -> CommandServer:
        """Check what a server runs."""
        assert isinstance(server, CommandServer)
        self.assertEqual((server.command, *server.args), argv)
        self.assertEqual(server.environment, environment)
        return server

    def http(self, server: ServerConfig, url: str, **headers: str) -> HttpServer:
        """Check how a server is reached; ``_`` stands for ``-`` in the names of headers."""
        assert isinstance(server, HttpServer)
        self.assertEqual(server.url.reveal(), url)
        revealed = {name.replace("-", "_"): value.reveal() for name, value in server.headers.items()}
        self.assertEqual(revealed, headers)
        return server

    def noted(self, server: ServerConfig, *words: str) -> None:
        """Check that each of some fields is named once."""
        for word in words:
            self.assertEqual(sum(word in note for note in server.reading.notes), 1, (word, server.reading.notes))

    def test_every_file_is_read_without_problems(self) -> None:
        for path in FILES.glob("*.json"):
            for server in read(path.stem).values():
                problems = [] if (path.stem, server.name) != ("vscode", "wiki") else [server.reading.problems[0]]
                self.assertEqual(list(server.reading.problems), problems, path)

    def test_no_file_grants_anything(self) -> None:
        for path in FILES.glob("*.json"):
            for server in read(path.stem).values():
                self.assertEqual(server.agent_requests, frozenset())
                if isinstance(server, CommandServer):
                    self.assertEqual(server.sandbox, CommandServer("x", "y").sandbox)

    def test_claude_desktop(self) -> None:
        found = read("claude-desktop")
        self.command(found["notes"], "npx", "-y", "@example/notes-server", "/home/ada/notes")
        self.command(found["weather"], "uvx", "example-weather", WEATHER_API_KEY="wk-0123456789abcdef")

    def test_claude_code(self) -> None:
        found = read("claude-code")
        issues = self.http(found["issues"], "https://issues.example.org/mcp", Authorization="Bearer issues-token-1")
        self.assertEqual(issues.call_seconds, 600)
        self.noted(issues, "headersHelper (use headers_command)", "600 seconds")
        self.command(found["db"], "/opt/db/db-server", "--schema", "public", DB_URL="postgres://ada:pw@db/x")

    def test_cursor(self) -> None:
        found = read("cursor")
        tickets = self.command(
            found["tickets"],
            "node",
            "/srv/w/tools/tickets.js",
            "--cache=/home/ada/.cache/tickets",
            TICKETS_TOKEN="tickets-token-1",
        )
        self.noted(tickets, "envFile")
        self.noted(self.http(found["remote"], "https://mcp.example.org/mcp", X_Api_Key="remote-key-1"), "auth (log in")

    def test_vscode(self) -> None:
        found = read("vscode")
        (problem,) = found["wiki"].reading.problems
        self.assertIn("headers.Authorization: ${input:wiki-token} is asked for by VS Code only", problem)
        self.noted(found["wiki"], "gallery", "version")
        self.noted(self.command(found["browser"], "npx", "-y", "@example/browser@latest"), "dev", "sandboxEnabled")
        self.command(read("vscode-settings")["time"], "uvx", "example-time")

    def test_cline(self) -> None:
        found = read("cline")
        self.assertEqual(list(found), ["search", "hosted"])
        search = self.command(found["search"], "node", "/home/ada/search/index.js", SEARCH_KEY="sk-0123456789abcdef")
        self.assertEqual(search.call_seconds, 30)
        self.noted(search, "ignored: autoApprove (what is allowed is said in policy.toml)")
        self.http(found["hosted"], "https://hosted.example.org/mcp")

    def test_roo_code(self) -> None:
        found = read("roo-code")
        server = self.command(found["shellcheck"], "shellcheck-server", LEVEL="3", COLOR="false")
        self.assertEqual((server.cwd, server.call_seconds), ("/home/ada/project", 1800))
        self.noted(server, "alwaysAllow (what is allowed", "disabledTools (agents see every tool", "watchPaths")
        self.http(found["cloud"], "https://cloud.example.org/mcp", X_Version="2")

    def test_windsurf(self) -> None:
        found = read("windsurf")
        self.http(found["figures"], "https://figures.example.org/mcp", Authorization="Bearer figures-token-1")
        self.command(found["local-figures"], "python3", "-m", "figures", "--stdio")

    def test_gemini_cli(self) -> None:
        found = read("gemini-cli")
        code = self.command(found["code"], "python", "-m", "code_server", API_KEY="code-key-1")
        self.assertEqual((code.cwd, code.call_seconds), ("./server", 15))
        self.noted(code, "trust", "includeTools", "description")
        docs = self.http(found["docs"], "https://docs.example.org/mcp")
        self.assertEqual(docs.call_seconds, 5)
        self.noted(docs, "ignored: url (another field says the same)", "oauth")

    def test_kiro(self) -> None:
        found = read("kiro")
        docs = self.command(
            found["aws-docs"], "uvx", "example.docs-server@latest", LOG_LEVEL="ERROR", DOCS_TOKEN="docs-token-1"
        )
        self.assertEqual(docs.call_seconds, 120)
        self.noted(docs, "autoApprove", "disabledTools")
        self.noted(self.http(found["far"], "https://far.example.org/mcp"), "env (the server is reached by HTTP)")

    def test_zed(self) -> None:
        found = read("zed")
        self.assertEqual(list(found), ["graph", "older"])
        self.command(found["graph"], "/opt/graph/bin/server", "--stdio", GRAPH_HOME="/home/ada/graph")
        self.noted(self.command(found["older"], "older-server", "run", A="b"), "settings")

    def test_opencode(self) -> None:
        found = read("opencode")
        self.assertEqual(list(found), ["everything"])
        server = self.command(found["everything"], "npx", "-y", "@example/everything", SOME_TOKEN="some-token-1")
        self.assertEqual(server.call_seconds, 10)

    def test_codex(self) -> None:
        found = read("codex")
        review = self.command(found["review"], "review-server", "--json", REVIEW_USER="ada")
        self.assertEqual(review.call_seconds, 7200)
        self.noted(review, "enabled_tools", "default_tools_approval_mode")
        hub = {"Authorization": "Bearer hub-token-1", "X_Team": "red", "X_Region": "eu"}
        self.http(found["hub"], "https://hub.example.org/mcp", **hub)

    def test_variables_that_are_not_set_are_named(self) -> None:
        for client, server, variable in (
            ("claude-code", "issues", "ISSUES_TOKEN"),
            ("gemini-cli", "code", "CODE_API_KEY"),
            ("opencode", "everything", "SOME_TOKEN"),
            ("codex", "hub", "HUB_TOKEN"),
        ):
            problems = read(client, {})[server].reading.problems
            self.assertTrue(any(f"variable {variable} is not set" in problem for problem in problems), problems)


class PlaceTests(SynchronousTestCase):
    def refused(self, **content: object) -> str:
        """:returns: the message that a file, or its first server, is refused with."""
        try:
            server, *_ = read_servers(json.dumps(content), "f.json", workspace="/", home="/", environ={})
        except ConfigurationError as e:
            return str(e)
        return server.reading.problems[0]

    def test_two_tables_of_servers_are_refused(self) -> None:
        entry = {"a": {"command": "x"}}
        for other in ("servers", "context_servers", "mcp_servers"):
            self.assertIn('there are servers in "mcpServers", too', self.refused(mcpServers=entry, **{other: entry}))

    def test_a_file_without_servers_says_how_they_are_written(self) -> None:
        for content in ({}, {"a": {"b": "x"}}, {"mcp": {"allowed": ["a"]}}, {"extensions": {"a": {"enabled": True}}}):
            self.assertIn('mcpServers: is missing: the servers stand in {"mcpServers"', self.refused(**content))

    def test_mistakes_are_placed_in_the_table_of_the_client(self) -> None:
        self.assertIn("f.json:1: servers.a.args: must be a list, not", self.refused(servers={"a": {"args": {"y": 1}}}))
        self.assertIn("f.json:1: servers.a.sandbx: ", self.refused(servers={"a": {"sandbx": "none"}}))
