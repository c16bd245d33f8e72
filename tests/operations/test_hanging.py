"""A process that does not answer for a while: what it has did not end."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.operations.home_source import PATIENCE
from tests.operations.test_home_source import Home, Owner


class HangingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.slow = Clock(), Owner(2)
        self.home = Home(self.clock, Owner(1), self.slow)
        self.addCleanup(self.home.remove)

    def lists(self) -> tuple[list[int], list[int]]:
        """:returns: the numbers of open sessions and of pending escalations, as a console has them."""
        sessions = self.ask(self.home.source.sessions())
        escalations = self.ask(self.home.source.escalations(closed=True))
        return [info.number for info in sessions if info.state != "closed"], [view.number for view in escalations]

    def ask(self, coroutine: Any) -> Any:
        asked = Deferred.fromCoroutine(coroutine)
        self.clock.advance(PATIENCE)
        return self.successResultOf(asked)

    def test_what_it_told_last_stays_until_it_answers_again(self) -> None:
        everything = ([1, 2], [10, 20])
        self.assertEqual(self.lists(), everything)
        self.slow.hangs = True
        for _ in range(2):
            self.assertEqual(self.lists(), everything)
            self.assertEqual(self.home.source.lacking(), ["The process of /run/2.sock does not answer."])
        self.slow.hangs = False
        self.slow.gone = {20}
        self.assertEqual(self.lists(), ([1, 2], [10]))
        self.assertEqual(self.home.source.lacking(), [])

    def test_what_one_that_died_told_is_gone(self) -> None:
        self.lists()
        self.slow.dead = True
        self.assertEqual(self.lists(), ([1], [10]))

    def test_one_that_never_answered_has_nothing(self) -> None:
        self.slow.hangs = True
        self.assertEqual(self.lists(), ([1], [10]))
