from __future__ import annotations

import json
import os
from pathlib import Path

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import Answer, Escalation, Outcome
from ironcurtain.escalation.files import RESPONSE_LIMIT, request_file, request_name, response_name
from ironcurtain.escalation.rendezvous import PATIENCE, Rendezvous
from ironcurtain.escalation.watcher import SCAN_SECONDS_UNWATCHED, DirectoryWatcher
from tests.audit.doubles import scratch
from tests.escalation.doubles import TIMEOUT, make_queue, make_request, no_more_files

NOW = 1.5e9
APPROVED = b'{"decision":"approved"}'


class RendezvousTestCase(SynchronousTestCase):
    """The system cannot watch directories here, so that looking happens when the clock says."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.directory = scratch(self)
        self.queue = make_queue(self.clock, now=NOW)
        with no_more_files():
            self.watcher = DirectoryWatcher(self.clock)
        self.rendezvous = Rendezvous(self.directory, self.queue, self.watcher, lambda: NOW + self.clock.seconds())
        self.rendezvous.start()
        self.addCleanup(self.watcher.stop)

    def ask(self) -> tuple[Escalation, Deferred[Answer]]:
        others = len(self.queue.pending())
        asked = self.queue.ask(make_request({"n": others} if others else None))
        return self.queue.pending()[-1], asked

    def response(self, escalation: Escalation) -> Path:
        return self.directory / response_name(escalation.id)

    def answer(self, escalation: Escalation, data: bytes = APPROVED, written: float = 0.0) -> None:
        """:param written: seconds after now."""
        path = self.response(escalation)
        temporary = path.with_name("mine.tmp")
        temporary.write_bytes(data)
        os.utime(temporary, (NOW + written, NOW + written))
        temporary.rename(path)

    def look(self) -> None:
        self.clock.advance(SCAN_SECONDS_UNWATCHED)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.directory))


class PublishingTests(RendezvousTestCase):
    def test_a_question_is_published_whole_and_private(self) -> None:
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        escalation, _ = self.ask()
        (name,) = self.names()
        path = self.directory / name
        self.assertEqual(name, request_name(escalation.id))
        self.assertEqual(path.read_bytes(), request_file(escalation))
        self.assertEqual(path.stat().st_mode & 0o7777, 0o600)
        self.assertEqual(path.stat().st_nlink, 1)

    def test_files_go_with_every_outcome(self) -> None:
        for end in (
            lambda it, asked: self.queue.decide(it.number, Outcome.APPROVED, "ada"),
            lambda it, asked: self.queue.decide(it.number, Outcome.DENIED, "ada"),
            lambda it, asked: asked.cancel(),
            lambda it, asked: self.clock.advance(TIMEOUT),
            lambda it, asked: self.queue.withdraw_all(),
        ):
            escalation, asked = self.ask()
            self.assertEqual(len(self.names()), 1)
            end(escalation, asked)
            self.successResultOf(asked)
            self.assertEqual(self.names(), [])

    def test_what_cannot_be_published_can_be_answered_elsewhere(self) -> None:
        with no_more_files():
            _, asked = self.ask()
        self.assertEqual(self.names(), [])
        self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.APPROVED)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)

    def test_leftovers_are_cleared_at_the_start(self) -> None:
        self.rendezvous.stop()
        for name in ("request-aa.json", "response-aa.json", ".request-aa.json.0123456789ab"):
            (self.directory / name).write_bytes(APPROVED)
        (self.directory / "notes.txt").write_bytes(b"mine")
        self.rendezvous.start()
        self.assertEqual(self.names(), ["notes.txt"])

    def test_after_the_end_nothing_is_watched(self) -> None:
        self.rendezvous.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        _, asked = self.ask()
        self.assertEqual(self.names(), [])
        asked.cancel()


class TwoApprovalsTests(RendezvousTestCase):
    """A file counts as one principal at most, by its name."""

    def setUp(self) -> None:
        super().setUp()
        self.asked = self.queue.ask(replace(make_request(), approvals=2))
        (self.escalation,) = self.queue.pending()

    def approve(self, data: bytes = APPROVED) -> None:
        self.answer(self.escalation, data)
        self.look()

    def published(self) -> object:
        return json.loads((self.directory / request_name(self.escalation.id)).read_bytes())["approvedBy"]

    def test_files_without_a_name_are_one_principal(self) -> None:
        self.approve()
        self.assertEqual(self.published(), ["file"])
        self.assertEqual(self.names(), [request_name(self.escalation.id)])
        with capturedLogs() as logs:
            self.approve()
        self.assertIn("another person must approve it", "".join(filter(None, map(formatEvent, logs))))
        self.assertNoResult(self.asked)
        self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.successResultOf(self.asked).outcome, Outcome.APPROVED)
        self.assertEqual(self.names(), [])

    def test_names_in_files_differ(self) -> None:
        self.approve(b'{"decision":"approved","by":"ada"}')
        self.approve(b'{"decision":"approved","by":"bob"}')
        self.assertEqual(self.successResultOf(self.asked).outcome, Outcome.APPROVED)
        self.assertEqual(self.queue.history()[0].approved_by, ("file:ada", "file:bob"))

    def test_an_approval_elsewhere_is_published_and_removes_no_answer(self) -> None:
        self.answer(self.escalation)
        self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.published(), ["ada"])
        self.look()
        self.assertEqual(self.successResultOf(self.asked).outcome, Outcome.APPROVED)


class AnswerTests(RendezvousTestCase):
    def assertTaken(self, asked: Deferred[Answer], outcome: Outcome, by: str = "file") -> None:
        answer = self.successResultOf(asked)
        self.assertEqual((answer.outcome, answer.by), (outcome, by))
        self.assertEqual(self.names(), [])

    def test_renamed_into_place(self) -> None:
        for word, outcome in (("approved", Outcome.APPROVED), ("denied", Outcome.DENIED)):
            escalation, asked = self.ask()
            self.answer(escalation, json.dumps({"decision": word, "by": "ada"}).encode())
            self.assertNoResult(asked)
            self.look()
            self.assertTaken(asked, outcome, "file:ada")

    def test_linked_into_place(self) -> None:
        escalation, asked = self.ask()
        temporary = self.directory / "mine.tmp"
        temporary.write_bytes(APPROVED)
        os.link(temporary, self.response(escalation))
        temporary.unlink()
        self.look()
        self.assertTaken(asked, Outcome.APPROVED)

    def test_written_slowly_in_place(self) -> None:
        escalation, asked = self.ask()
        path = self.response(escalation)
        for length in range(len(APPROVED)):
            path.write_bytes(APPROVED[:length])
            os.utime(path, (NOW, NOW))
            self.rendezvous.scan()
            self.assertNoResult(asked)
        path.write_bytes(APPROVED)
        self.rendezvous.scan()
        self.assertTaken(asked, Outcome.APPROVED)

    def test_what_stays_unreadable_is_a_no(self) -> None:
        escalation, asked = self.ask()
        self.answer(escalation, b"approved, of course")
        self.clock.advance(PATIENCE - 0.01)
        self.rendezvous.scan()
        self.assertNoResult(asked)
        self.clock.advance(0.01)
        self.rendezvous.scan()
        self.assertTaken(asked, Outcome.DENIED, "file:unreadable answer file")

    def test_a_member_that_stands_twice_is_a_no(self) -> None:
        escalation, asked = self.ask()
        self.answer(escalation, b'{"decision":"denied","decision":"approved"}')
        with capturedLogs() as logs:
            self.clock.advance(PATIENCE)
            self.rendezvous.scan()
        self.assertTaken(asked, Outcome.DENIED, "file:unreadable answer file")
        self.assertIn('"decision" occurs twice', "".join(formatEvent(event) for event in logs))

    def test_an_answer_that_came_too_late_goes(self) -> None:
        first, asked = self.ask()
        self.queue.decide(first.number, Outcome.DENIED, "ada")
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.DENIED)
        second, waiting = self.ask()
        for escalation in (first, second):
            self.answer(escalation, b"{", written=TIMEOUT)
        (self.directory / "notes.txt").write_bytes(b"mine")
        self.rendezvous.scan()
        self.assertNoResult(waiting)
        self.assertEqual(self.names(), ["notes.txt", request_name(second.id), response_name(second.id)])
        waiting.cancel()

    def test_other_arguments_than_shown_are_ignored(self) -> None:
        escalation, asked = self.ask()
        digest = make_request({"remote": "evil"}).digest
        self.answer(escalation, json.dumps({"decision": "approved", "argumentsDigest": digest}).encode())
        self.look()
        self.assertNoResult(asked)
        self.assertEqual(self.names(), [request_name(escalation.id)])
        digest = escalation.request.digest
        self.answer(escalation, json.dumps({"decision": "approved", "argumentsDigest": digest}).encode())
        self.look()
        self.assertTaken(asked, Outcome.APPROVED)

    def test_an_answer_for_another_changes_nothing(self) -> None:
        first, asked_first = self.ask()
        second, asked_second = self.ask()
        self.answer(second)
        self.look()
        self.assertNoResult(asked_first)
        self.assertEqual(self.successResultOf(asked_second).number, second.number)
        self.assertEqual(self.names(), [request_name(first.id)])
        asked_first.cancel()

    def test_the_last_moment_counts(self) -> None:
        escalation, asked = self.ask()
        self.clock.advance(TIMEOUT - 0.1)
        self.rendezvous.stop()  # nobody looks any more, but the queue itself
        self.answer(escalation, written=TIMEOUT - 0.1)
        self.clock.advance(0.1)
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.APPROVED)

    def test_garbage_at_the_last_moment_is_a_no(self) -> None:
        escalation, asked = self.ask()
        self.clock.advance(TIMEOUT - 0.1)
        self.answer(escalation, b"{", written=TIMEOUT - 0.1)
        self.clock.advance(0.1)
        self.assertTaken(asked, Outcome.DENIED, "file:unreadable answer file")

    def test_it_lets_no_more_equal_calls_through_than_the_file_showed(self) -> None:
        escalation, first = self.ask()
        second = self.queue.ask(make_request())
        self.answer(escalation)
        self.look()
        self.assertEqual(self.successResultOf(first).outcome, Outcome.APPROVED)
        self.assertNoResult(second)
        self.assertIn(b'"number":2', b"".join(path.read_bytes() for path in self.directory.glob("request-*")))

    def test_many_answers_in_one_look(self) -> None:
        pairs = [self.ask() for _ in range(32)]
        for escalation, _ in pairs:
            self.answer(escalation)
        self.look()
        self.assertEqual({self.successResultOf(asked).outcome for _, asked in pairs}, {Outcome.APPROVED})
        self.assertEqual(self.names(), [])

    def test_a_directory_that_is_gone_is_no_answer(self) -> None:
        escalation, asked = self.ask()
        (self.directory / request_name(escalation.id)).unlink()
        self.directory.rmdir()
        self.look()
        self.assertNoResult(asked)
        self.queue.decide(escalation.number, Outcome.DENIED, "ada")
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.DENIED)


class HostileAnswerTests(RendezvousTestCase):
    def refused(self, escalation: Escalation, asked: Deferred[Answer]) -> None:
        self.look()
        answer = self.successResultOf(asked)
        self.assertEqual((answer.outcome, answer.by), (Outcome.DENIED, "file:unreadable answer file"))
        self.assertEqual(self.names(), [])

    def test_a_link(self) -> None:
        target = scratch(self) / "target"
        target.write_bytes(APPROVED)
        escalation, asked = self.ask()
        self.response(escalation).symlink_to(target)
        self.refused(escalation, asked)
        self.assertEqual(target.read_bytes(), APPROVED)

    def test_a_pipe(self) -> None:
        escalation, asked = self.ask()
        os.mkfifo(self.response(escalation))
        self.refused(escalation, asked)

    def test_too_large(self) -> None:
        escalation, asked = self.ask()
        self.answer(escalation, APPROVED + b" " * RESPONSE_LIMIT)
        self.refused(escalation, asked)

    def test_as_large_as_may_be(self) -> None:
        escalation, asked = self.ask()
        self.answer(escalation, APPROVED.ljust(RESPONSE_LIMIT))
        self.look()
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.APPROVED)

    def test_somebody_elses(self) -> None:
        escalation, asked = self.ask()
        self.answer(escalation)
        if os.geteuid() == 0:
            os.chown(self.response(escalation), 65534, 65534)
        else:  # only the superuser gives files away; one that cannot be read is as good
            self.response(escalation).chmod(0)
        self.refused(escalation, asked)

    def test_a_directory_is_a_no_and_stays(self) -> None:
        escalation, asked = self.ask()
        self.response(escalation).mkdir()
        self.look()
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.DENIED)
        self.assertEqual(self.names(), [response_name(escalation.id)])
        self.assertEqual(len(self.flushLoggedErrors(IsADirectoryError)), 1)

    def test_too_many_open_files_are_no_denial(self) -> None:
        escalation, asked = self.ask()
        self.answer(escalation)
        self.rendezvous.stop()
        with no_more_files():
            self.clock.advance(TIMEOUT)
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.EXPIRED)

    def test_too_many_open_files_are_no_answer(self) -> None:
        escalation, asked = self.ask()
        self.answer(escalation)
        with no_more_files():
            self.look()
        self.flushLoggedErrors(OSError)
        self.assertNoResult(asked)
        self.look()
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.APPROVED)
