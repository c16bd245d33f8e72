"""From sentences to rules: what is refused, what goes back to the model, and when it ends."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.files import AssumedFiles
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.rules import Policy, Rule
from ironcurtain.policy_compiler.proposal import (
    Directories,
    Proposal,
    ProposalRefused,
    parse_proposal,
    rule_name,
    server_of,
)
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
        real = {"~/me": HOME, "~/up": "/home", "~": HOME, "/data/me": HOME}
        directories = Directories(HOME, lambda path: real.get(path, path.replace("~", HOME, 1)))
        return parse_proposal(text, SENTENCES, default_annotations(), server, directories)

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

    def test_what_allows_without_a_bound_is_refused(self) -> None:
        def fetch(**conditions: Any) -> dict[str, Any]:
            return {"name": "a", "if": conditions, "then": "allow"}

        within = (
            *(
                "~/Documents/..",
                "~/.",
                "~/**",
                "~/./**",
                "$HOME",
                "/",
                "//",
                "/**",
                "/home",
                "/home/",
                "/home/./someone",
            ),
            *(
                HOME,
                f"{HOME}/",
                f"{HOME}/x/..",
                "~/..",
                "/home/**",
                "/etc",
                "/usr",
                "~/me",
                "~/up",
                "/data/me",
                "/workspace/..",
            ),
            *("~/Documents/*", "~/Docu\u200bments", "Documents", "$USER", "~root"),
        )
        for path in within:
            error = self.assertRaises(ProposalRefused, self.parsed, answer(read_documents(path)))
            self.assertRegex(str(error), "everything within|within = ", path)
        for path in ("~/Documents", "~/Documents/**", "$HOME/a", "/srv/data", "/usr/share"):
            self.assertEqual(len(self.parsed(answer(read_documents(path))).policy_rules()), 1, path)
        domains = {"roles": ["fetch-url"], "allowed": ["a.test"]}
        for rule, why in (
            (fetch(roles=["fetch-url"]), "whatever the tool and the value"),
            (fetch(roles=["fetch-url", "none"], rate={"calls": 1, "seconds": 1}), "whatever the tool and the value"),
            (fetch(roles=["fetch-url"], tool=["http_fetch"]), "whatever its fetch-url is"),
            (fetch(tool=["http_fetch", "web_search"]), "whatever its fetch-url is"),
            (fetch(tool=["http_fetch"], after={"tool": ["web_search"]}), "whatever its fetch-url is"),
            (fetch(domains={**domains, "allowed": ["*"]}), "every host name"),
            (fetch(domains={**domains, "allowed": ["a.test", "*.com"]}), "every host name in .com"),
            (fetch(domains={**domains, "allowed": ["@all"]}), "does not exist"),
            ({**fetch(domains=domains), "then": "escalate", "auto": "irreversible"}, "auto-approver"),
            ({**fetch(domains=domains), "then": "escalate", "auto": True}, "auto-approver"),
            ({**fetch(domains=domains), "reason": "fi\u200bne"}, "invisible characters: fi\\u200bne"),
            ({**fetch(domains=domains), "description": "\u202efine"}, "invisible characters"),
            ({**fetch(domains=domains), "name": "\U000e0041a"}, "invisible characters"),
        ):
            error = self.assertRaises(ProposalRefused, self.parsed, answer(rule), "fetch")
            self.assertIn(why, str(error), rule)
        for rule in (
            fetch(domains=domains),
            fetch(tool=["web_search"]),
            {**fetch(roles=["fetch-url"]), "then": "deny"},
        ):
            self.assertEqual(len(self.parsed(answer(rule), "fetch").policy_rules()), 1, rule)

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
        self.assertEqual(len(result.proposal.policy_rules()), 1)

    def test_failures_and_refusals_go_back_with_the_reason(self) -> None:
        going = rounds()
        said = going.answered("no")
        assert isinstance(said, Say)
        self.assertIn("refused", said.text)
        said = going.answered(answer(read_documents(), scenarios=[read("~/other", "allow")]))
        assert isinstance(said, Say)
        self.assertIn("read: you expect allow, the engine says deny by default-deny", said.text)
        said = going.answered(answer(read_documents()))
        assert isinstance(said, Say)
        self.assertIn("hold in no scenario of their sentence:\n- constitution-filesystem.documents", said.text)
        self.assertIsInstance(
            going.answered(answer(read_documents(), scenarios=[read("~/Documents/a", "allow")])), Compiled
        )

    def test_a_rule_that_no_scenario_of_its_sentence_tries_is_sent_back(self) -> None:
        rate = {"name": "often", "if": {"rate": {"calls": 9, "seconds": 1}}, "then": "deny"}
        elsewhere = json.loads(answer(read_documents(), scenarios=[read("~/Documents/a", "allow")]))
        elsewhere["scenarios"][0]["sentence"] = 2
        for text, compiled in (
            (answer(read_documents(), scenarios=[read("~/other", "deny")]), False),
            (json.dumps(elsewhere), False),
            (answer(read_documents(), rate, scenarios=[read("~/Documents/a", "allow")]), True),
            (answer(rate), False),
            (answer(), True),
        ):
            self.assertIsInstance(rounds().answered(text), Compiled if compiled else Say, text)

    def test_after_the_last_round_a_proposal_with_a_failed_scenario_is_none(self) -> None:
        going = rounds()
        scenarios = [read("~/Documents/a", "allow"), read("~/x", "allow", "x")]
        steps = [going.answered(answer(read_documents(), scenarios=scenarios)) for _ in range(ROUNDS)]
        assert isinstance(steps[-1], GaveUp)
        self.assertIn("scenarios fail: x: you expect allow, the engine says deny", steps[-1].why)

    def test_a_model_that_never_answers_is_given_up(self) -> None:
        going = rounds()
        steps = [going.answered("no") for _ in range(ROUNDS)]
        self.assertIsInstance(steps[-1], GaveUp)

    def test_no_rule_reaches_a_protected_path(self) -> None:
        scenarios = [read("~/.ssh/id", "allow")]
        said = rounds().answered(answer(read_documents("~/.ssh"), scenarios=scenarios))
        assert isinstance(said, Say)
        self.assertIn("deny by structural-protected-path", said.text)
