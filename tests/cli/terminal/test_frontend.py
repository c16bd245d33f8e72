from __future__ import annotations

import signal

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from ironcurtain.cli.terminal.frontend import Left
from ironcurtain.errors import SessionError, Unavailable
from ironcurtain.escalation import Outcome
from ironcurtain.session import events
from ironcurtain.session.model import Reply
from tests.cli.terminal.frontends import FrontEndCase


class ConversationTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[int] = self.begin(self.front.interactive())

    def leave(self, status: int = 0) -> None:
        """It ends with this status, and leaves nothing."""
        self.draw()
        self.assertEqual(self.successResultOf(self.done), status)
        self.clean()

    def test_a_message_and_its_answer(self) -> None:
        self.type("hello")
        self.assertEqual(self.session.messages, ["hello"])
        self.session.reply("hello yourself")
        self.draw()
        self.assertEqual(self.surface.printed[-4:], ["", "> hello", "", "hello yourself"])
        self.type("/quit")
        self.leave()

    def test_a_message_while_one_is_processing_is_kept(self) -> None:
        self.type("one", "two")
        self.assertEqual(self.session.messages, ["one"])
        self.assertIn("not sent", self.surface.text)
        self.assertEqual(self.surface.input_line, "two")
        self.session.reply("1")
        self.type("two")
        self.assertEqual(self.session.messages, ["one", "two"])

    def test_a_message_while_a_call_waits_is_told_how_to_answer(self) -> None:
        self.type("one")
        self.session.raise_escalation(3)
        self.draw()
        self.type("y")
        self.assertIn("to answer, type /approve 3 or /deny 3", self.surface.text)
        self.assertEqual((self.session.messages, self.surface.input_line), (["one"], "y"))

    def test_a_message_that_the_session_refuses_is_kept(self) -> None:
        self.session.lagging = True
        self.session.state = "processing"
        self.type("one")
        self.clock.advance(0.3)
        self.draw()
        self.assertIn("no answer: session 7 is processing", self.surface.text)
        self.assertEqual(self.surface.input_line, "one")

    def test_an_error_is_shown_once_and_the_conversation_goes_on(self) -> None:
        self.type("one")
        self.session.fail("overloaded")
        self.clock.advance(5)
        self.draw()
        self.assertEqual(self.surface.text.count("overloaded"), 1)
        self.assertEqual(self.surface.input_line, "")
        self.type("two")
        self.assertEqual(self.session.messages, ["one", "two"])

    def test_a_blank_line_is_nothing(self) -> None:
        self.type("", "  ")
        self.assertEqual(self.session.messages, [])

    def test_messages_from_elsewhere_are_shown(self) -> None:
        self.session.emit(events.TurnStarted(turn=1, message="from bob"))
        self.draw()
        self.assertIn("> from bob", self.surface.printed)

    def test_the_status_is_redrawn_every_second(self) -> None:
        self.type("one")
        self.session.emit(events.ToolCallRaised(call_id="a", server="s", tool="t", arguments="{}"))
        self.clock.pump([1.0] * 3)
        self.assertIn("s.t 3 s", "".join(span.text for span in self.surface.last.status))

    def test_an_answer_whose_events_never_come_is_shown_all_the_same(self) -> None:
        self.session.lagging = True
        self.type("one")
        self.session.reply("42")
        self.clock.advance(1.9)
        self.assertNotIn("42", self.surface.printed)
        self.clock.advance(0.2)
        self.draw()
        self.assertIn("42", self.surface.printed)

    def test_an_answer_whose_events_lag_is_shown_once(self) -> None:
        self.type("one")
        self.session.lagging = True
        self.session.reply("42")
        self.clock.advance(1)
        self.session.lagging = False
        self.session.deliver()
        self.clock.advance(5)
        self.draw()
        self.assertEqual(self.surface.printed.count("42"), 1)

    def test_commands_that_look(self) -> None:
        self.type("one")
        self.session.reply("42")
        self.logs.log.write_text("".join(f"line {i}\n" for i in range(100)))
        self.type("/history", "/budget", "/logs", "/help", "/oops")
        texts = ("   1  one", "100 in, 10 out", str(self.logs.audit), "  line 99", "/approve [N]", "no command /oops")
        for text in texts:
            self.assertIn(text, self.surface.text)
        self.assertNotIn("line 89", self.surface.text)

    def test_logs_that_are_not_there(self) -> None:
        self.type("/logs")
        self.assertIn("it cannot be read: No such file", self.surface.text)

    def test_detaching_leaves_in_the_middle_of_a_message(self) -> None:
        self.type("one", "/detach")
        self.leave()
        self.assertTrue(self.front.detached)
        self.assertEqual(self.session.state, "processing")

    def test_the_end_of_input_leaves(self) -> None:
        self.front.input_ended()
        self.leave()

    def test_a_session_that_somebody_closes(self) -> None:
        self.type("one")
        self.session.end("ended by alice")
        self.leave(1)
        self.assertIn("the session is closed: ended by alice", self.surface.text)

    def test_sigterm(self) -> None:
        self.type("one")
        self.front.signalled(signal.SIGTERM)
        self.leave(143)
        self.session.reply("too late")
        self.clock.advance(5)
        self.assertNotIn("too late", self.surface.text)

    def test_a_lost_terminal(self) -> None:
        self.front.lost("gone")
        self.leave(1)

    def test_output_that_nobody_reads(self) -> None:
        self.surface.is_gone = True
        self.type("/help")
        self.leave(1)

    def test_missed_events(self) -> None:
        self.type("one")
        self.session.lagging = True
        self.session.raise_escalation(4)
        self.session.log._events.clear()
        self.session.lagging = False
        self.session.deliver()
        self.draw()
        self.assertIn("1 event was lost", self.surface.text)
        self.assertIn("Escalation 4", self.surface.text)

    def test_an_event_that_cannot_be_shown_does_no_harm(self) -> None:
        with capturedLogs() as logged:
            self.session.emit(events.ToolFinished(call_id="a", status="success", duration_ms=None))  # type: ignore[arg-type]
            self.session.emit(events.ToolCallRaised(call_id="a", server="s", tool="t", arguments="{}"))
            self.session.emit(events.ToolFinished(call_id="a", status="success", duration_ms=None))  # type: ignore[arg-type]
        self.assertEqual(len([event for event in logged if "could not be shown" in event["log_format"]]), 1)
        self.flushLoggedErrors()
        self.type("one")
        self.assertEqual(self.session.messages, ["one"])


class InterruptTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[int] = self.begin(self.front.interactive())

    def press(self) -> None:
        """Press Ctrl-C."""
        self.front.interrupt()
        self.draw()

    def test_once_cancels_the_message(self) -> None:
        self.type("one")
        self.press()
        self.assertIn("cancelled", self.surface.printed)
        self.type("two")
        self.assertEqual(self.session.messages, ["one", "two"])
        self.assertNoResult(self.done)

    def test_twice_leaves(self) -> None:
        self.type("one")
        self.press()
        self.press()
        self.assertEqual(self.successResultOf(self.done), 130)
        self.clean()

    def test_when_idle_the_first_says_what_the_second_does(self) -> None:
        self.press()
        self.assertIn("press Ctrl-C again to leave", self.surface.printed)
        self.clock.advance(2.0)
        self.press()
        self.assertNoResult(self.done)
        self.press()
        self.assertEqual(self.successResultOf(self.done), 130)


class EscalationTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[int] = self.begin(self.front.interactive())
        self.type("one")

    def test_it_is_shown_and_rings(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.assertIn("| path = /etc/motd", self.surface.printed)
        self.assertEqual(self.surface.bells, ["escalation 3 waits"])

    def test_it_is_decided_for_what_was_shown(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.type("/approve")
        self.assertEqual(self.session.decisions, [(3, Outcome.APPROVED, "digest-3")])
        self.assertIn("escalation 3: approved by me", self.surface.printed)
        self.assertEqual(self.surface.bells[-1], "")

    def test_an_approval_is_kept_listed_and_revoked(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        scope = "filesystem.write_file in /etc and below"
        self.assertIn(f"/approve 3 keep: stop asking about {scope}", self.surface.text)
        self.type("/permissions", "/approve 3 keep", "/permissions")
        self.assertIn("no kept approvals", self.surface.printed)
        self.assertIn(f"escalation 3: approved by me; not asked again about {scope}", " ".join(self.surface.printed))
        self.assertLess({f"3  {scope}", "   kept by me 1 s ago, used 0 times"}, set(self.surface.printed))
        self.type("/revoke 3", "/revoke 3")
        self.assertIn(f"permission 3 revoked by me: {scope}", self.surface.printed)
        self.assertIn("there is no kept approval 3 in this session: see /permissions", self.surface.printed)

    def test_by_number(self) -> None:
        self.session.raise_escalation(3)
        self.session.raise_escalation(4)
        self.draw()
        self.type("/deny")
        self.assertIn("give a number, like: /deny 3 (waiting: 3, 4)", self.surface.printed)
        self.type("/deny 4")
        self.assertEqual(self.session.decisions, [(4, Outcome.DENIED, "digest-4")])

    def test_one_that_came_while_typing_is_not_meant(self) -> None:
        began = self.clock.seconds()
        self.session.raise_escalation(3)
        self.draw()
        self.front.typed("/approve", began)
        self.draw()
        self.assertEqual(self.session.decisions, [])
        self.assertIn("it was shown while you were typing: read it, then type /approve 3", self.surface.text)

    def test_one_that_is_not_drawn_yet_is_not_meant(self) -> None:
        self.session.raise_escalation(3)
        self.front.typed("/approve 3", self.clock.seconds())
        self.draw()
        self.assertEqual(self.session.decisions, [])

    def test_a_decision_elsewhere_is_said(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.session.close_escalation(3, "denied", "alice")
        self.draw()
        self.assertIn("escalation 3: denied by alice", self.surface.printed)
        self.type("/approve 3")
        self.assertIn("too late: escalation 3: denied by alice", self.surface.printed)

    def test_a_decision_that_is_too_late_is_said(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.session.lagging = True
        self.session.close_escalation(3, "expired")
        self.type("/approve")
        self.assertIn("too late: escalation 3 was expired before", self.surface.printed)

    def test_the_same_one_is_not_decided_twice(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.session.lagging = True
        self.type("/approve", "/approve")
        self.assertEqual(len(self.session.decisions), 1)

    def test_one_that_is_over_before_it_is_drawn_is_not_shown(self) -> None:
        self.session.raise_escalation(3)
        self.session.close_escalation(3, "expired")
        self.draw()
        self.assertNotIn("Type /approve", self.surface.text)
        self.assertEqual(self.surface.bells, [])

    def test_none_is_said(self) -> None:
        self.type("/approve")
        self.assertIn("no call waits for a decision: there is nothing to approve", self.surface.printed)


class SingleShotTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[Reply] = self.begin(self.front.single_shot("count"))

    def test_the_answer_is_returned_and_not_printed(self) -> None:
        self.session.emit(events.AgentText(text="42"))
        self.session.reply("42")
        self.assertEqual(self.successResultOf(self.done).text, "42")
        self.assertEqual(self.surface.printed, [])
        self.clean()

    def test_the_sessions_error_is_raised(self) -> None:
        self.session.fail("overloaded")
        self.assertEqual(str(self.failureResultOf(self.done, SessionError).value), "overloaded")
        self.clean()

    def test_escalations_can_be_answered(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.type("/approve 3")
        self.assertEqual(self.session.decisions, [(3, Outcome.APPROVED, "digest-3")])

    def test_more_messages_are_refused(self) -> None:
        self.type("and then?")
        self.front.input_ended()
        self.draw()
        self.assertIn("this is a single task: start without a task for a conversation", self.surface.printed)

    def test_what_is_no_answer_to_a_question_is_told_what_to_type(self) -> None:
        self.session.raise_escalation(3)
        self.draw()
        self.type("yes")
        self.assertIn("to answer, type /approve 3 or /deny 3", self.surface.printed)
        self.assertEqual(self.session.messages, ["count"])
        self.assertNoResult(self.done)

    def test_ctrl_c(self) -> None:
        self.front.interrupt()
        self.assertEqual(self.failureResultOf(self.done, Left).value.exit_status, 130)
        self.assertIn("cancelled", self.surface.printed)
        self.clean()

    def test_sigterm(self) -> None:
        self.front.signalled(signal.SIGTERM)
        self.draw()
        self.assertEqual(self.failureResultOf(self.done, Left).value.exit_status, 143)
        self.clean()

    def test_detaching(self) -> None:
        self.type("/detach")
        self.assertEqual(self.failureResultOf(self.done, Left).value.exit_status, 0)
        self.assertTrue(self.front.detached)
        self.clean()

    def test_a_session_that_somebody_closes(self) -> None:
        self.session.end("ended by alice")
        self.draw()
        error = self.failureResultOf(self.done, SessionError).value
        self.assertEqual(str(error), "session 7 was closed: ended by alice")
        self.clean()

    def test_cancelling_it_restores_the_terminal(self) -> None:
        self.done.cancel()
        self.failureResultOf(self.done)
        self.assertFalse(self.surface.is_open)


class StartTests(FrontEndCase):
    def test_a_session_that_cannot_be_followed(self) -> None:
        async def follow(*_: object) -> object:
            raise Unavailable("it is gone")

        self.session.follow = follow  # type: ignore[method-assign, assignment]
        self.failureResultOf(self.begin(self.front.interactive()), Unavailable)
        self.clean()

    def test_what_happened_before_is_shown_without_ringing(self) -> None:
        self.session.raise_escalation(2)
        self.session.close_escalation(2, "approved", "bob")
        self.session.raise_escalation(3)
        self.begin(self.front.interactive())
        self.assertIn("escalation 2: approved by bob", self.surface.printed)
        self.assertEqual(self.surface.bells, ["escalation 3 waits"])
