"""A session that is shown to a person who takes no part."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.terminal.watching import Watching
from ironcurtain.session import events
from tests.cli.terminal.doubles import INFO, KeptSurface, PlayedSession


class WatchingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.session, self.surface = PlayedSession(self.clock.seconds), KeptSurface(True)
        self.watching = Watching(self.session, INFO, Printer(self.surface, self.clock, self.clock.seconds))
        self.done: Deferred[int] = Deferred.fromCoroutine(self.watching.watch())
        self.clock.pump([0.05, 0])

    def test_question_is_told_of_and_only_leaving_is_carried_out(self) -> None:
        self.session.raise_escalation(1)
        for line in ("/approve 1", "hello", "/stop"):
            self.watching.typed(line, 0.0, line)
        self.clock.pump([0.05, 0])
        self.assertIn("escalation 1: ", self.surface.text)
        self.assertEqual(self.surface.text.count("to take part: ironcurtain attach"), 3)
        self.assertNotIn("/approve", self.surface.text)
        self.assertNoResult(self.done)
        self.assertTrue(self.session.followed)
        self.watching.typed("/quit", 0.0, "/quit")
        self.assertEqual(self.successResultOf(self.done), 0)
        self.assertFalse(self.session.followed)

    def test_lost_end_is_found_out(self) -> None:
        self.session.state = "closed"
        self.session.emit(events.Missed(count=3))
        self.clock.pump([0.05, 0])
        self.assertEqual(self.successResultOf(self.done), 0)
        self.assertEqual(self.clock.getDelayedCalls(), [])
