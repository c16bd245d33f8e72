from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound, StaleDecision
from ironcurtain.escalation import Answer, Closed, Escalation, Outcome, Raised, Revoked
from ironcurtain.escalation.grant import GRANT_SECONDS, Binding
from ironcurtain.escalation.model import Change
from ironcurtain.escalation.question import HISTORY
from ironcurtain.escalation.queue import closing_numbers
from tests.audit.doubles import scratch
from tests.escalation.doubles import TIMEOUT, make_queue, make_request


class QueueTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.queue = make_queue(self.clock)

    def assertIdle(self) -> None:
        self.assertEqual(self.queue.pending(), [])
        self.assertEqual(self.clock.getDelayedCalls(), [])


class AnswerTests(QueueTestCase):
    def test_a_question_waits_for_its_answer(self) -> None:
        asked = self.queue.ask(make_request())
        self.assertNoResult(asked)
        (pending,) = self.queue.pending()
        self.assertEqual((pending.number, pending.outcome, pending.by), (1, None, ""))
        self.assertEqual(pending.expires_at - pending.raised_at, TIMEOUT)
        self.clock.advance(10)
        decided = self.queue.decide(1, Outcome.DENIED, "ada")
        self.assertEqual((decided.outcome, decided.by, decided.closed_at), (Outcome.DENIED, "ada", 1.5e9 + 10))
        self.assertEqual(self.successResultOf(asked), Answer(Outcome.DENIED, 1, "ada", None))
        self.assertEqual(self.queue.history(), [decided])
        self.assertIdle()

    def test_closings_are_numbered_in_their_order(self) -> None:
        for number in range(3):
            self.queue.ask(make_request({"n": number}))
        closings = [self.queue.decide(number, Outcome.DENIED, "ada").closing for number in (2, 3, 1)]
        self.assertEqual(closings, sorted(set(closings)))
        self.assertGreater(closing_numbers(1.5e9 + 1)(), closings[-1])  # a process that comes later

    def test_an_approval_gives_a_grant_for_this_call(self) -> None:
        asked = self.queue.ask(make_request())
        self.queue.decide(1, Outcome.APPROVED, "ada")
        grant = self.successResultOf(asked).grant
        assert grant is not None
        self.assertEqual(grant.expires, self.clock.seconds() + GRANT_SECONDS)
        grant.spend(Binding("s1", make_request().digest, "v1"), self.clock.seconds())

    def test_only_an_approval_gives_a_grant(self) -> None:
        denied, withdrawn, expired = (self.queue.ask(make_request({"n": n})) for n in range(3))
        self.queue.decide(1, Outcome.DENIED, "ada")
        withdrawn.cancel()
        self.clock.advance(TIMEOUT)
        answers = [self.successResultOf(asked) for asked in (denied, withdrawn, expired)]
        self.assertEqual([a.outcome for a in answers], [Outcome.DENIED, Outcome.WITHDRAWN, Outcome.EXPIRED])
        self.assertEqual([a.grant for a in answers], [None, None, None])
        self.assertIdle()

    def test_nobody_there_answers_at_once_and_uses_no_number(self) -> None:
        there = False
        queue = make_queue(self.clock, attended=lambda: there)
        seen: list[Change] = []
        queue.subscribe(seen.append)
        self.assertEqual(self.successResultOf(queue.ask(make_request())), Answer(Outcome.UNATTENDED, 0))
        self.assertEqual((seen, queue.history(), self.clock.getDelayedCalls()), ([], [], []))
        there = True
        queue.ask(make_request())
        self.assertEqual(queue.pending()[0].number, 1)

    def test_only_two_answers_are_a_decision(self) -> None:
        self.queue.ask(make_request())
        for outcome in (Outcome.EXPIRED, Outcome.WITHDRAWN, Outcome.UNATTENDED):
            self.assertRaises(ValueError, self.queue.decide, 1, outcome, "ada")
        self.assertEqual(len(self.queue.pending()), 1)

    def test_what_was_shown_must_be_what_is_asked(self) -> None:
        asked = self.queue.ask(make_request())
        with self.assertRaisesRegex(StaleDecision, "other arguments"):
            self.queue.decide(1, Outcome.APPROVED, "ada", make_request({"remote": "evil"}).digest)
        self.assertNoResult(asked)
        self.queue.decide(1, Outcome.APPROVED, "ada", make_request().digest)
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.APPROVED)

    def test_an_unknown_number_is_not_found(self) -> None:
        self.assertRaises(NotFound, self.queue.decide, 1, Outcome.APPROVED, "ada")

    def test_a_late_answer_is_told_what_happened(self) -> None:
        first, second, third = (self.queue.ask(make_request({"n": n})) for n in range(3))
        self.queue.decide(1, Outcome.APPROVED, "ada")
        second.cancel()
        self.clock.advance(TIMEOUT)
        for number, said in ((1, "approved by ada"), (2, "was withdrawn"), (3, "was expired")):
            with self.assertRaisesRegex(StaleDecision, said):
                self.queue.decide(number, Outcome.DENIED, "bob")
        self.assertEqual(self.successResultOf(first).outcome, Outcome.APPROVED)
        self.assertEqual(self.successResultOf(third).outcome, Outcome.EXPIRED)

    def test_the_session_withdraws_everything(self) -> None:
        asked = [self.queue.ask(make_request({"n": n})) for n in range(5)]
        self.queue.withdraw_all()
        self.assertEqual({self.successResultOf(one).outcome for one in asked}, {Outcome.WITHDRAWN})
        self.assertIdle()


