"""What events say of escalations: whole where it is short, and bounded."""

from __future__ import annotations

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import CallsCounted, Escalation, Raised
from ironcurtain.session import events
from ironcurtain.session.escalation_events import ARGUMENTS_LIMIT, escalation_event
from tests.escalation.doubles import make_request


def escalation(text: str, calls: int = 1) -> Escalation:
    """:returns: one that waits."""
    return Escalation("ab", 3, make_request({"text": text}), 1.5e9, 1.5e9 + 300, calls=calls)


class EscalationEventTests(SynchronousTestCase):
    def test_short_arguments_are_there(self) -> None:
        event = escalation_event(Raised(escalation("short", 2)))
        assert isinstance(event, events.EscalationRaised)
        self.assertEqual((event.arguments, event.omitted, event.calls), ({"text": "short"}, 0, 2))

    def test_long_ones_are_left_out_and_measured(self) -> None:
        event = escalation_event(Raised(escalation("x" * ARGUMENTS_LIMIT)))
        assert isinstance(event, events.EscalationRaised)
        self.assertEqual((event.arguments, event.omitted), ({}, ARGUMENTS_LIMIT + len('{"text":""}')))
        self.assertLess(len(msgspec.json.encode(event)), 1000)

    def test_how_many_equal_calls_wait(self) -> None:
        self.assertEqual(
            escalation_event(CallsCounted(escalation("a", 7))), events.EscalationCounted(number=3, calls=7)
        )
