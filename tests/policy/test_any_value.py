"""A denial holds for any value that can match, a permission only for values that all certainly do."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.files import HOST_FILES, HostFiles
from ironcurtain.policy.history import CREATED_LIMIT, CallHistory
from ironcurtain.policy.verdict import SEVERITY, Decision, ToolCall, Verdict
from tests.examples import examples
from tests.policy.worlds import World, rule

ANNOTATIONS = {
    "servers": {
        "web": {"tools": [{"toolName": "get", "args": {"urls": ["fetch-url"], "note": ["none"]}}]},
        "hub": {
            "tools": [
                {"toolName": "open", "args": {"owners": ["github-owner"], "repos": ["github-repo"]}},
                {"toolName": "list", "args": {"owners": ["github-owner"]}},
            ]
        },
        "mail": {
            "tools": [
                {"toolName": "send", "args": {"to": ["email-address"]}},
                {"toolName": "post", "args": {"to": ["email-address"], "body": ["email-body"], "id": ["none"]}},
                {"toolName": "list", "args": {"id": ["none"]}},
            ]
        },
        "net": {"tools": [{"toolName": "dial", "args": {"hosts": ["proxy-domain"]}}]},
        "vcs": {"tools": [{"toolName": "push", "args": {"remotes": ["git-remote-url"]}}]},
        "filesystem": {
            "tools": [
                {"toolName": "move", "args": {"from": ["read-path", "delete-path"], "to": ["write-path"]}},
                {"toolName": "read", "args": {"paths": ["read-path"]}},
                {"toolName": "write", "args": {"paths": ["write-path"]}},
            ]
        },
    }
}
EVIL, OK = "https://evil.test/", "https://ok.test/"


class AnyValueCase(SynchronousTestCase):
    """An engine over tools whose arguments are lists."""

    def setUp(self) -> None:
        self.world = World.make({"dirs": ["$HOME/docs/pay", "$WORKSPACE/src"], "files": {"$HOME/docs/pay/a": "x"}})
        self.addCleanup(self.world.remove)

    def verdict(self, rules: Any, tool: str, history: CallHistory | None = None, **arguments: Any) -> Verdict:
        """:param tool: ``server.tool``, which takes any arguments."""
        engine = self.world.engine(rules, annotations=ANNOTATIONS)
        schema = {"type": "object", "properties": {name: {} for name in arguments}}
        server, _, name = tool.partition(".")
        call = ToolCall(server, name, arguments)
        return engine.evaluate(call, schema, history=history or CallHistory())

    def decision(self, rules: Any, tool: str, **arguments: Any) -> str:
        """:returns: the decision about a call."""
        return str(self.verdict(rules, tool, **arguments).decision)


class AddressTests(AnyValueCase):
    """Rules about addresses."""

    ALLOW_ALL = rule("all", "allow", roles=["fetch-url"])

    def rules(self, then: str, *hosts: str) -> list[dict[str, Any]]:
        """:returns: a rule about hosts before one that allows everything."""
        return [rule("some", then, domains={"roles": ["fetch-url"], "allowed": list(hosts)}), self.ALLOW_ALL]

    def test_one_of_several_addresses_is_enough_for_a_denial_or_a_question(self) -> None:
        for then in ("deny", "escalate"):
            for urls in permutations((EVIL, OK, "https://x.test/")):
                self.assertEqual(self.decision(self.rules(then, "evil.test"), "web.get", urls=list(urls)), then)
            self.assertEqual(self.decision(self.rules(then, "evil.test"), "web.get", urls=[OK]), "allow")

    def test_a_permission_needs_all_addresses(self) -> None:
        allow = [rule("ok", "allow", domains={"roles": ["fetch-url"], "allowed": ["ok.test"]})]
        ask = [*allow, rule("rest", "escalate", roles=["fetch-url"])]
        self.assertEqual(self.decision(allow, "web.get", urls=[OK, OK]), "allow")
        for urls in ([OK, EVIL], [EVIL, OK]):
            self.assertEqual(self.decision(allow, "web.get", urls=urls), "deny")
            self.assertEqual(self.decision(ask, "web.get", urls=urls), "escalate")

    def test_a_question_about_one_address_hides_no_denial_of_another(self) -> None:
        ask = rule("ask", "escalate", domains={"roles": ["fetch-url"], "allowed": ["ok.test"]})
        deny = rule("deny", "deny", domains={"roles": ["fetch-url"], "allowed": ["evil.test"]})
        for urls in ([OK, EVIL], [EVIL, OK]):
            self.assertEqual(self.decision([ask, deny, self.ALLOW_ALL], "web.get", urls=urls), "deny")

    def test_an_address_that_two_programs_read_differently_is_refused_whatever_the_rules_say(self) -> None:
        for url in (
            r"https://ok.test\@evil.test/",
            "https://ok.test@x@evil.test/",
            "https:evil.test",
            "//evil.test/",
            "evil.test",
            "https://evil\u3002test/",
            "https://evil.test./",
            "https://127.1/",
            "https://ok.test#@evil.test/",
            "\thttps://evil.test/",
            "https://evil.te\nst/",
            "file:///etc/passwd",
            "",
        ):
            for urls in ([url], [OK, url]):
                verdict = self.verdict([self.ALLOW_ALL], "web.get", urls=urls)
                self.assertEqual((verdict.decision, verdict.rule), (Decision.DENY, "default-deny"), url)
                self.assertIn("ambiguous", verdict.reason)

    def test_a_remote_that_is_not_known_may_be_a_denied_one(self) -> None:
        deny = rule("deny", "deny", domains={"roles": ["git-remote-url"], "allowed": ["evil.test"]})
        rules = [deny, rule("all", "allow", roles=["git-remote-url"])]
        for remotes, expected in (
            (["https://ok.test/a"], "allow"),
            (["https://ok.test/a", "git@evil.test:a"], "deny"),
            (["origin"], "deny"),
            (["/srv/x"], "allow"),
        ):
            self.assertEqual(self.decision(rules, "vcs.push", remotes=remotes), expected, remotes)

    @settings(max_examples=examples(150), deadline=None, database=None)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["allow", "escalate", "deny"]), st.sampled_from(["a.test", "*.b.test", "*", "c.test"])
            ),
            max_size=4,
        ),
        st.lists(st.sampled_from(["a", "b", "x.b", "c", "d"]), min_size=1, max_size=3),
    )
    def test_a_call_with_several_addresses_is_no_freer_than_with_each_alone(
        self, written: list[tuple[str, str]], hosts: list[str]
    ) -> None:
        rules = [
            rule(f"r{index}", then, domains={"roles": ["fetch-url"], "allowed": [host]})
            for index, (then, host) in enumerate(written)
        ]
        urls = [f"https://{host}.test/" for host in hosts]
        together = self.verdict(rules, "web.get", urls=urls).decision
        alone = [self.verdict(rules, "web.get", urls=[url]).decision for url in urls]
        self.assertGreaterEqual(SEVERITY[together], max(SEVERITY[each] for each in alone))


class ListTests(AnyValueCase):
    """Rules about lists, and paths."""

    def test_one_listed_value_is_enough_for_a_denial(self) -> None:
        for tool, role, name, kind, listed, others in (
            ("mail.send", "email-address", "to", "emails", "eve@evil.test", "ann@ok.test"),
            ("hub.list", "github-owner", "owners", "identifiers", "evil", "acme"),
            ("net.dial", "proxy-domain", "hosts", "domains", "evil.test", "ok.test"),
        ):
            condition = [{"roles": [role], "allowed": [listed], "matchType": kind}]
            rules = [rule("deny", "deny", lists=condition), rule("all", "allow", server=[tool.partition(".")[0]])]
            for values, expected in (
                ([others], "allow"),
                ([others, listed], "deny"),
                ([listed.upper(), others], "deny"),
            ):
                self.assertEqual(self.decision(rules, tool, **{name: values}), expected, values)
            allow = [rule("some", "allow", lists=condition)]
            self.assertEqual(self.decision(allow, tool, **{name: [listed, others]}), "deny")
            self.assertEqual(self.decision(allow, tool, **{name: [listed, listed]}), "allow")

    def test_a_question_about_one_value_hides_no_denial_of_another(self) -> None:
        def about(then: str, owner: str) -> dict[str, Any]:
            return rule(then, then, lists=[{"roles": ["github-owner"], "allowed": [owner], "matchType": "identifiers"}])

        rules = [about("escalate", "acme"), about("deny", "evil")]
        for owners in (["acme", "evil"], ["evil", "acme"]):
            verdict = self.verdict(rules, "hub.list", owners=owners)
            self.assertEqual((verdict.decision, verdict.rule), (Decision.DENY, "deny"))

    def test_a_value_that_is_no_text_can_be_any(self) -> None:
        condition = [{"roles": ["email-address"], "allowed": ["eve@evil.test"], "matchType": "emails"}]
        rules = [rule("deny", "deny", lists=condition), rule("all", "allow", server=["mail"])]
        for to in (
            {"address": "eve@evil.test"},
            ["ann@ok.test", {"a": 1}],
            "Eve <eve@evil.test>",
            "ann@ok.test,eve@evil.test",
        ):
            self.assertEqual(self.decision(rules, "mail.send", to=to), "deny", to)

    def test_a_permission_of_roles_needs_the_roles_of_all_arguments(self) -> None:
        for tool, roles, allowed in (
            ("mail.post", ["email-address"], False),
            ("mail.post", ["none"], False),
            ("mail.post", ["email-body", "email-address"], True),
            ("mail.send", ["email-address"], True),
            ("mail.list", ["none"], True),
        ):
            for then, decision in (("allow", "allow" if allowed else "deny"), ("escalate", "escalate")):
                rules = [rule("r", then, roles=roles)]
                self.assertEqual(self.decision(rules, tool), decision, (tool, roles))

    def test_all_lists_of_a_denial_need_a_value(self) -> None:
        lists = [
            {"roles": ["github-owner"], "allowed": ["evil"], "matchType": "identifiers"},
            {"roles": ["github-repo"], "allowed": ["app"], "matchType": "identifiers"},
        ]
        rules = [rule("deny", "deny", lists=lists), rule("all", "allow", server=["hub"])]
        for owners, repos, expected in (
            (["evil"], ["app"], "deny"),
            (["acme", "evil"], ["other", "app"], "deny"),
            (["acme"], ["app"], "allow"),
            (["evil"], ["other"], "allow"),
        ):
            self.assertEqual(self.decision(rules, "hub.open", owners=owners, repos=repos), expected)

    def test_moving_a_directory_moves_what_is_denied_in_it(self) -> None:
        allow = rule("all", "allow", paths={"roles": ["read-path", "delete-path"], "within": "~"})
        for role in ("read-path", "delete-path"):
            deny = rule("pay", "deny", paths={"roles": [role], "within": "~/docs/pay"})
            for source, expected in (("~/docs", "deny"), ("~", "deny"), ("~/other", "allow")):
                arguments = {"from": source, "to": "/workspace/d"}
                self.assertEqual(self.decision([deny, allow], "filesystem.move", **arguments), expected, source)
            self.assertEqual(self.decision([deny, allow], "filesystem.read", paths=["~/docs"]), "allow")

    def test_a_denied_directory_has_other_names_where_the_file_system_ignores_case(self) -> None:
        class IgnoringCase(HostFiles):
            def same(self, left: str, right: str) -> bool:
                return left.casefold() == right.casefold()

        paths = {"roles": ["read-path"], "within": "~/docs/pay"}
        allow = rule("all", "allow", paths={**paths, "within": "~"})
        for then, files, path, expected in (
            ("deny", IgnoringCase(), "~/DOCS/Pay/a", "deny"),
            ("deny", IgnoringCase(), "~/DOCS/PayX/a", "allow"),
            ("deny", HOST_FILES, "~/DOCS/Pay/a", "allow"),
            ("deny", HOST_FILES, "~/Docs/Pay/a", "allow"),
            ("allow", IgnoringCase(), "~/DOCS/Pay/a", "deny"),
        ):
            rules = [rule("r", then, paths=paths), *([allow] if then == "deny" else [])]
            engine = self.world.engine(rules, annotations=ANNOTATIONS, view=files)
            call = ToolCall("filesystem", "read", {"paths": [path]})
            verdict = engine.evaluate(call, {"type": "object", "properties": {"paths": {}}})
            self.assertEqual(str(verdict.decision), expected, (then, path))

    def test_a_denial_of_a_part_of_the_workspace_holds_there(self) -> None:
        for within in ("/workspace/src", "/workspace"):
            deny = rule("src", "deny", paths={"roles": ["write-path"], "within": within})
            self.assertEqual(self.decision([deny], "filesystem.write", paths=["/workspace/src/a"]), "deny")
            self.assertEqual(self.decision([deny], "filesystem.read", paths=["/workspace/src/a"]), "allow")
        self.assertEqual(
            self.decision([rule("home", "deny", paths={"roles": ["write-path"], "within": "/"})], "filesystem.write",
                          paths=["/workspace/src/a"]), "allow")  # fmt: skip

    def test_who_created_a_file_is_uncertain_once_the_history_is(self) -> None:
        paths = {"roles": ["read-path"], "within": "~"}
        full = CallHistory(created=frozenset(map(str, range(CREATED_LIMIT))))
        for history, created, then, expected in (
            (CallHistory(), True, "deny", "allow"),
            (full, True, "deny", "deny"),
            (CallHistory(complete=False), False, "deny", "deny"),
            (CallHistory(complete=False), False, "allow", "escalate"),
            (CallHistory(), False, "allow", "allow"),
        ):
            rest = rule("rest", "escalate" if then == "allow" else "allow", paths=paths)
            rules = [rule("r", then, paths={**paths, "created": created}), rest]
            verdict = self.verdict(rules, "filesystem.read", history, paths=["~/docs/pay/a"])
            self.assertEqual(str(verdict.decision), expected, (created, then))
