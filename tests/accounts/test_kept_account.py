from __future__ import annotations

import os

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import capturedLogs, eventAsText

from ironcurtain.accounts.kept_account import LOCK_SECONDS, PATIENCE_SECONDS, RETRY_SECONDS, KeptAccount
from ironcurtain.accounts.login import Login
from ironcurtain.accounts.source import Token
from ironcurtain.errors import ConfigurationError, NotFound, Unavailable
from ironcurtain.secrets.redaction import Secret
from tests.accounts.samples import CANARY, CLAUDE_ACCESS
from tests.accounts.support import NOW, AccountTestCase


def renewal(account: KeptAccount) -> Deferred[Token]:
    return Deferred.fromCoroutine(account.refreshed(account.current()))


class RenewalTests(AccountTestCase):
    def test_new_tokens_are_in_the_file_before_anybody_uses_them(self) -> None:
        account = self.account()
        renewed = renewal(account)
        self.server.answer()
        token = self.successResultOf(renewed)
        self.assertEqual((token.secret.reveal(), token.expires), (f"{CANARY}-a1", NOW + 3600))
        stored = self.file.read()
        assert stored.refresh is not None
        self.assertEqual((stored.access, stored.refresh.reveal()), (token.secret, f"{CANARY}-r1"))

    def test_token_stays_the_same_object_until_it_changes(self) -> None:
        account = self.account()
        before = account.current()
        self.file.write(self.file.read())
        self.assertIs(account.current(), before)

    def test_callers_at_one_time_cause_one_request(self) -> None:
        account = self.account()
        waiting = [renewal(account) for _ in range(5)]
        self.assertEqual(self.reactor.getDelayedCalls(), [])  # nobody waits for the lock
        self.server.answer()
        self.assertEqual({self.successResultOf(each).secret.reveal() for each in waiting}, {f"{CANARY}-a1"})
        self.assertEqual(len(self.server.asked), 1)

    def test_caller_with_an_older_token_gets_the_current_one_at_once(self) -> None:
        account = self.account()
        stale = account.current()
        first = renewal(account)
        self.server.answer()
        self.successResultOf(first)
        again = self.successResultOf(Deferred.fromCoroutine(account.refreshed(stale)))
        self.assertEqual((again.secret.reveal(), len(self.server.asked)), (f"{CANARY}-a1", 1))

    def test_second_process_waits_for_the_first_and_takes_its_token(self) -> None:
        first, second = self.account(), self.account()
        renewing, waiting = renewal(first), renewal(second)
        self.reactor.advance(LOCK_SECONDS)
        self.assertNoResult(waiting)
        self.server.answer()
        self.reactor.advance(LOCK_SECONDS)
        tokens = {self.successResultOf(each).secret.reveal() for each in (renewing, waiting)}
        self.assertEqual((tokens, len(self.server.asked)), ({f"{CANARY}-a1"}, 1))

    def test_token_renewed_by_another_process_is_used_without_asking(self) -> None:
        first, second = self.account(), self.account()
        done = renewal(first)
        self.server.answer()
        self.successResultOf(done)
        self.assertEqual(second.current().secret.reveal(), f"{CANARY}-a1")

    def test_process_that_keeps_the_lock_is_not_waited_for_for_ever(self) -> None:
        lock = self.file.lock()
        lock.acquire()
        self.addCleanup(lock.release)
        waiting = renewal(self.account())
        for _ in range(int(PATIENCE_SECONDS) + 2):
            self.reactor.pump([LOCK_SECONDS] * 20)
        self.assertIn(f"process {os.getpid()}", str(self.failureResultOf(waiting, Unavailable).value))

    def test_cancelled_caller_does_not_lose_the_answer(self) -> None:
        account = self.account()
        waiting = renewal(account)
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.server.answer()
        self.assertEqual(self.file.read().access.reveal(), f"{CANARY}-a1")
        self.assertEqual(account.current().secret.reveal(), f"{CANARY}-a1")

    def test_process_ends_only_after_the_answer(self) -> None:
        renewal(self.account())
        ended = self.reactor.before_end[0]()
        self.assertNoResult(ended)
        self.server.answer()
        self.successResultOf(ended)

    def test_nothing_holds_the_process_after_the_answer(self) -> None:
        renewal(self.account())
        self.server.answer()
        self.assertEqual(self.reactor.before_end, [])


