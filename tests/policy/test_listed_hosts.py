"""Connections of servers for which a person lists hosts."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.loading import compiled_policy, default_annotations
from ironcurtain.policy.network import ASK_RULE
from tests.policy.test_network import HOME, PATHS, connect, rule, said


def listing(*rules: dict[str, Any]) -> PolicyEngine:
    """:returns: an engine for a server that may reach some hosts."""
    bounds = {"db": ServerBounds(("db.example.com:5432", "10.0.0.5:5432", "*.example.org")), "free": ServerBounds()}
    policy = compiled_policy({"rules": list(rules)})
    return PolicyEngine(policy, default_annotations(), paths=PATHS, home=HOME, servers=bounds)


class ListedTests(SynchronousTestCase):
    """What a person listed for a server in ``mcp-servers.json``."""

    def test_listed_hosts_are_allowed_on_their_ports_and_others_denied(self) -> None:
        for host, port, expected in (
            ("db.example.com", 5432, "allow"),
            ("10.0.0.5", 5432, "allow"),
            ("a.example.org", 443, "allow"),
            ("db.example.com", 443, "deny"),
            ("10.0.0.6", 5432, "deny"),
            ("badexample.org", 443, "deny"),
            ("api.example.com", 443, "deny"),
        ):
            verdict = connect(listing(), host, port, "server db")
            self.assertEqual(said(verdict), f"{expected} structural-server-network", host)

    def test_rules_can_deny_and_ask_but_not_add(self) -> None:
        judge = listing(rule("no", "deny", "db.example.com:5432"), rule("yes", "allow", "*"))
        self.assertEqual(said(connect(judge, "db.example.com", 5432, "server db")), "deny no")
        self.assertEqual(said(connect(judge, "api.example.com", 443, "server db")), "deny structural-server-network")
        judge = listing(rule("ask", "escalate", "*.example.org"))
        self.assertEqual(said(connect(judge, "a.example.org", 443, "server db")), "escalate ask")

    def test_the_list_of_one_server_is_for_this_server_only(self) -> None:
        for party in ("the agent", "server free", "server db2", "shell"):
            self.assertEqual(connect(listing(), "db.example.com", 5432, party).rule, ASK_RULE)
