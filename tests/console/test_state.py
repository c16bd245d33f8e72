"""The state of the console: keys, commands and news."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.details import Details
from ironcurtain.console.keys import enter, press
from ironcurtain.console.layout import frame
from ironcurtain.console.state import REFRESH, ConsoleState, Effect, Section, Send, ShownEscalation, key_of
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.session.model import AuditHead
from ironcurtain.view.commands import Command
from tests.console.doubles import NOW, escalation, session


class KeyTests(SynchronousTestCase):
    """Single keys and commands."""

    def setUp(self) -> None:
        self.views = [escalation(number) for number in (1, 2, 3)]
        self.state, self.time = ConsoleState().news([session()], self.views, NOW), 0.0
        self.draw()

    def press(self, key: str) -> tuple[ConsoleState, tuple[Effect, ...]]:
        """:returns: what comes of a key, after a pause."""
        self.time += QUIET_SECONDS
        return press(self.state, key, self.time)

    def enter(self, line: str) -> tuple[ConsoleState, tuple[Effect, ...]]:
        """:returns: what comes of a line that is typed after a pause."""
        self.time += QUIET_SECONDS
        return enter(replace(self.state, began=self.time), line, self.time)

    def draw(self) -> None:
        self.state = self.state.drawn(frame(self.state, Details(), 80, 24, NOW).shown, self.time)

    def type(self, *keys: str) -> list[Any]:
        done: list[Any] = []
        for key in keys:
            self.state, effects = self.press(key)
            done += effects
            self.draw()
        return done

    def test_a_and_y_approve_the_chosen_one_with_its_digest(self) -> None:
        self.assertEqual(self.type("j", "a", "y"), [Send(Outcome.APPROVED, key_of(self.views[1]), calls=1)])

    def test_what_has_no_scope_cannot_be_kept(self) -> None:
        self.assertEqual(self.type("A", "y"), [])
        self.assertIn("the approval of 1 cannot be kept", self.state.message[0])

    def test_to_keep_is_asked_even_where_the_call_is_on_the_screen(self) -> None:
        scope = "filesystem.read_text_file in /home/ada/src and below"
        self.views = [msgspec.structs.replace(view, scope=scope) for view in self.views]
        self.state = self.state.news([session()], self.views, NOW)
        self.draw()
        self.assertEqual(self.state.shown.whole, key_of(self.views[0]))
        self.state, effects = self.enter("/approve 1 keep")
        self.assertEqual(effects, ())
        self.draw()
        self.assertEqual(self.type("y"), [Send(Outcome.APPROVED, key_of(self.views[0]), keep=True, calls=1)])

    def test_nothing_is_approved_behind_the_list_of_permissions(self) -> None:
        self.state, effects = self.enter("/permissions")
        self.assertEqual(effects, (REFRESH,))
        self.draw()
        self.assertIsNone(self.state.shown.whole)
        self.state, effects = self.enter("/approve 1")
        self.assertEqual((effects, self.state.permitted), ((), False))

    def long(self, text: str) -> list[Any]:
        """:returns: what is sent when a long call is approved at once."""
        self.views = [escalation(9, {"path": "/x", "content": text})]
        self.state = self.state.news([session()], self.views, NOW)
        self.draw()
        return self.type("a", "y")

    def test_a_long_one_is_read_to_its_end_before_it_is_approved(self) -> None:
        self.assertEqual(self.long("line\nother\n" * 100), [])
        self.assertEqual(self.state.message[0], "9 was not shown whole: read it with PgDn from begin to end first")
        self.assertEqual((self.enter("/approve 9")[1], self.enter("/approve all")[1]), ((), ()))
        self.type("G")
        self.assertEqual((self.state.shown.end, self.type("a", "y")), (self.state.scroll, []))
        self.type("g", *["page down"] * 40)
        self.assertEqual(self.type("a", "y"), [Send(Outcome.APPROVED, key_of(self.views[0]), calls=1)])

    def test_what_is_too_long_for_the_screen_is_not_approved_here(self) -> None:
        self.assertEqual(self.long("line\nother\n" * 10_000), [])
        self.type("G")
        self.assertEqual(self.type("a", "y"), [])
        self.assertIn("'ironcurtain escalations show 9' shows all of it", self.state.message[0])

    def test_equal_calls_that_came_after_the_last_frame_are_not_approved_with_it(self) -> None:
        more = msgspec.structs.replace(self.views[0], calls=5)
        self.state, _ = self.press("a")
        self.draw()
        self.state = self.state.news([session()], [more], NOW)
        self.state, effects = self.press("y")
        self.assertEqual(effects, (Send(Outcome.APPROVED, key_of(more), calls=1),))
        self.draw()
        self.assertEqual(self.type("a", "y"), [Send(Outcome.APPROVED, key_of(more), calls=5)])

    def test_d_and_y_deny(self) -> None:
        self.assertEqual(self.type("d", "y"), [Send(Outcome.DENIED, key_of(self.views[0]), calls=1)])

    def test_anything_but_y_decides_nothing(self) -> None:
        self.assertEqual(self.type("a", "enter", "a", "esc", "y", "d", "esc", "y"), [])

    def test_a_key_that_is_not_offered_cancels_nothing(self) -> None:
        for key in ("a", "n", "c", "q", "x", "ctrl d", "enter", "a", "d"):
            self.assertEqual(self.type(key), [])
            self.assertIsNotNone(self.state.question, key)
        self.assertEqual(len(self.type("y")), 1)

    def test_no_key_decides_within_a_second_of_another(self) -> None:
        self.type("a")
        self.time += 0.4
        for key in ("y", "page down", "z", "y"):
            self.state, effects = press(self.state, key, self.time)
            self.assertEqual(effects, ())
            self.draw()
            self.time += 0.9
        self.assertEqual(self.state.message[0], "too early: press y again")
        self.assertEqual(len(self.type("y")), 1)

    def test_a_slash_withdraws_the_question_which_comes_back(self) -> None:
        for keys in (["esc"], ["backspace"], ["x", "enter"], [*"filter", "enter"]):
            self.type("a", "/")
            self.assertEqual((self.state.question, self.state.prompt), (None, "/"))
            self.assertEqual(self.type(*keys), [])
            assert self.state.question is not None
            self.assertEqual(self.state.question.keys, (key_of(self.views[0]),))
            self.type("esc")

    def test_a_question_does_not_come_back_over_another_or_what_was_gone_to(self) -> None:
        self.assertEqual(self.type("a", *"/deny 1", "enter"), [Send(Outcome.DENIED, key_of(self.views[0]), calls=1)])
        self.assertIsNone(self.state.question)
        self.type("a", *"/deny all", "enter")
        assert self.state.question is not None
        self.assertEqual((self.state.question.outcome, self.state.question.every), (Outcome.DENIED, True))
        self.type("esc", "a", *"/history", "enter")
        self.assertEqual((self.state.question, self.state.section), (None, Section.HISTORY))

    def test_a_command_that_was_begun_too_early_is_asked_about(self) -> None:
        self.state = ConsoleState().news([session()], self.views, NOW)
        self.state, _ = press(self.state, "/", self.time)
        self.draw()
        for key in "approve 1":
            self.state, _ = press(self.state, key, self.time)
        self.state, effects = press(self.state, "enter", self.time + 5)
        self.assertEqual((effects, self.state.question is not None), ((), True))

    def test_all_are_approved_but_those_that_cannot_be_undone(self) -> None:
        self.views = [msgspec.structs.replace(self.views[0], undo="outside"), *self.views[1:]]
        self.state = ConsoleState().news([session()], self.views, NOW)
        self.draw()
        self.type("j", *"/approve all", "enter")
        self.assertEqual(self.state.message[0], "cannot be undone, so approve it by itself: 1")
        self.assertEqual([send.key.number for send in self.type("y")], [2])
        self.state, _ = self.enter("/approve all")
        self.assertEqual(len(self.type("k", "a", "y")), 1)

    def test_a_y_that_was_typed_before_the_question_was_drawn_is_no_answer(self) -> None:
        self.state, _ = self.press("a")
        self.state, effects = self.press("y")
        self.assertEqual((effects, self.state.question is not None), ((), True))

    def test_a_call_whose_arguments_are_out_of_sight_is_not_approved(self) -> None:
        self.state, _ = self.press("a")
        self.state = self.state.drawn(frame(self.state, Details(), 80, 6, NOW).shown, self.time)
        self.state, effects = self.press("y")
        self.assertEqual(effects, ())
        self.assertIn("too small", self.state.message[0])

    def test_all_is_what_was_read_when_it_was_asked(self) -> None:
        self.type("j")
        self.state, _ = self.enter("/approve all")
        self.state = self.state.news([session()], [*self.views, escalation(4)], NOW)
        self.draw()
        self.assertEqual(
            self.type("y"), [Send(Outcome.APPROVED, ShownEscalation(n, f"{n:064x}"), calls=1) for n in (1, 2)]
        )

    def test_all_are_denied_also_those_out_of_sight_but_not_those_behind_a_filter(self) -> None:
        views = [escalation(number) for number in range(1, 50)]
        for line, wanted in (("/filter", 49), ("/filter file4", 11)):
            self.state = self.state.news([session()], views, NOW)
            self.state, _ = self.enter(line)
            self.state, _ = self.enter("/deny all")
            self.draw()
            sent = self.type("y")
            self.assertEqual((len(sent), {send.outcome for send in sent}), (wanted, {Outcome.DENIED}))

    def test_a_session_is_ended(self) -> None:
        self.assertEqual(self.enter("/stop 1")[1], (Command("stop", 1),))

    def test_what_somebody_else_decided_leaves_the_question(self) -> None:
        self.type("j", "j")
        self.state, _ = self.enter("/approve all")
        decided = msgspec.structs.replace(self.views[0], outcome="denied", by="grace", closed_at=NOW)
        self.state = self.state.news([session()], [decided, *self.views[1:]], NOW)
        self.draw()
        self.assertEqual([send.key.number for send in self.type("y")], [2, 3])

    def test_a_question_whose_call_is_decided_goes_and_says_who_did(self) -> None:
        self.type("a")
        decided = msgspec.structs.replace(self.views[0], outcome="denied", by="grace", closed_at=NOW)
        self.state = self.state.news([session()], [decided, *self.views[1:]], NOW)
        self.assertEqual(self.state.message[0], "too late: escalation 1 was denied by grace")
        self.draw()
        self.assertEqual(self.type("y"), [])

    def test_a_command_for_what_was_read_decides_at_once(self) -> None:
        _, effects = self.enter("/approve 1")
        self.assertEqual(effects, (Send(Outcome.APPROVED, key_of(self.views[0]), calls=1),))

    def test_a_command_for_what_was_not_read_shows_it_and_asks(self) -> None:
        self.state, effects = self.enter("/approve 3")
        self.assertEqual((effects, self.state.number(Section.WAITING)), ((), 3))
        self.draw()
        self.assertEqual(self.type("y"), [Send(Outcome.APPROVED, key_of(self.views[2]), calls=1)])

    def test_a_command_for_what_is_over_says_so(self) -> None:
        expired = msgspec.structs.replace(self.views[0], outcome="expired", closed_at=NOW)
        self.state = self.state.news([session()], [expired], NOW)
        self.state, _ = self.enter("/approve 1")
        self.assertEqual(self.state.message[0], "too late: escalation 1 expired, nobody decided in time")
        self.state, _ = self.enter("/approve 99")
        self.assertEqual(self.state.message[0], "there is no escalation 99")

    def test_a_new_escalation_does_not_push_the_chosen_one_away(self) -> None:
        self.type("j")
        self.state = self.state.news([session()], [escalation(0), *self.views], NOW)
        self.assertEqual(self.state.number(Section.WAITING), 2)

    def test_the_next_one_takes_the_place_of_one_that_is_decided(self) -> None:
        self.type("j")
        self.state = self.state.news([session()], [self.views[0], self.views[2]], NOW)
        self.assertEqual(self.state.number(Section.WAITING), 3)

    def test_what_vanishes_with_its_process_stays_in_the_history(self) -> None:
        self.state = self.state.news([], [], NOW)
        self.assertEqual([record.outcome for record in self.state.history], ["gone"] * 3)
        self.state = self.state.news([session()], self.views[:1], NOW)
        self.assertEqual([record.number for record in self.state.history], [3, 2])

    def test_the_end_of_a_session_tells_the_last_head_of_its_audit_log(self) -> None:
        head = AuditHead(sequence=40, digest="ab" * 32)
        self.state = self.state.news([session(head=head)], [], NOW)
        self.assertNotIn("audit head", self.state.message[0])
        closing = session(state="closed", head=AuditHead(sequence=41, digest="cd" * 32))
        self.state = self.state.news([closing], [], NOW)
        self.assertEqual((self.state.sessions, "ended" in self.state.message[0]), ((closing,), False))
        final = session(state="closed", head=AuditHead(sequence=42, digest="ef" * 32, final=True))
        self.state = self.state.news([final], [], NOW)
        self.assertEqual(self.state.sessions, ())
        self.assertEqual(self.state.message[0], f"session 1 has ended, audit head 42 {'ef' * 8}")
        self.state = self.state.with_message("").news([final], [], NOW)
        self.assertEqual(self.state.message[0], "")

    def test_a_session_whose_process_is_gone_leaves_the_head_that_was_known(self) -> None:
        head = AuditHead(sequence=40, digest="ab\x1b[2J")
        self.state = self.state.news([session(head=head)], [], NOW).news([], [], NOW)
        self.assertEqual(self.state.message[0], "session 1 has ended, audit head 40 ab\\x1b[2J")

    def test_history_outlives_its_session(self) -> None:
        decided = msgspec.structs.replace(self.views[0], outcome="approved", by="ada", closed_at=NOW)
        self.state = self.state.news([session()], [decided], NOW).news([], [], NOW)
        self.assertIn(("approved", "ada"), [(record.outcome, record.by) for record in self.state.history])

    def test_the_history_follows_the_newest_until_another_is_chosen(self) -> None:
        first, second, third = (
            escalation(number, outcome="denied", by="grace", closed_at=NOW + number) for number in (11, 12, 13)
        )
        self.state = ConsoleState().news([], [first], NOW).news([], [first, second], NOW)
        self.assertEqual(self.state.record, second)
        self.type("tab")
        self.assertEqual(self.state.news([], [first, second, third], NOW).record, third)
        self.type("down")
        self.state = self.state.news([], [first, second, third], NOW)
        self.assertEqual(self.state.record, first)
        self.type("home")
        fourth = escalation(14, outcome="denied", by="grace", closed_at=NOW + 14)
        self.assertEqual(self.state.news([], [first, second, third, fourth], NOW).record, fourth)

    def test_a_new_one_is_noticed_and_the_first_look_is_not(self) -> None:
        self.assertFalse(self.state.arrived(ConsoleState()))
        newer = self.state.news([session()], [*self.views, escalation(4)], NOW)
        self.assertTrue(newer.arrived(self.state))
        self.assertFalse(self.state.arrived(newer))

    def test_leaving(self) -> None:
        for key in ("q", "ctrl c", "ctrl d"):
            self.assertEqual(self.type(key), [Command("quit")])
        self.assertEqual(self.enter("/quit")[1], (Command("quit"),))

    def test_the_input_line(self) -> None:
        self.type("/", "x", "backspace", "d", "e", "n", "y", " ", "2", "ctrl w")
        self.assertEqual(self.state.prompt, "/deny ")
        self.type("ctrl u")
        self.assertEqual(self.state.prompt, "/")
        self.type("backspace")
        self.assertIsNone(self.state.prompt)

    def test_a_filter_hides_and_is_taken_back(self) -> None:
        self.state, _ = self.enter("/filter file2")
        self.assertEqual([row.number for row in self.state.listed(Section.WAITING)], [2])
        self.assertEqual(self.state.number(Section.WAITING), 2)
        self.state, _ = self.enter("/filter")
        self.assertEqual(len(self.state.listed(Section.WAITING)), 3)
