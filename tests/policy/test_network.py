"""Connections and requests as calls of the server ``network``."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.policy.loading import compiled_policy, default_annotations, default_policy
from ironcurtain.policy.network import SCHEMAS, canonical_host
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.telemetry import entries
from ironcurtain.policy.verdict import Reversal, ToolCall, Verdict

PATHS, HOME = PathMap("/nonexistent/work"), "/nonexistent/home"


def rule(name: str, then: str, *hosts: str, tool: str = "connect", **conditions: Any) -> dict[str, Any]:
    """:returns: a rule for some hosts of the network."""
    role = "proxy-domain" if tool == "connect" else "fetch-url"
    domains = {"domains": {"roles": [role], "allowed": list(hosts)}} if hosts else {}
    return {"name": name, "if": {"server": ["network"], "tool": [tool], **domains, **conditions}, "then": then}


def engine(*rules: dict[str, Any], lists: dict[str, Any] | None = None) -> PolicyEngine:
    """:returns: an engine with these rules."""
    policy = compiled_policy({"rules": list(rules), "lists": lists or {}})
    return PolicyEngine(policy, default_annotations(), paths=PATHS, home=HOME)


def connect(
    judge: PolicyEngine, host: str, port: Any = 443, party: str = "the agent", history: CallHistory = NO_HISTORY
) -> Verdict:
    """:returns: the verdict on a connection."""
    call = ToolCall("network", "connect", {"host": host, "port": port, "party": party})
    return judge.evaluate(call, SCHEMAS["connect"], history=history)


def request(judge: PolicyEngine, url: str, method: str = "GET") -> Verdict:
    """:returns: the verdict on a request."""
    call = ToolCall("network", "request", {"method": method, "url": url, "party": "the agent"})
    return judge.evaluate(call, SCHEMAS["request"])


def said(verdict: Verdict) -> str:
    """:returns: decision and rule."""
    return f"{verdict.decision} {verdict.rule}"


class ConnectTests(SynchronousTestCase):
    def test_connection_without_a_rule_is_asked(self) -> None:
        for judge in (engine(), PolicyEngine(default_policy(), default_annotations(), paths=PATHS, home=HOME)):
            verdict = connect(judge, "api.example.com")
            self.assertEqual(said(verdict), "escalate structural-network-ask")
            self.assertIn("the agent wants to connect to api.example.com:443", verdict.reason)
            self.assertEqual(verdict.asking, ("structural-network-ask",))
            self.assertEqual(verdict.reversal, Reversal.REMOTE)

    def test_rules_decide_by_host(self) -> None:
        judge = engine(
            rule("no", "deny", "*.evil.test"), rule("yes", "allow", "@web"), lists={"web": {"values": ["*.test"]}}
        )
        for host, expected in (
            ("a.test", "allow yes"),
            ("A.Test.", "allow yes"),
            ("evil.test", "deny no"),
            ("x.EVIL.test", "deny no"),
            ("badtest", "escalate structural-network-ask"),
            ("xn--bcher-kva.test", "allow yes"),
        ):
            self.assertEqual(said(connect(judge, host)), expected, host)

    def test_permission_covers_the_ports_of_the_web_unless_it_names_one(self) -> None:
        judge = engine(rule("web", "allow", "a.test", "db.test:5432", "*.x.test:22", "[2606:4700::1]:853"))
        for host, port, expected in (
            ("a.test", 443, "allow"),
            ("a.test", 80, "allow"),
            ("a.test", 22, "escalate"),
            ("db.test", 5432, "allow"),
            ("db.test", 443, "escalate"),
            ("y.x.test", 22, "allow"),
            ("y.x.test", 443, "escalate"),
            ("2606:4700::1", 853, "allow"),
            ("2606:4700::1", 443, "escalate"),
        ):
            self.assertEqual(connect(judge, host, port).decision, expected, (host, port))

    def test_denial_covers_every_port_unless_it_names_one(self) -> None:
        judge = engine(rule("no", "deny", "a.test", "b.test:22"), rule("yes", "allow", "*", "*:22", "*:25"))
        for host, port, expected in (
            ("a.test", 25, "deny"),
            ("a.test", 443, "deny"),
            ("b.test", 22, "deny"),
            ("b.test", 25, "allow"),
            ("b.test", 443, "allow"),
        ):
            self.assertEqual(connect(judge, host, port).decision, expected, (host, port))

    def test_wildcard_permits_no_address(self) -> None:
        judge = engine(rule("all", "allow", "*", "*:53"))
        self.assertEqual(said(connect(judge, "8.8.8.8")), "escalate structural-network-ask")
        self.assertEqual(said(connect(judge, "8.8.8.8", 53)), "escalate structural-network-ask")
        self.assertEqual(said(connect(engine(rule("one", "allow", "8.8.8.8:53")), "8.8.8.8", 53)), "allow one")

    def test_permission_must_name_the_server(self) -> None:
        everything = {"name": "all", "if": {"roles": ["proxy-domain"]}, "then": "allow"}
        self.assertEqual(said(connect(engine(everything), "a.test")), "escalate structural-network-ask")
        self.assertEqual(said(connect(engine({**everything, "then": "deny"}), "a.test")), "deny all")

    def test_private_host_needs_its_exact_name(self) -> None:
        judge = engine(
            rule("local", "allow", "127.0.0.1:5432", "localhost:3000", "10.1.2.3"),
            rule("asked", "escalate", "192.168.1.7:80"),
            rule("wide", "allow", "*", "*.localhost:80", "*:5432"),
            rule("rest", "escalate"),
        )
        for host, port, expected in (
            ("127.0.0.1", 5432, "allow local"),
            ("127.0.0.1", 5433, "deny structural-private-address"),
            ("localhost", 3000, "allow local"),
            ("LOCALHOST.", 3000, "allow local"),
            ("localhost", 443, "deny structural-private-address"),
            ("api.localhost", 80, "deny structural-private-address"),
            ("10.1.2.3", 443, "allow local"),
            ("10.1.2.3", 22, "deny structural-private-address"),
            ("192.168.1.7", 80, "escalate asked"),
            ("169.254.169.254", 80, "deny structural-private-address"),
            ("::1", 5432, "deny structural-private-address"),
            ("fd00::1", 443, "deny structural-private-address"),
            ("0.0.0.0", 5432, "deny structural-private-address"),
            ("8.8.8.8", 53, "escalate rest"),
        ):
            self.assertEqual(said(connect(judge, host, port)), expected, (host, port))

    def test_unclear_host_is_denied(self) -> None:
        judge = engine(rule("all", "allow", "*", "127.0.0.1"))
        for host in (
            *("0x7f.1", "2130706433", "127.1", "0177.0.0.1", "::ffff:127.0.0.1", "[::ffff:7f00:1]", "64:ff9b::7f00:1"),
            *(
                "a.test\0.evil.test",
                "a test",
                "a.test..",
                "a%2etest",
                "b\u00fccher.test",
                "me@a.test",
                "a.test:443",
                "",
            ),
            *("*.a.test", "a/b", "a\\b", "[a.test]", "fe80::1%eth0", "xn--a\u00df.test", "-a.test", "a" * 300),
        ):
            self.assertEqual(said(connect(judge, host, 80)), "deny default-deny", host)

    def test_wrong_arguments_are_denied(self) -> None:
        for port in (0, 65536, -1, True, "443", None, 1.5):
            self.assertEqual(said(connect(engine(), "a.test", port)), "deny invalid-arguments", port)
        more = ToolCall("network", "connect", {"host": "a.test", "port": 1, "via": "b.test"})
        self.assertEqual(said(engine().evaluate(more, SCHEMAS["connect"])), "deny invalid-arguments")
        for tool in ("connect", "request"):
            self.assertEqual(engine().evaluate_assumed(ToolCall("network", tool, {})).decision, "deny")

    def test_telemetry_is_refused_unless_a_rule_is_about_it(self) -> None:
        host = "statsig.anthropic.com"
        self.assertEqual(said(connect(engine(), host)), "deny structural-telemetry")
        self.assertEqual(said(connect(engine(), host, 22)), "escalate structural-network-ask")
        self.assertEqual(said(connect(engine(rule("yes", "allow", host)), host)), "allow yes")
        self.assertEqual(said(connect(engine(rule("ask", "escalate")), host)), "escalate ask")

    def test_every_telemetry_host_can_be_matched(self) -> None:
        for entry in entries():
            self.assertIn(entry.status, (403, 404))
            for host in entry.hosts:
                found = connect(engine(), host.replace("*.", "x."))
                self.assertEqual(said(found), "deny structural-telemetry", host)
                self.assertIn(entry.what, found.reason)

    def test_rules_can_name_who_wants_it(self) -> None:
        listed = [{"roles": ["network-party"], "allowed": ["server github"], "matchType": "identifiers"}]
        judge = engine(rule("github", "allow", "api.github.com", lists=listed))
        self.assertEqual(said(connect(judge, "api.github.com", party="server github")), "allow github")
        self.assertEqual(connect(judge, "api.github.com", party="the agent").decision, "escalate")
        self.assertEqual(connect(judge, "github.com", party="server github").decision, "escalate")
        denied = engine(rule("no-server", "deny", lists=[{**listed[0], "allowed": ["server x"]}]))
        self.assertEqual(said(connect(denied, "a.test", party="server X")), "deny no-server")
        self.assertEqual(connect(denied, "a.test").decision, "escalate")

    def test_rules_can_name_earlier_calls(self) -> None:
        after = rule("after", "deny", after={"server": ["filesystem"], "tool": ["read_text_file"]})
        often = rule("often", "deny", "a.test", rate={"calls": 2, "seconds": 60})
        judge = engine(after, often, rule("yes", "allow", "a.test"))
        history = CallHistory(now=10.0)
        self.assertEqual(said(connect(judge, "a.test", history=history)), "allow yes")
        read = history.made("filesystem", "read_text_file", 9.0)
        self.assertEqual(said(connect(judge, "a.test", history=read)), "deny after")
        made = history.made("network", "connect", 8.0).made("network", "connect", 9.0)
        self.assertEqual(said(connect(judge, "a.test", history=made)), "deny often")

    def test_open_hosts_are_known(self) -> None:
        party = [{"roles": ["network-party"], "allowed": ["shell"], "matchType": "identifiers"}]
        judge = engine(
            rule("a", "allow", "a.test", "@more"),
            rule("b", "escalate", "b.test"),
            rule("c", "allow", "c.test", lists=party),
            rule("d", "allow", "d.test", tool="request"),
            rule("e", "allow", "e.test", after={"server": ["git"]}),
            lists={"more": {"values": ["*.x.test:22"]}},
        )
        self.assertEqual(judge.open_hosts, ("a.test", "*.x.test:22"))

    def test_host_is_named_exactly(self) -> None:
        judge = engine(
            rule("a", "allow", "gitea.lan", "*.lan"), rule("b", "deny", "b.lan"), rule("c", "escalate", "c.lan:22")
        )
        for host, port, expected in (
            ("gitea.lan", 443, True),
            ("GITEA.lan.", 443, True),
            ("gitea.lan", 22, False),
            ("other.lan", 443, False),
            ("b.lan", 443, False),
            ("c.lan", 22, True),
            ("0x7f.1", 22, False),
        ):
            call = ToolCall("network", "connect", {"host": host, "port": port})
            self.assertIs(judge.names_host(call), expected, (host, port))

    @given(st.text(max_size=40))
    def test_any_text_has_one_canonical_form_or_none(self, text: str) -> None:
        try:
            host = canonical_host(text)
        except ValueError:
            self.assertEqual(connect(engine(), text).decision, "deny")
            return
        self.assertEqual(canonical_host(host.name), host)
        self.assertEqual(connect(engine(), text).arguments["host"], host.name)

    @given(st.ip_addresses(), st.integers(1, 65535))
    def test_no_private_address_is_reached_by_wide_rules(self, address: Any, port: int) -> None:
        judge = engine(rule("all", "allow", "*", f"*:{port}"), rule("rest", "escalate"))
        verdict = connect(judge, str(address), port)
        self.assertEqual(verdict.decision == "deny", verdict.rule != "rest")
        if not address.is_global:
            self.assertEqual(verdict.decision, "deny")


class RequestTests(SynchronousTestCase):
    def test_request_without_a_rule_goes_the_way_of_its_connection(self) -> None:
        judge = engine(rule("yes", "allow", "a.test"))
        self.assertEqual(said(request(judge, "https://a.test/x?y")), "allow structural-connection-allowed")

    def test_rules_about_addresses_limit_requests(self) -> None:
        judge = engine(
            rule("ask", "escalate", "a.test", tool="request"),
            {"name": "no", "if": {"domains": {"roles": ["fetch-url"], "allowed": ["bin.test"]}}, "then": "deny"},
        )
        self.assertEqual(said(request(judge, "https://A.test/x", "POST")), "escalate ask")
        self.assertEqual(said(request(judge, "https://bin.test/")), "deny no")
        self.assertEqual(said(request(judge, "https://c.test/")), "allow structural-connection-allowed")

    def test_rules_about_methods_leave_nothing_but_reading(self) -> None:
        """A host that is read can be a drop box: gists, issues, releases."""
        reads = [{"roles": ["http-method"], "allowed": ["GET", "HEAD"], "matchType": "identifiers"}]
        judge = engine(
            rule("reading", "allow", "a.test", tool="request", lists=reads),
            rule("else", "deny", "a.test", tool="request"),
        )
        for method in ("GET", "HEAD"):
            self.assertEqual(said(request(judge, "https://a.test/gists", method)), "allow reading")
        for method in ("POST", "PUT", "PATCH", "DELETE", "", "GET,POST", "GETX"):
            self.assertEqual(said(request(judge, "https://a.test/gists", method)), "deny else", method)
        writes = [{"roles": ["http-method"], "allowed": ["POST"], "matchType": "identifiers"}]
        judge = engine(rule("drop-box", "deny", "a.test", tool="request", lists=writes))
        self.assertEqual(said(request(judge, "https://a.test/gists", "POST")), "deny drop-box")
        self.assertEqual(said(request(judge, "https://a.test/gists")), "allow structural-connection-allowed")

    def test_unclear_address_is_denied(self) -> None:
        for url in (
            "https://0x7f.1/",
            "ftp://a.test/",
            "https://a.test\\@b.test/",
            "https:a.test",
            "//a.test/",
            "x",
            "",
        ):
            self.assertEqual(said(request(engine(), url)), "deny default-deny", url)


class PortPatternTests(SynchronousTestCase):
    def test_port_counts_only_where_a_target_has_one(self) -> None:
        patterns = DomainPatterns(["a.test:22", "[::1]:22"])
        self.assertFalse(patterns.match_host("a.test"))
        self.assertTrue(patterns.may_match_host("a.test"))
        self.assertTrue(patterns.may_match_host("[::1]"))
        self.assertFalse(patterns.may_match_host("b.test"))
