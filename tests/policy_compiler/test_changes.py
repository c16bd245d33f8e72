"""What a proposal changes in a policy, and the file with what a person accepted."""

from __future__ import annotations

import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.structured import convert
from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.policy.annotations import Annotations, Case, Condition, Conditional, ServerAnnotations, ToolAnnotation
from ironcurtain.policy.loading import DEFAULT_POLICY, default_policy, load_policy
from ironcurtain.policy.rules import Rule
from ironcurtain.policy_compiler.changes import (
    RuleChange,
    changes,
    edited,
    in_force,
    placed,
    proposal_text,
    written_by_hand,
)


def annotations_of_servers() -> st.SearchStrategy[Annotations]:
    """:returns: annotations with any names, comments and conditions."""
    name = st.text(st.characters(codec="utf-8"), max_size=8)
    roles = st.lists(st.sampled_from(["none", "read-path", "fetch-url"]), min_size=1).map(tuple)
    scalar = st.text(st.characters(codec="utf-8")) | st.booleans() | st.integers() | st.floats(allow_nan=False)
    condition = st.builds(Condition, name, equals=scalar) | st.builds(Condition, name, state=st.just("absent"))
    several = st.lists(st.builds(Case, condition, roles), max_size=2).map(tuple)
    argument = roles | st.builds(Conditional, roles, several)
    tool = st.builds(ToolAnnotation, name, st.dictionaries(name, argument, max_size=3), comment=name)
    tools = st.lists(tool, unique_by=lambda each: each.name, min_size=1, max_size=2)
    server = tools.map(lambda found: ServerAnnotations(tuple(found)))
    return st.builds(Annotations, st.dictionaries(st.from_regex(BACKEND_NAME), server, max_size=2))


