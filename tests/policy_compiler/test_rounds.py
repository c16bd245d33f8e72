"""From sentences to rules: what is refused, what goes back to the model, and when it ends."""

from __future__ import annotations

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.policy import PolicyEngine
from ironcurtain.policy.files import AssumedFiles
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.rules import Policy, Rule
from ironcurtain.policy_compiler.proposal import Proposal, ProposalRefused, parse_proposal, rule_name, server_of
from ironcurtain.policy_compiler.rounds import ROUNDS, Compiled, GaveUp, Rounds, Say
from ironcurtain.policy_compiler.sentences import sentences
from tests.policy_compiler.answers import CONSTITUTION, answer, read, read_documents

HOME = "/home/someone"
SENTENCES = sentences(CONSTITUTION)


def engine_with(rules: tuple[Rule, ...]) -> PolicyEngine:
    """:returns: an engine with rules alone, and one protected path."""
    return PolicyEngine(
        Policy(rules),
        default_annotations(),
        paths=PathMap("/workspace"),
        home=HOME,
        protected=[f"{HOME}/.ssh"],
        files=AssumedFiles(),
    )


def rounds() -> Rounds:
    """:returns: new rounds over the constitution."""
    return Rounds(SENTENCES, default_annotations(), engine_with, "filesystem")


class SentenceTests(SynchronousTestCase):
    """:func:`sentences`"""

    def test_headings_are_left_out_and_items_begin_a_sentence(self) -> None:
        first, second, third = SENTENCES
        self.assertEqual(first, "Reading my documents is fine.")
        self.assertEqual(second, "Fetching from the wiki is fine.")
        self.assertEqual(third, "Ask me before you fetch anything else.")

    def test_sentences_of_a_paragraph(self) -> None:
        text = "Never push\nto main. Ask first! See docs.python.org for more"
        self.assertEqual(sentences(text), ("Never push to main.", "Ask first!", "See docs.python.org for more"))

    @given(st.text())
    def test_any_text(self, text: str) -> None:
        self.assertTrue(all(each.strip() for each in sentences(text)))


class ProposalTests(SynchronousTestCase):
    """:func:`parse_proposal`"""

    def parsed(self, text: str, server: str = "filesystem") -> Proposal:
        """:returns: the proposal in an answer."""
        return parse_proposal(text, SENTENCES, default_annotations(), server)

    def test_each_rule_quotes_its_sentence(self) -> None:
        for text in (answer(read_documents()), f"Here it is:\n```json\n{answer(read_documents())}\n```\nDone."):
            [rule] = self.parsed(text).policy_rules()
            self.assertEqual((rule.name, rule.principle), ("constitution-filesystem.documents", SENTENCES[0]))

    def test_what_is_refused(self) -> None:
        everything = {"name": "a", "if": {}, "then": "allow"}
        for text, why in (
            ("Sure!", "not valid"),
            ("[]", "not valid"),
            (answer({**read_documents(), "protected": []}), "protected"),
            (answer({**read_documents(), "then": "trust"}), "then"),
            (answer(read_documents(tool=["read_text_file"], magic=1)), "magic"),
            (json.dumps({**json.loads(answer()), "protected": []}), "protected"),
            (json.dumps({**json.loads(answer()), "tools": {}}), "tools"),
            (answer(read_documents(), sentence=4), "no sentence 4"),
            (answer(read_documents(), read_documents()), "has this name"),
            (answer(read_documents(), {**read_documents(), "name": "constitution-documents"}), "has this name"),
            (
                answer(read_documents(), {**read_documents(), "name": "constitution-filesystem.documents"}),
                "has this name",
            ),
            (answer(everything), "every tool"),
            (answer({**everything, "if": {"server": ["fetch"]}}), "only apply to the server filesystem"),
            (answer({**everything, "if": {"server": ["filesystem", "fetch"]}}), "only apply to the server filesystem"),
            (answer(scenarios=[{**read("/a", "deny"), "server": "fetch"}]), "another server"),
            (answer(read_documents("~")), "everything within"),
            (answer(read_documents(), scenarios=[read("/a", "deny"), read("/b", "deny")]), "same name"),
            (answer({**everything, "if": {"tool": ["read_fil"]}}), "no annotations"),
        ):
            error = self.assertRaises(ProposalRefused, self.parsed, text)
            self.assertIn(why, str(error), text)

    def test_rules_for_all_servers_restrict_only(self) -> None:
        delete = {"name": "a.b", "if": {"roles": ["delete-path"]}, "then": "deny"}
        [rule] = self.parsed(answer(delete), "").policy_rules()
        self.assertEqual((rule.name, server_of(rule), rule.conditions.server), ("constitution-a-b", "", None))
        for other, why in (
            ({**delete, "then": "allow"}, "only escalate or deny"),
            ({**delete, "if": {"server": ["filesystem"]}}, "no server and no tool"),
            ({**delete, "if": {"tool": ["read_file"]}}, "no server and no tool"),
        ):
            self.assertIn(why, str(self.assertRaises(ProposalRefused, self.parsed, answer(other), "")))

    @given(st.from_regex(BACKEND_NAME), st.text(min_size=1))
    def test_a_name_tells_the_server(self, server: str, name: str) -> None:
        for of in (server, ""):
            named = rule_name(name, of)
            rule = Rule(named, default_policy().rules[0].conditions, "deny")
            self.assertEqual(server_of(rule), of)

    @given(st.text(max_size=40) | st.text('{}[]":,rulescnaio0123456789`\n', max_size=60))
    def test_any_answer_is_a_proposal_or_refused(self, text: str) -> None:
        with contextlib.suppress(ProposalRefused):
            self.assertIsInstance(self.parsed(text), Proposal)