class AwaitedNumberTests(QueueTestCase):
    """Numbers come from a file, which takes its time."""

    def setUp(self) -> None:
        self.clock, self.asked_for = Clock(), list[Deferred[int]]()
        self.queue = make_queue(self.clock, next_number=self.next_number)
        self.changes: list[Change] = []
        self.queue.subscribe(self.changes.append)

    def next_number(self) -> Deferred[int]:
        self.asked_for.append(Deferred())
        return self.asked_for[-1]

    def raised(self) -> list[tuple[int, str]]:
        return [(e.number, e.request.call_id) for e in self.queue.pending()]

    def test_a_question_is_seen_once_it_has_its_number(self) -> None:
        self.queue.ask(make_request())
        self.clock.advance(7)
        self.assertEqual((self.queue.pending(), self.changes, self.clock.getDelayedCalls()), ([], [], []))
        self.asked_for[0].callback(4)
        (pending,) = self.queue.pending()
        self.assertEqual((pending.number, pending.expires_at), (4, 1.5e9 + 7 + TIMEOUT))
        self.assertEqual(self.changes, [Raised(pending)])

    def test_questions_keep_their_order(self) -> None:
        """However threads are scheduled: one number is asked for at a time."""
        for name in "abc":
            self.queue.ask(make_request({"n": name}, name))
        for number in (4, 6, 7):
            self.assertEqual(len(self.asked_for), 1)
            self.asked_for.pop().callback(number)
        self.assertEqual(self.raised(), [(4, "a"), (6, "b"), (7, "c")])

    def test_what_is_withdrawn_before_is_never_seen(self) -> None:
        first, second, third = (self.queue.ask(make_request({"n": name}, name)) for name in "abc")
        first.cancel()
        second.cancel()
        for asked in (first, second):
            self.assertEqual(self.successResultOf(asked), Answer(Outcome.WITHDRAWN))
        for number in (4, 5, 6):
            self.asked_for.pop().callback(number)
        self.assertEqual(self.raised(), [(6, "c")])
        self.assertEqual([type(change) for change in self.changes], [Raised])
        self.assertNoResult(third)

    def test_the_session_withdraws_those_too(self) -> None:
        asked = [self.queue.ask(make_request({"n": n})) for n in range(3)]
        self.asked_for.pop().callback(4)
        self.queue.withdraw_all()
        self.assertEqual([self.successResultOf(one).number for one in asked], [4, 0, 0])
        self.asked_for.pop().callback(5)
        self.assertIdle()

    def test_without_a_number_there_is_no_question(self) -> None:
        first, second = self.queue.ask(make_request()), self.queue.ask(make_request({"n": 2}, "b"))
        self.asked_for.pop().errback(OSError("the disk is full"))
        self.failureResultOf(first, OSError)
        self.asked_for.pop().callback(5)
        self.assertEqual(self.raised(), [(5, "b")])
        self.assertNoResult(second)


class ExpiryTests(QueueTestCase):
    def test_it_expires_on_time(self) -> None:
        asked = self.queue.ask(make_request())
        self.clock.advance(TIMEOUT - 0.001)
        self.assertNoResult(asked)
        self.clock.advance(0.001)
        self.assertEqual(self.successResultOf(asked), Answer(Outcome.EXPIRED, 1))

    def test_an_answer_found_at_the_last_moment_is_honoured(self) -> None:
        def look(escalation: Escalation) -> None:
            self.queue.decide(escalation.number, Outcome.APPROVED, "file")

        self.queue.before_expiry = look
        asked = self.queue.ask(make_request())
        self.clock.advance(TIMEOUT)
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.APPROVED)
        self.assertIdle()

    def test_a_last_look_that_fails_is_no_approval(self) -> None:
        def fail(escalation: Escalation) -> None:
            raise RuntimeError("no look")

        self.queue.before_expiry = fail
        asked = self.queue.ask(make_request())
        self.clock.advance(TIMEOUT)
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.EXPIRED)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)