class FailureTests(AccountTestCase):
    def test_refused_login_names_the_command_and_is_not_tried_again(self) -> None:
        account = self.account()
        waiting = renewal(account)
        self.server.refuse()
        error = self.failureResultOf(waiting, ConfigurationError).value
        self.assertIn("run ironcurtain login claude", str(error))
        self.reactor.advance(10 * RETRY_SECONDS)
        self.failureResultOf(renewal(account), ConfigurationError)
        self.assertEqual((len(self.server.asked), self.file.read().refused), (1, True))

    def test_login_that_was_refused_elsewhere_is_not_tried(self) -> None:
        waiting = renewal(self.account())
        self.server.refuse()
        self.failureResultOf(waiting, ConfigurationError)
        self.failureResultOf(renewal(self.account()), ConfigurationError)
        self.assertEqual(len(self.server.asked), 1)

    def test_login_made_again_ends_the_refusal(self) -> None:
        account = self.account()
        waiting = renewal(account)
        self.server.refuse()
        self.failureResultOf(waiting, ConfigurationError)
        self.file.write(Login("claude", Secret("fresh")))
        stale = Token(Secret(CLAUDE_ACCESS))
        token = self.successResultOf(Deferred.fromCoroutine(account.refreshed(stale)))
        self.assertEqual(token.secret.reveal(), "fresh")

    def test_server_that_fails_is_asked_again_after_a_while_only(self) -> None:
        account = self.account()
        waiting = renewal(account)
        self.server.refuse(503, "busy")
        self.failureResultOf(waiting, Unavailable)
        self.failureResultOf(renewal(account), Unavailable)
        self.reactor.advance(RETRY_SECONDS)
        again = renewal(account)
        self.server.answer()
        self.successResultOf(again)
        self.assertEqual(len(self.server.asked), 2)

    def test_lost_answer_leaves_the_file_as_it_was(self) -> None:
        waiting = renewal(self.account())
        self.server.open.pop().errback(Unavailable("lost"))
        self.failureResultOf(waiting, Unavailable)
        self.assertEqual(self.file.read().access.reveal(), CLAUDE_ACCESS)

    def test_unwritable_file_is_noticed_before_the_refresh_token_is_spent(self) -> None:
        account = self.account()
        self.patch(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        error = self.failureResultOf(renewal(account), Unavailable).value
        self.assertIn("No space left", str(error))
        self.assertEqual(self.server.asked, [])

    def test_login_without_refresh_token_names_the_command(self) -> None:
        self.file.write(Login("claude", Secret("only")))
        error = self.failureResultOf(renewal(self.account()), ConfigurationError).value
        self.assertIn("run ironcurtain login claude", str(error))

    def test_removed_login_is_reported(self) -> None:
        account = self.account()
        self.file.remove()
        self.assertRaises(NotFound, account.current)

    def test_no_token_is_in_logs_errors_and_descriptions(self) -> None:
        with capturedLogs() as events:
            account = self.account()
            waiting = renewal(account)
            self.server.answer()
            self.successResultOf(waiting)
            failing = renewal(account)
            self.server.open.pop().errback(RuntimeError("broken"))
            failure = self.failureResultOf(failing, RuntimeError)
        self.flushLoggedErrors(RuntimeError)
        shown = "".join(map(eventAsText, events)) + failure.getTraceback(detail="verbose") + account.description
        self.assertNotIn(CANARY, shown)
        self.assertIn("renewed the login claude", shown)

    def test_redactor_knows_old_and_new_tokens(self) -> None:
        waiting = renewal(self.account())
        self.server.answer()
        self.successResultOf(waiting)
        for secret in (CLAUDE_ACCESS, f"{CANARY}-a1", f"{CANARY}-r1"):
            self.assertEqual(self.redactor.text(f"x {secret} y"), "x [redacted] y")
