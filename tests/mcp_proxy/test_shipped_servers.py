"""The shipped annotations against the real servers: no tool and no argument is missing; calls get their verdicts."""

from __future__ import annotations

import os
from typing import Any

from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.servers_config import CommandServer, ServerConfig
from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.loading import compiled_policy, default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.rules import Policy
from ironcurtain.policy.verdict import ToolCall
from tests.machine import demand_sandbox
from tests.mcp_proxy.npm import module
from tests.mcp_proxy.test_protocol import Base
from tests.mcp_proxy.test_real_servers import SCOPE, installed
from tests.policy.worlds import World, rule
from tests.programs import program

ASKED = "escalate structural-no-rule"
"""The default policy does not name these servers."""

SLACK = {"SLACK_BOT_TOKEN": "xoxb-none", "SLACK_TEAM_ID": "T0"}

CALLS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("sequential-thinking", "sequentialthinking", {
        "thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1,
    }, "allow think-aloud"),
    ("memory", "search_nodes", {"query": "x"}, "allow remember"),
    ("memory", "create_entities", {"entities": [{"name": "x", "entityType": "y", "observations": []}]},
     "escalate keep-in-memory"),
    ("memory", "delete_entities", {"entityNames": ["x"]}, "escalate keep-in-memory"),
    ("everything", "echo", {"message": "x"}, ASKED),
    ("everything", "gzip-file-as-resource", {"data": "https://a.test/x"}, ASKED),
    ("everything", "gzip-file-as-resource", {"data": "data:,x"}, "deny default-deny"),
    ("github", "get_file_contents", {"owner": "o", "repo": "r", "path": ".ssh/id_rsa"}, ASKED),
    ("github", "create_issue", {"owner": "o", "repo": "r", "title": "x"}, ASKED),
    ("postgres", "query", {"sql": "select 1"}, ASKED),
    ("slack", "slack_post_message", {"channel_id": "C", "text": "x"}, ASKED),
    ("slack", "slack_get_users", {}, ASKED),
    ("context7", "query-docs", {"libraryId": "/a/b", "query": "x"}, ASKED),
    ("playwright", "browser_navigate", {"url": "https://a.test/"}, ASKED),
    ("playwright", "browser_navigate", {"url": "file:///etc/passwd"}, "deny default-deny"),
    ("playwright", "browser_click", {"target": "e1"}, ASKED),
    ("playwright", "browser_file_upload", {"paths": ["/workspace/a"]}, ASKED),
    ("playwright", "browser_file_upload", {"paths": ["~/.ssh/key"]}, "deny structural-protected-path"),
    ("playwright", "browser_snapshot", {"filename": "~/.ssh/key"}, "deny structural-protected-path"),
    ("fetch", "fetch", {"url": "https://docs.python.org/3/"}, "allow fetch-documentation"),
    ("fetch", "fetch", {"url": "https://a.test/"}, "escalate fetch-elsewhere"),
    ("git", "git_status", {"repo_path": "/workspace"}, "allow structural-sandbox-allow"),
    ("time", "get_current_time", {"timezone": "UTC"}, "allow tell-the-time"),
)  # fmt: skip
"""Calls, and the decision and rule of the default policy."""

PERSONAL = (
    rule("mine", "allow", server=["github"], lists=[
        {"roles": ["github-owner"], "allowed": ["ada"], "matchType": "identifiers"},
    ]),
    rule("repositories", "allow", server=["github"], roles=["github-repo"]),
    rule("site", "allow", server=["playwright"], domains={"roles": ["fetch-url"], "allowed": ["*.a.test"]}),
    rule("pictures", "allow", server=["playwright"], paths={"roles": ["write-path"], "within": "/workspace/shots"}),
)  # fmt: skip
"""Rules that a person could write for these servers."""

PERSONAL_CALLS: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("github", "get_issue", {"owner": "ada", "repo": "r", "issue_number": 1}, "allow mine"),
    ("github", "get_issue", {"owner": "eve", "repo": "r", "issue_number": 1}, "deny default-deny"),
    ("playwright", "browser_navigate", {"url": "https://www.a.test/"}, "allow site"),
    ("playwright", "browser_navigate", {"url": "https://b.test/"}, "deny default-deny"),
    ("playwright", "browser_snapshot", {"filename": "shots/a.md"}, "allow pictures"),
    ("playwright", "browser_snapshot", {"filename": "/workspace/a.md"}, "deny default-deny"),
)


def servers() -> list[ServerConfig]:
    """:returns: the servers with annotations that are packages of other people."""
    node = program("node")

    def of_npm(name: str, *parts: str, arguments: tuple[str, ...] = (), **environment: str) -> ServerConfig:
        return CommandServer(name, node, (str(module(*parts)), *arguments), environment)

    def of_scope(name: str, *arguments: str, **environment: str) -> ServerConfig:
        return of_npm(name, SCOPE, f"server-{name}", "dist", "index.js", arguments=arguments, **environment)

    return [
        *map(of_scope, ("memory", "sequential-thinking", "everything", "github")),
        of_scope("postgres", "postgresql://localhost/none"),
        of_scope("slack", **SLACK),
        of_npm("playwright", "@playwright", "mcp", "cli.js"),
        of_npm("context7", "@upstash", "context7-mcp", "dist", "index.js"),
        *map(installed, ("mcp-server-fetch", "mcp-server-git", "mcp-server-time")),
    ]


class ShippedTests(Base):
    """Real servers in their sandboxes."""

    def setUp(self) -> None:
        super().setUp()
        demand_sandbox()
        self.world = World.make({"files": {"$HOME/.ssh/key": "x"}})
        self.addCleanup(self.world.remove)

    def verdicts(self, policy: Policy, calls: Any, tools: dict[tuple[str, str], ToolDefinition]) -> list[str]:
        """:returns: decision and rule of each call, judged with the real schemas."""
        world = self.world
        engine = PolicyEngine(
            policy,
            default_annotations(),
            paths=PathMap(world.workspace),
            home=world.home,
            protected=[f"{world.home}/.ssh"],
            servers={server: ServerBounds() for server, _ in tools},
        )
        found = []
        for server, tool, arguments, _ in calls:
            verdict = engine.evaluate(ToolCall(server, tool, arguments), tools[server, tool].schema)
            found.append(f"{verdict.decision} {verdict.rule}")
        return found

    async def test_annotations_fit_the_real_servers(self) -> None:
        configured = servers()
        bench = await self.bench(*configured, environ={**os.environ, "npm_config_offline": "true"})
        await bench.proxy.gate.settled(120)
        self.assertEqual(bench.proxy.failures, {})
        tools = {(tool.server, tool.name): tool for tool in bench.proxy.gate.tools()}
        self.assertEqual({server for server, _ in tools}, {server.name for server in configured})
        known = default_annotations().table()
        for (server, name), tool in tools.items():
            self.assertIn((server, name), known)
            declared = tool.schema.get("properties", {})
            self.assertEqual(declared.keys() - known[server, name].args.keys(), set(), f"{server} {name}")
        personal = compiled_policy({"rules": list(PERSONAL)})
        for policy, calls in ((default_policy(), CALLS), (personal, PERSONAL_CALLS)):
            self.assertEqual(self.verdicts(policy, calls, tools), [expected for *_, expected in calls])
