"""What a person decides in the terminal of a session: only what was shown there."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from ironcurtain.escalation import Outcome
from ironcurtain.session import events
from tests.cli.terminal.frontends import FrontEndCase


class ShownTests(FrontEndCase):
    """A call that has no room in its banner, and floods."""

    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[int] = self.begin(self.front.interactive())
        self.type("one")

    def ask_long(self) -> None:
        """Raise one that has no room in its banner."""
        self.session.raise_escalation(3, {"path": "/x", "content": "".join(f"line {n}\n" for n in range(100))})
        self.draw()

    def test_what_was_not_shown_whole_is_not_approved(self) -> None:
        self.ask_long()
        self.assertNotIn("line 60", self.surface.text)
        self.type("/approve", "/approve 3")
        self.assertEqual(self.session.decisions, [(3, Outcome.APPROVED, None)] * 2)
        self.assertIn("not all of escalation 3 was shown to you: type /show 3, then /approve 3", self.surface.text)
        self.assertIn(3, self.session.pending)
        self.type("/show")
        self.assertIn("     line 60", self.surface.printed)
        self.type("/approve 3")
        self.assertEqual(self.session.decisions[2:], [(3, Outcome.APPROVED, "digest-3")])

    def test_what_was_shown_elsewhere_is_approved(self) -> None:
        self.ask_long()
        self.session.seen_elsewhere.add(3)
        self.type("/approve")
        self.assertIn("escalation 3: approved by me", self.surface.printed)

    def test_a_long_one_can_be_denied(self) -> None:
        self.ask_long()
        self.type("/deny")
        self.assertEqual(self.session.decisions, [(3, Outcome.DENIED, "digest-3")])

    def test_what_is_too_long_even_then_says_how_to_see_it(self) -> None:
        self.session.raise_escalation(3, {"content": "x" * 100_000})
        self.draw()
        self.type("/show 3", "/approve 3")
        self.assertIn("'ironcurtain escalations show 3' shows it", " ".join(self.surface.printed))
        self.assertIn(3, self.session.pending)

    def test_equal_calls_are_told_of_and_approved_as_far_as_they_were(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.session.emit(events.EscalationCounted(number=3, calls=4))
        self.draw()
        self.assertIn("escalation 3: 4 equal calls wait for it", self.surface.printed)
        self.type("/approve")
        self.assertEqual(self.session.calls, [4])

    def test_all_are_denied(self) -> None:
        self.session.raise_escalation(3)
        self.session.raise_escalation(4)
        self.draw()
        self.type("/deny all")
        self.assertEqual(self.session.closed, {3: "denied", 4: "denied"})

    def test_the_session_is_ended(self) -> None:
        self.type("/stop")
        self.assertEqual(self.successResultOf(self.done), 0)
        self.assertEqual(self.session.state, "closed")

    def test_another_one_ends_the_session(self) -> None:
        self.session.end("stopped")
        self.draw()
        self.assertEqual(self.successResultOf(self.done), 1)