class ObserverTests(QueueTestCase):
    def test_they_hear_of_every_change(self) -> None:
        seen: list[Change] = []
        stop = self.queue.subscribe(seen.append)
        self.queue.ask(make_request())
        self.queue.decide(1, Outcome.DENIED, "ada")
        stop()
        self.queue.ask(make_request())
        self.assertEqual([type(change) for change in seen], [Raised, Closed])
        escalations = [change.escalation for change in seen if not isinstance(change, Revoked)]
        self.assertEqual([escalation.outcome for escalation in escalations], [None, Outcome.DENIED])

    def test_one_that_fails_breaks_nothing(self) -> None:
        def fail(change: Change) -> None:
            raise RuntimeError("no observer")

        seen: list[Change] = []
        self.queue.subscribe(fail)
        self.queue.subscribe(seen.append)
        asked = self.queue.ask(make_request())
        self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.APPROVED)
        self.assertEqual(len(seen), 2)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 2)

    def test_one_may_decide_while_it_hears_of_the_question(self) -> None:
        def decide(change: Change) -> None:
            if isinstance(change, Raised):
                self.queue.decide(change.escalation.number, Outcome.APPROVED, "rule")

        self.queue.subscribe(decide)
        asked = self.queue.ask(make_request())
        self.assertEqual(self.successResultOf(asked).by, "rule")
        self.assertIdle()

    def test_one_may_withdraw_while_it_hears_of_the_answer(self) -> None:
        asked: list[Deferred[Answer]] = []

        def withdraw(change: Change) -> None:
            if isinstance(change, Closed):
                asked[0].cancel()
                self.queue.withdraw_all()

        self.queue.subscribe(withdraw)
        asked.append(self.queue.ask(make_request()))
        asked[0].addErrback(lambda _: None)
        self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertIsNone(self.successResultOf(asked[0]))
        self.assertEqual([it.outcome for it in self.queue.history()], [Outcome.APPROVED])
        self.assertIdle()


class ManyTests(QueueTestCase):
    def test_a_thousand_are_raised_and_all_are_decided(self) -> None:
        self.queue = make_queue(self.clock, limit=1001)
        asked = [self.queue.ask(make_request({"n": n}, f"c{n}")) for n in range(1000)]
        shown = self.queue.pending()
        self.assertEqual([escalation.number for escalation in shown], list(range(1, 1001)))
        late = self.queue.ask(make_request())
        for escalation in shown:
            self.queue.decide(escalation.number, Outcome.APPROVED, "ada", escalation.request.digest)
        self.assertEqual({self.successResultOf(one).outcome for one in asked}, {Outcome.APPROVED})
        self.assertNoResult(late)

    def test_what_is_remembered_is_bounded(self) -> None:
        for number in range(1, HISTORY + 11):
            self.queue.ask(make_request())
            self.queue.decide(number, Outcome.DENIED, "ada")
        self.assertEqual(len(self.queue.history()), HISTORY)
        self.assertEqual(self.queue.history()[-1].number, HISTORY + 10)

    @settings(deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(("ask", "approve", "deny", "withdraw", "wait")), st.integers(0, 9), st.floats(0, 200)
            ),
            max_size=60,
        )
    )
    def test_whatever_happens_each_gets_one_outcome(self, steps: list[tuple[str, int, float]]) -> None:
        clock = Clock()
        queue, asked, outcomes = make_queue(clock, limit=60), list[Deferred[Answer]](), dict[int, Outcome]()

        def heard(change: Change) -> None:
            if isinstance(change, Closed) and change.escalation.outcome is not None:
                self.assertNotIn(change.escalation.number, outcomes)
                outcomes[change.escalation.number] = change.escalation.outcome

        queue.subscribe(heard)
        for action, index, seconds in steps:
            if action == "ask":
                asked.append(queue.ask(make_request({"n": len(asked)})))
            elif action == "wait":
                clock.advance(seconds)
            elif index < len(asked):
                before = outcomes.get(index + 1)
                if action == "withdraw":
                    asked[index].cancel()
                else:
                    try:
                        queue.decide(index + 1, Outcome.APPROVED if action == "approve" else Outcome.DENIED, "ada")
                    except StaleDecision:
                        self.assertIsNotNone(before)
                self.assertIn(before, (None, outcomes[index + 1]))
        clock.advance(TIMEOUT)
        self.assertEqual(
            [self.successResultOf(one).outcome for one in asked], [outcomes[n + 1] for n in range(len(asked))]
        )
        self.assertEqual((queue.pending(), clock.getDelayedCalls()), ([], []))


NUMBERING = """
import sys
from pathlib import Path
from ironcurtain.home.numbers import Counter
for _ in range(25):
    print(Counter(Path(sys.argv[1])).next())
"""


class NumberTests(SynchronousTestCase):
    def test_processes_never_get_the_same_number(self) -> None:
        path = scratch(self) / "escalation.number"
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", NUMBERING, str(path)]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) for _ in range(4)]
        lists = [[int(line) for line in child.communicate()[0].split()] for child in children]
        self.assertEqual(sorted(number for numbers in lists for number in numbers), list(range(1, 101)))
        self.assertEqual([sorted(numbers) for numbers in lists], lists)