class ChangeTests(SynchronousTestCase):
    """The changes to a policy, and the file with them."""

    def rule(self, name: str, reason: str = "") -> Rule:
        """:returns: a compiled rule."""
        return Rule(f"constitution-{name}", default_policy().rules[0].conditions, "deny", reason)

    def test_only_differences_and_no_rule_of_a_person(self) -> None:
        a, b, new = self.rule("a"), self.rule("b"), self.rule("b", "changed")
        mine = default_policy().rules
        self.assertEqual(
            changes((a, new), (a, b, self.rule("c"), *mine)), [RuleChange(new, b), RuleChange(None, self.rule("c"))]
        )
        self.assertEqual(written_by_hand((a, *mine)), mine)

    def test_rules_of_servers_without_proposal_stay(self) -> None:
        present = (self.rule("a"), self.rule("one.a"), self.rule("two.a"))
        self.assertEqual(changes((), present, ["", "two"]), [RuleChange(None, self.rule("one.a"))])

    @given(st.data())
    def test_what_was_not_read_keeps_its_order(self, data: st.DataObject) -> None:
        names = st.lists(st.sampled_from("abcdef"), unique=True)
        present = [self.rule(name) for name in data.draw(names)]
        proposed = [self.rule(name, data.draw(st.sampled_from(["", "changed"]))) for name in data.draw(names)]
        accepted = data.draw(st.lists(st.sampled_from([*changes(proposed, present), None]), unique=True))
        read = [change for change in accepted if change is not None]
        result = placed([*present, *default_policy().rules], proposed, read)
        self.assertEqual(len({rule.name for rule in result}), len(result))
        touched = {change.name for change in read}
        self.assertEqual([r for r in result if r.name not in touched], [r for r in present if r.name not in touched])
        for change in read:
            self.assertEqual([r for r in result if r.name == change.name], [change.new] if change.new else [])
        if read == changes(proposed, present) and not present:
            self.assertEqual(result, proposed)

    def test_a_new_rule_goes_where_the_proposal_has_it(self) -> None:
        a, b, c, old = (self.rule(name) for name in ("a", "b", "c", "old"))
        new = [RuleChange(rule, None) for rule in (a, b, c)]
        self.assertEqual(placed([a, c], (a, b, c), new[1:2]), [a, b, c])
        self.assertEqual(placed([c], (a, b, c), new[:1]), [a, c])
        self.assertEqual(placed([old], (a, b, c), new), [old, a, b, c])

    def test_the_file_keeps_everything_else(self) -> None:
        text = DEFAULT_POLICY.read_text()
        once = edited("p", text, [self.rule("a"), self.rule("b")], Annotations())
        names = [rule["name"] for rule in tomllib.loads(once)["rules"]]
        self.assertEqual(names[:2], ["constitution-a", "constitution-b"])
        new = Rule("constitution-a", default_policy().rules[0].conditions, "escalate", principle="x\ny", approvals=2)
        twice = edited("p", once, [new], Annotations())
        rules = tomllib.loads(twice)
        self.assertEqual(convert("p", rules["rules"][0], Rule), new)
        self.assertEqual(rules["rules"][1:], tomllib.loads(text)["rules"])
        self.assertEqual({**rules, "rules": 0}, {**tomllib.loads(text), "rules": 0})
        self.assertEqual(edited("p", twice, [], Annotations()), text)

    def test_the_denials_with_which_a_file_begins_stay_first(self) -> None:
        def mine(*written: tuple[str, str]) -> str:
            return "".join(f'[[rules]]\nname = "{name}"\nif = {{}}\nthen = "{then}"\n\n' for name, then in written)

        text = f"version = 1\n\n# Never.\n{mine(('no', 'deny'), ('nor', 'deny'))}[lists.x]\nvalues = []\n"
        text += mine(("yes", "allow"), ("late", "deny"))
        new = [self.rule("a"), self.rule("b")]
        expected = ["no", "nor", "constitution-a", "constitution-b", "yes", "late"]
        once = edited("p", text, new, Annotations())
        self.assertEqual([rule["name"] for rule in tomllib.loads(once)["rules"]], expected)
        self.assertEqual(edited("p", once, [], Annotations()), text)
        before = edited("p", mine(("yes", "allow")), new, Annotations()).replace("version = 1\n", "")
        moved = edited("p", mine(("no", "deny")) + before, new, Annotations())
        names = [rule["name"] for rule in tomllib.loads(moved)["rules"]]
        self.assertEqual(names, ["no", "constitution-a", "constitution-b", "yes"])
        old = edited("p", before + mine(("no", "deny")), new, Annotations())
        names = [rule["name"] for rule in tomllib.loads(old)["rules"]]
        self.assertEqual(names, ["constitution-a", "constitution-b", "yes", "no"])
        by_hand = [
            Rule(name, default_policy().rules[0].conditions, "deny" if name[0] == "n" else "allow")
            for name in ("no", "yes", "nor")
        ]
        self.assertEqual(
            [rule.name for rule in in_force(new, by_hand)], ["no", "constitution-a", "constitution-b", "yes", "nor"]
        )

    def test_comments_above_other_rules_stay(self) -> None:
        mine = '# Mine.\n[[rules]]\nname = "a"\nif = {}\nthen = "deny"\n'
        once = edited("p", mine, [self.rule("a")], Annotations())
        text = once.replace('[[rules]]\nname = "a"', '# Mine, too.\n[[rules]]\nname = "a"')
        self.assertIn('# Mine, too.\n[[rules]]\nname = "a"', edited("p", text, [], Annotations()))

    @given(annotations_of_servers())
    def test_added_annotations_are_read_as_they_were(self, added: Annotations) -> None:
        with TemporaryDirectory() as directory:
            path = Path(directory) / "policy.toml"
            path.write_text(edited("p", DEFAULT_POLICY.read_text(), [self.rule("a")], added))
            self.assertEqual(load_policy(path).annotations.table(), added.table())

    def test_rules_in_another_form_are_changed_by_hand(self) -> None:
        text = 'rules = [{ name = "a", if = {}, then = "deny" }]\n'
        self.assertRaises(ConfigurationError, edited, "p", text, [self.rule("a")], Annotations())
        found = Annotations({"s": ServerAnnotations((ToolAnnotation("t", {}),))})
        for text in ("tools = {}\n", "[tools.s.t]\nargs = {}\n"):
            error = self.assertRaises(ConfigurationError, edited, "p", text, [], found)
            self.assertIn("by hand", str(error))

    def test_a_proposal_is_a_policy(self) -> None:
        found = Annotations({"s": ServerAnnotations((ToolAnnotation("t", {"x": ("none",)}),))})
        written = tomllib.loads(proposal_text((self.rule("a"), self.rule("b")), found))
        self.assertEqual([convert("p", rule, Rule) for rule in written["rules"]], [self.rule("a"), self.rule("b")])
        self.assertEqual(written["tools"], {"s": {"t": {"args": {"x": ["none"]}}}})
