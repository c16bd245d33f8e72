"""Rules that need the approvals of two people."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.explain import explain
from ironcurtain.policy.loading import load_policy
from ironcurtain.policy.verdict import Automatic, ToolCall
from tests.audit.doubles import scratch
from tests.policy.worlds import World, rule

FETCH = rule("fetch", "escalate", server=["fetch"])


class LoadingTests(SynchronousTestCase):
    def load(self, lines: str) -> None:
        path = Path(scratch(self)) / "policy.toml"
        path.write_text(f'[[rules]]\nname = "push"\nif = {{ server = ["git"] }}\n{lines}\n')
        self.rule = load_policy(path).rules[0]

    def test_one_approval_unless_told(self) -> None:
        self.load('then = "escalate"')
        self.assertEqual(self.rule.approvals, 1)
        self.load('then = "escalate"\napprovals = 2')
        self.assertEqual(self.rule.approvals, 2)

    def test_other_numbers_and_other_decisions_are_errors(self) -> None:
        for lines in ('then = "escalate"\napprovals = 3', 'then = "escalate"\napprovals = 0'):
            self.assertRaises(ConfigurationError, self.load, lines)
        for then in ("allow", "deny"):
            with self.assertRaisesRegex(ConfigurationError, "approvals = 2 needs"):
                self.load(f'then = "{then}"\napprovals = 2')

    def test_what_cannot_be_approved_automatically(self) -> None:
        for lines in ('then = "allow"\nauto = true', 'then = "escalate"\napprovals = 2\nauto = true'):
            with self.assertRaisesRegex(ConfigurationError, "auto needs"):
                self.load(lines)
        self.assertRaises(ConfigurationError, self.load, 'then = "escalate"\nauto = "always"')


class AutomaticTests(SynchronousTestCase):
    """What the auto-approver may approve."""

    def setUp(self) -> None:
        self.world = World.make()
        self.addCleanup(self.world.remove)

    def automatic(self, *rules: dict[str, object], **options: object) -> Automatic:
        engine = self.world.engine(rules, **options)  # type: ignore[arg-type]
        verdict = self.world.ask(engine, "fetch", "http_fetch", {"url": "https://example.com/"})
        self.assertEqual(verdict.decision, "escalate")
        return verdict.automatic

    def test_only_what_the_rule_says(self) -> None:
        self.assertEqual(self.automatic(FETCH), Automatic.NEVER)
        self.assertEqual(self.automatic(FETCH | {"auto": True}), Automatic.REVERSIBLE)
        self.assertEqual(self.automatic(FETCH | {"auto": "irreversible"}), Automatic.ALWAYS)

    def test_never_what_an_invariant_escalates(self) -> None:
        outside = self.automatic(FETCH | {"auto": True}, domains={"fetch": ["example.org"]})
        self.assertEqual(outside, Automatic.NEVER)

    def test_every_rule_that_escalates_must_say_so(self) -> None:
        read = rule("read", "escalate", roles=["read-path"]) | {"auto": True}
        write = rule("write", "escalate", roles=["write-path", "delete-path"])
        for second, expected in ((write, Automatic.NEVER), (write | {"auto": True}, Automatic.REVERSIBLE)):
            engine = self.world.engine([read, second])
            moved = {"source": "$ROOT/a", "destination": "$ROOT/b"}
            verdict = self.world.ask(engine, "filesystem", "move_file", moved)
            self.assertEqual((verdict.decision, verdict.automatic), ("escalate", expected), verdict.reason)

    def test_a_branch_is_among_what_the_user_must_name(self) -> None:
        for rules, roles in (([], set[str]()), ([FETCH | {"auto": True}], {"branch-name"})):
            arguments = {"path": self.world.workspace, "remote": "https://example.com/x.git", "branch": "main"}
            verdict = self.world.ask(self.world.engine(rules), "git", "git_push", arguments)
            found = {each.role for each in verdict.resources} & {"branch-name"}
            self.assertEqual(found, roles)


class VerdictTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World.make()
        self.addCleanup(self.world.remove)

    def test_the_most_of_all_rules_that_escalate(self) -> None:
        call = ("fetch", "http_fetch", {"url": "https://example.com/"})
        for rules, approvals in (([FETCH], 1), ([FETCH | {"approvals": 2}], 2)):
            verdict = self.world.ask(self.world.engine(rules), *call)
            self.assertEqual((verdict.decision, verdict.approvals), ("escalate", approvals))

    def test_an_address_outside_the_list_of_the_server_needs_no_fewer(self) -> None:
        engine = self.world.engine([FETCH | {"approvals": 2}], domains={"fetch": ["example.org"]})
        verdict = self.world.ask(engine, "fetch", "http_fetch", {"url": "https://example.com/"})
        self.assertEqual((verdict.rule, verdict.approvals), ("structural-domain-escalate", 2))

    def test_the_explanation_says_so(self) -> None:
        call = ToolCall("fetch", "http_fetch", {"url": "https://example.com/"})
        found = explain(self.world.engine([FETCH | {"approvals": 2}]), call)
        self.assertIn("needs the approvals of 2 people", found.text())
        self.assertEqual(found.data()["approvals"], 2)
