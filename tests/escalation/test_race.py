from __future__ import annotations

import random
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import StaleDecision
from ironcurtain.escalation import Answer, Closed, Escalation, Outcome
from ironcurtain.escalation.files import response_name
from ironcurtain.escalation.model import Change
from ironcurtain.escalation.rendezvous import Rendezvous
from ironcurtain.escalation.watcher import DirectoryWatcher
from tests.audit.doubles import scratch
from tests.escalation.doubles import TIMEOUT, make_queue, make_request, no_more_files

ESCALATIONS = 1000
DECIDERS = ("ada", "bob", "cyn", "dan", "eve", "fay", "file", "withdraw", "expire", "close")


class RaceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.random = random.Random(1)
        self.clock, self.directory = Clock(), scratch(self)
        self.queue = make_queue(self.clock)
        with no_more_files():
            watcher = DirectoryWatcher(self.clock)
        self.rendezvous = Rendezvous(self.directory, self.queue, watcher, lambda: 1.5e9 + self.clock.seconds())
        self.rendezvous.start()
        self.addCleanup(self.rendezvous.stop)
        self.closed: list[Escalation] = []
        self.queue.subscribe(self.heard)
        self.refused = 0

    def heard(self, change: Change) -> None:
        if isinstance(change, Closed):
            self.closed.append(change.escalation)

    def test_ten_thousand_decisions_have_one_winner_each(self) -> None:
        """Ten deciders for each of a thousand escalations, in any order and through every way there is."""
        for number in range(1, ESCALATIONS + 1):
            asked = self.queue.ask(make_request(call_id=f"c{number}"))
            (escalation,) = self.queue.pending()
            deciders = self.random.sample(DECIDERS, k=len(DECIDERS))
            for name in deciders:
                self.decide(escalation, asked, name)
            answer = self.successResultOf(asked)
            winner = self.closed[-1]
            self.assertEqual((winner.number, winner.outcome, winner.by), (number, answer.outcome, answer.by))
            self.assertEqual(bool(answer.grant), answer.outcome is Outcome.APPROVED)
            self.assertIn(deciders[0], (winner.by, *self.nameless(winner)))
        self.assertEqual(len(self.closed), ESCALATIONS)
        self.assertGreater(self.refused, ESCALATIONS * 4)
        self.assertEqual(
            {winner.outcome for winner in self.closed},
            set(Outcome) - {Outcome.UNATTENDED, Outcome.TOO_MANY, Outcome.ANSWERED, Outcome.CANCELLED},
        )
        self.assertEqual(self.queue.pending(), [])

    def nameless(self, winner: Escalation) -> tuple[str, ...]:
        return {Outcome.WITHDRAWN: ("withdraw", "close"), Outcome.EXPIRED: ("expire",)}.get(
            winner.outcome or Outcome.APPROVED, ()
        )

    def decide(self, escalation: Escalation, asked: Deferred[Answer], name: str) -> None:
        others: dict[str, Callable[[], None]] = {
            "file": lambda: self.answer_by_file(escalation),
            "withdraw": asked.cancel,
            "expire": lambda: self.clock.advance(TIMEOUT),
            "close": self.queue.withdraw_all,
        }
        if name in others:
            others[name]()
            return
        before = self.closed[-1] if self.closed and self.closed[-1].number == escalation.number else None
        try:
            self.queue.decide(escalation.number, self.random.choice((Outcome.APPROVED, Outcome.DENIED)), name)
        except StaleDecision as e:
            assert before is not None
            self.refused += 1
            self.assertIn(f"was {before.outcome}{f' by {before.by}' if before.by else ''}", str(e))
        else:
            self.assertIsNone(before)

    def answer_by_file(self, escalation: Escalation) -> None:
        path = self.directory / response_name(escalation.id)
        path.write_bytes(b'{"decision":"%b"}' % self.random.choice((b"approved", b"denied")))
        self.rendezvous.scan()
        path.unlink(missing_ok=True)
