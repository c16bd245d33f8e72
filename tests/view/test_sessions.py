"""Sentences about sessions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.model import Turn, Usage
from ironcurtain.text.columns import unstyled
from ironcurtain.view.sessions import fact_lines, outside_sandboxes, remarks, sandbox, session_lines, used
from tests.console.doubles import NOW, session


class PayerTests(SynchronousTestCase):
    def test_sessions_without_a_model_of_their_own_have_no_payer(self) -> None:
        both = ("your Claude subscription", "the API key for openai from the variable OPENAI_API_KEY")
        said = remarks([session(1), session(2, payers=both[:1]), session(3, payers=both)], NOW)
        self.assertEqual(
            list(said),
            [f"Session 2 is paid by {both[0]}.", f"Session 3 is paid by {both[0]}; {both[1]}."],
        )


class OutsideTests(SynchronousTestCase):
    def test_servers_outside_sandboxes_are_named(self) -> None:
        found = [session(1), session(2, unsandboxed=("a",)), session(3, unsandboxed=("a", "b"))]
        self.assertEqual(
            list(outside_sandboxes(found)),
            [
                "Session 2: outside any sandbox runs the MCP server a.",
                "Session 3: outside any sandbox run the MCP servers a, b.",
            ],
        )


class SandboxTests(SynchronousTestCase):
    def test_what_holds_the_agent_is_named(self) -> None:
        for place, servers, named in (
            ("", "", ""),
            ("", "landlock", "landlock"),
            ("container", "", "container"),
            ("container", "bubblewrap", "container"),
        ):
            self.assertEqual(sandbox(session(1, options={"sandbox": place}, sandbox=servers)), named)

    def test_another_kind_for_its_servers_is_told(self) -> None:
        alike, other = (
            session(1, options={"sandbox": "bubblewrap"}, sandbox=kind) for kind in ("bubblewrap", "container")
        )
        said = ["Session 1: its MCP servers run in sandboxes of another kind, container."]
        self.assertEqual((list(remarks([alike], NOW)), list(remarks([other], NOW))), ([], said))


class ModelTests(SynchronousTestCase):
    def test_chosen_models_are_named(self) -> None:
        said = remarks([session(1), session(2, model="claude-opus-5-5\n")], NOW)
        self.assertEqual(list(said), ["Session 2: the model is claude-opus-5-5\\n."])
        shown = [unstyled(line) for line in session_lines(session(2, model="claude-opus-5-5"), (), 79, NOW)]
        self.assertIn("model     claude-opus-5-5", shown)


class FactTests(SynchronousTestCase):
    def turn(self, cost: float | None = None) -> Turn:
        """:returns: a turn of 1000 tokens in and 20 out."""
        usage = Usage(input_tokens=1000, output_tokens=20, cost=cost)
        return Turn(number=1, message="hi", answer="hello", usage=usage, timestamp="")

    def test_use_is_summed(self) -> None:
        self.assertEqual(used([self.turn(0.25), self.turn(0.5)]), ("2,000 in, 40 out", "$0.7500"))

    def test_a_cost_that_is_not_known_is_not_made_up(self) -> None:
        self.assertEqual(used([self.turn()])[1], "not known")
        self.assertEqual(
            used([self.turn(0.25), self.turn()])[1], "$0.2500 for 1 of the messages, unknown for the others"
        )

    def test_facts_are_escaped_and_aligned(self) -> None:
        lines = [
            unstyled(line) for line in fact_lines((("log", "/h\x1b[2J/session.log"), ("down", ""), ("cost", "$1")))
        ]
        self.assertEqual(lines, ["log       /h\\x1b[2J/session.log", "cost      $1"])