class RoundTests(SynchronousTestCase):
    """:class:`Rounds`"""

    def test_the_first_message_has_sentences_and_tools(self) -> None:
        text = rounds().begin().text
        for said in ("1. Reading my documents is fine.", "read_text_file", "read-path"):
            self.assertIn(said, text)

    def test_a_proposal_whose_scenarios_pass_is_the_result(self) -> None:
        scenarios = [read("~/Documents/a", "allow"), read("~/other", "deny", "other")]
        result = rounds().answered(answer(read_documents(), scenarios=scenarios))
        assert isinstance(result, Compiled)
        self.assertEqual(result.failed, ())

    def test_failures_and_refusals_go_back_with_the_reason(self) -> None:
        going = rounds()
        said = going.answered("no")
        assert isinstance(said, Say)
        self.assertIn("refused", said.text)
        said = going.answered(answer(read_documents(), scenarios=[read("~/other", "allow")]))
        assert isinstance(said, Say)
        self.assertIn("read: you expect allow, the engine says deny by default-deny", said.text)
        self.assertIsInstance(going.answered(answer(read_documents())), Compiled)

    def test_after_the_last_round_the_best_proposal_counts(self) -> None:
        going = rounds()
        two = [read("~/x", "allow", "x"), read("~/y", "allow", "y")]
        steps = [going.answered(answer(read_documents(), scenarios=two[:count])) for count in (2, 1, 2, 2)]
        self.assertEqual(len(steps), ROUNDS)
        assert isinstance(steps[-1], Compiled)
        self.assertEqual([each.scenario.name for each in steps[-1].failed], ["x"])

    def test_a_model_that_never_answers_is_given_up(self) -> None:
        going = rounds()
        steps = [going.answered("no") for _ in range(ROUNDS)]
        self.assertIsInstance(steps[-1], GaveUp)

    def test_no_rule_reaches_a_protected_path(self) -> None:
        scenarios = [read("~/.ssh/id", "allow")]
        said = rounds().answered(answer(read_documents("~/.ssh"), scenarios=scenarios))
        assert isinstance(said, Say)
        self.assertIn("deny by structural-protected-path", said.text)
