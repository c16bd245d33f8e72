"""Forms in the queue of escalations: one answer, and only who asked gets the values."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound, StaleDecision, UsageError
from ironcurtain.escalation import Answer, EscalationRequest, Outcome
from ironcurtain.escalation.files import response_name
from ironcurtain.escalation.form_values import Field
from ironcurtain.escalation.forms import Form, FormError
from ironcurtain.escalation.model import Change
from ironcurtain.escalation.rendezvous import Rendezvous
from ironcurtain.escalation.watcher import DirectoryWatcher
from tests.audit.doubles import scratch
from tests.escalation.doubles import TIMEOUT, make_queue, make_request, no_more_files

FORM = Form(message="Who?", fields=(Field(name="name", kind="text", required=True), Field(name="age", kind="integer")))


def form_request(form: Form = FORM, **arguments: Any) -> EscalationRequest:
    """:returns: a request to fill in a form."""
    return replace(make_request(arguments), server="far", tool="elicitation/create", form=form)


class FormAnswerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.queue = make_queue(self.clock)
        self.changes: list[Change] = []
        self.queue.subscribe(self.changes.append)

    def ask(self) -> tuple[int, Deferred[Answer]]:
        asked = self.queue.ask(form_request())
        return self.queue.pending()[-1].number, asked

    def test_values_reach_only_who_asked(self) -> None:
        number, asked = self.ask()
        closed = self.queue.answer(number, {"name": "Ada"}, "ada")
        answer = self.successResultOf(asked)
        self.assertEqual((answer.outcome, answer.by, answer.content), (Outcome.ANSWERED, "ada", {"name": "Ada"}))
        self.assertIsNotNone(answer.grant)
        self.assertNotIn("Ada", repr((answer, closed, self.changes, self.queue.history())))

    def test_wrong_values_leave_the_form_waiting(self) -> None:
        number, asked = self.ask()
        with self.assertRaisesRegex(FormError, "name: it is required; age: it must be a whole number"):
            self.queue.answer(number, {"age": 1.5}, "ada")
        self.assertNoResult(asked)
        self.queue.answer(number, {"name": "Ada", "age": 36}, "bob")
        with self.assertRaisesRegex(StaleDecision, f"too late: escalation {number} was answered by bob"):
            self.queue.answer(number, {"name": "Eve"}, "eve")
        self.assertEqual(self.successResultOf(asked).content, {"name": "Ada", "age": 36})

    def test_form_is_answered_and_never_approved(self) -> None:
        number, asked = self.ask()
        with self.assertRaisesRegex(UsageError, f"{number} is a form: fill it in with 'ironcurtain answer {number}'"):
            self.queue.decide(number, Outcome.APPROVED, "ada")
        with self.assertRaises(UsageError):
            self.queue.decide(number, Outcome.APPROVED, "ada", keep=True)
        self.assertNoResult(asked)

    def test_call_is_not_answered(self) -> None:
        asked = self.queue.ask(make_request())
        with self.assertRaisesRegex(UsageError, "1 is a call and no form"):
            self.queue.answer(1, {}, "ada")
        self.assertNoResult(asked)
        self.assertRaises(NotFound, self.queue.answer, 2, {}, "ada")

    def test_declining_cancelling_and_deadline_have_no_values(self) -> None:
        for act, outcome in (
            (lambda number: self.queue.decide(number, Outcome.DENIED, "ada"), Outcome.DENIED),
            (lambda number: self.queue.answer(number, None, "ada"), Outcome.CANCELLED),
            (lambda number: self.queue.deny_all("ada"), Outcome.DENIED),
            (lambda number: self.clock.advance(TIMEOUT), Outcome.EXPIRED),
            (lambda number: self.queue.end(), Outcome.WITHDRAWN),
        ):
            number, asked = self.ask()
            act(number)
            answer = self.successResultOf(asked)
            self.assertEqual((answer.outcome, answer.content, answer.grant), (outcome, None, None))

    def test_another_form_than_the_one_shown_is_not_answered(self) -> None:
        number, asked = self.ask()
        self.assertRaises(StaleDecision, self.queue.answer, number, {"name": "Ada"}, "ada", "0" * 64)
        self.assertNoResult(asked)

    def test_equal_forms_are_asked_each(self) -> None:
        (one, first), (two, second) = self.ask(), self.ask()
        self.assertNotEqual(one, two)
        self.queue.answer(one, {"name": "Ada"}, "ada")
        self.assertEqual(self.successResultOf(first).content, {"name": "Ada"})
        self.assertNoResult(second)

    def test_files_can_decline_and_not_approve(self) -> None:
        directory = scratch(self)
        with no_more_files():
            watcher = DirectoryWatcher(self.clock)
        rendezvous = Rendezvous(directory, self.queue, watcher, lambda: 1.5e9)
        rendezvous.start()
        self.addCleanup(rendezvous.stop)
        _, asked = self.ask()
        (escalation,) = self.queue.pending()
        published = msgspec.json.decode((directory / f"request-{escalation.id}.json").read_bytes())
        self.assertEqual(published["form"]["message"], "Who?")
        response = directory / response_name(escalation.id)
        response.write_text('{"decision": "approved", "by": "me"}')
        rendezvous.scan()
        self.assertNoResult(asked)
        self.assertFalse(response.exists())
        response.write_text('{"decision": "denied", "by": "me"}')
        rendezvous.scan()
        self.assertIs(self.successResultOf(asked).outcome, Outcome.DENIED)
