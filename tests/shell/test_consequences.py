"""What people read about a command: what it changes, where, and why they are asked."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Risk
from ironcurtain.policy.verdict import Decision, Resource, Reversal, Verdict
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.consequences import changed_places
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.messages import ProposedStep
from ironcurtain.text.columns import unstyled
from ironcurtain.view.look import Look
from ironcurtain.view.steps import about_asked

LOOK = Look()


class PlaceTests(SynchronousTestCase):
    """:func:`changed_places`"""

    def test_what_is_changed_is_named_from_the_directory(self) -> None:
        resources = (
            Resource("read-path", "", "/srv/a"),
            Resource("write-path", "", "/srv/cache"),
            Resource("write-path", "", "/etc/hosts"),
            Resource("write-path", "", "/srv"),
            Resource("write-path", "", "/srvs/x"),
            Resource("fetch-url", "", "https://example.org/"),
        )
        verdict = Verdict(Decision.ALLOW, "r", "", {"directory": "/srv"}, resources)
        self.assertEqual(changed_places(verdict), ("cache", "/etc/hosts", ".", "/srvs/x", "https://example.org/"))

    def test_of_a_command(self) -> None:
        gate = CommandGate(read_approval({}, "policy.toml", "/home/ada"), (), "/home/ada", str, "/srv")
        self.assertEqual(changed_places(gate.judged("rm -r cache ~/old", "/srv")), ("cache", "/home/ada/old"))
        self.assertEqual(changed_places(gate.judged("du -sh .", "/srv")), ())
        verdict = gate.judged("du -sh .", "/srv")
        self.assertEqual(verdict.reason, "no rule of your policy allows du")
        asking = read_approval({"shell": {"mode": "ask"}}, "policy.toml", "/home/ada")
        gate = CommandGate(asking, (), "/home/ada", str, "/srv")
        self.assertEqual(gate.judged("du -sh .", "/srv").reason, "approval.shell.mode asks about du")


class WordTests(SynchronousTestCase):
    """Two lines at the question."""

    def step(self, **fields: object) -> ProposedStep:
        return ProposedStep(number=1, command="x", **fields)  # type: ignore[arg-type]

    def test_what_changes_where_and_whether_it_can_be_undone(self) -> None:
        step = self.step(risk=Risk.DESTRUCTIVE, undo=Reversal.SNAPSHOT.value, where=("cache",))
        self.assertEqual(
            unstyled(about_asked(step, LOOK)[0]), "destroys data: cache · can be undone with 'ironcurtain undo'"
        )
        step = self.step(risk=Risk.WRITE_OUTSIDE, undo=Reversal.OUTSIDE.value, where=tuple("abcde"))
        self.assertIn(
            "writes outside this directory: a, b, c and 2 more · cannot", unstyled(about_asked(step, LOOK)[0])
        )

    def test_nothing_is_said_to_be_lost_where_nothing_changes(self) -> None:
        step = self.step(risk=Risk.READ, undo=Reversal.READS.value)
        self.assertEqual(unstyled(about_asked(step, LOOK)[0]), "only reads")

    def test_why_it_is_asked_and_what_for(self) -> None:
        step = self.step(reason="no rule of your policy allows du", purpose="See what is large")
        self.assertEqual(
            unstyled(about_asked(step, LOOK)[1]), "asked because no rule of your policy allows du · See what is large"
        )
        self.assertEqual(unstyled(about_asked(self.step(purpose="See"), LOOK)[1]), "See")
        self.assertEqual(about_asked(self.step(), LOOK)[1], ())
