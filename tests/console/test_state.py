"""Keys and news, in any order: a decision is only for what was on the screen."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.commands import Section
from ironcurtain.console.details import Details
from ironcurtain.console.keys import enter, press
from ironcurtain.console.layout import frame
from ironcurtain.console.state import ConsoleState, End, Leave, Look, Send, ShownEscalation, key_of
from ironcurtain.escalation import Outcome
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.model import AuditHead
from ironcurtain.text.columns import unstyled
from tests.console.doubles import NOW, escalation, session

ALL_KEYS = [
    "a",
    "A",
    "d",
    "y",
    "n",
    "j",
    "k",
    "tab",
    "page down",
    "page up",
    "g",
    "G",
    "f",
    "/",
    "?",
    "enter",
    "esc",
    "home",
    "end",
]
LINES = [
    "/approve all",
    "/deny all",
    "/approve 1",
    "/approve 2",
    "/approve 2 keep",
    "/permissions",
    "/deny 1",
    "/deny 3",
    "/filter file1",
    "/filter",
    "/x",
]


class Machine(RuleBasedStateMachine):
    """A person at the keys, agents that raise escalations, and others who decide them."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.details = ConsoleState(), Details()
        self.views: dict[int, EscalationView] = {}
        self.seen: set[ShownEscalation] = set()
        """The escalations whose last line was on the screen."""

    @rule(number=st.integers(1, 9), text=st.sampled_from(["file", "x" * 300, "x\n" * 60, "x" * 9000]))
    def asked(self, number: int, text: str) -> None:
        if number not in self.views:
            scope = "" if number == 9 else "filesystem.read_text_file in /file and below"
            self.views[number] = escalation(number, {"path": f"/{text}#end{number}#"}, scope=scope)

    @rule(number=st.integers(1, 9))
    def decided_elsewhere(self, number: int) -> None:
        if number in self.views:
            self.views[number] = msgspec.structs.replace(
                self.views[number], outcome="denied", by="grace", closed_at=NOW
            )

    @rule()
    def heard(self) -> None:
        self.state = self.state.news([session()], self.views.values(), NOW)

    @rule(columns=st.integers(1, 140), rows=st.integers(1, 40))
    def drawn(self, columns: int, rows: int) -> None:
        picture = frame(self.state, self.details, columns, rows, NOW)
        body = "".join("".join(unstyled(line).split()) for line in picture.lines)
        self.seen |= {key_of(view) for number, view in self.views.items() if f"#end{number}#" in body}
        self.state = self.state.drawn(picture.shown)

    @rule(key=st.sampled_from(ALL_KEYS))
    def pressed(self, key: str) -> None:
        self.take(*press(self.state, key))

    @precondition(lambda self: self.state.question is None and self.state.prompt is None)
    @rule(line=st.sampled_from(LINES))
    def entered(self, line: str) -> None:
        self.take(*enter(self.state, line))

    def take(self, state: ConsoleState, effects: tuple[Any, ...]) -> None:
        shown = self.state.shown
        self.state = state
        for effect in effects:
            if isinstance(effect, Send) and effect.outcome is Outcome.APPROVED:
                listed = shown.question.keys if shown.question is not None and shown.question.every else ()
                assert effect.key == shown.whole or effect.key in listed, effect
                assert effect.key in self.seen, effect
                asked = shown.question is not None and shown.question.keep and shown.question.keys == (effect.key,)
                assert asked == effect.keep, effect
                assert not effect.keep or self.views[effect.key.number].scope
            assert not isinstance(effect, Leave)

    @invariant()
    def what_is_chosen_is_there(self) -> None:
        for section in Section:
            numbers = [row.number for row in self.state.listed(section)]
            assert self.state.number(section) in numbers or not numbers or self.state.prompt is not None


StatefulTests = Machine.TestCase
StatefulTests.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class KeyTests(SynchronousTestCase):
    """Single keys and commands."""

    def setUp(self) -> None:
        self.views = [escalation(number) for number in (1, 2, 3)]
        self.state = ConsoleState().news([session()], self.views, NOW)
        self.draw()

    def draw(self) -> None:
        self.state = self.state.drawn(frame(self.state, Details(), 80, 24, NOW).shown)

    def type(self, *keys: str) -> list[Any]:
        done: list[Any] = []
        for key in keys:
            self.state, effects = press(self.state, key)
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
        self.state, effects = enter(self.state, "/approve 1 keep")
        self.assertEqual(effects, ())
        self.draw()
        self.assertEqual(self.type("y"), [Send(Outcome.APPROVED, key_of(self.views[0]), keep=True, calls=1)])

    def test_nothing_is_approved_behind_the_list_of_permissions(self) -> None:
        self.state, effects = enter(self.state, "/permissions")
        self.assertEqual(effects, (Look(),))
        self.draw()
        self.assertIsNone(self.state.shown.whole)
        self.state, effects = enter(self.state, "/approve 1")
        self.assertEqual((effects, self.state.permitted), ((), False))

    def long(self, text: str) -> list[Any]:
        """:returns: what is sent when a long call is approved at once."""
        self.views = [escalation(9, {"path": "/x", "content": text})]
        self.state = self.state.news([session()], self.views, NOW)
        self.draw()
        return self.type("a", "y")

    def test_a_long_one_is_read_to_its_end_before_it_is_approved(self) -> None:
        self.assertEqual(self.long("line\nother\n" * 100), [])
        self.assertEqual(self.state.message[0], "9 continues below: read it to its end with PgDn, then approve it")
        self.assertEqual((enter(self.state, "/approve 9")[1], enter(self.state, "/approve all")[1]), ((), ()))
        self.type("page down")
        self.assertEqual(self.type("a", "y"), [])
        self.type(*["page down"] * 40)
        self.assertEqual(self.type("a", "y"), [Send(Outcome.APPROVED, key_of(self.views[0]), calls=1)])

    def test_what_is_too_long_for_the_screen_is_not_approved_here(self) -> None:
        self.assertEqual(self.long("line\nother\n" * 10_000), [])
        self.type("G")
        self.assertEqual(self.type("a", "y"), [])
        self.assertIn("'ironcurtain escalations show 9' shows all of it", self.state.message[0])

    def test_equal_calls_that_came_after_the_last_frame_are_not_approved_with_it(self) -> None:
        more = msgspec.structs.replace(self.views[0], calls=5)
        self.state, _ = press(self.state, "a")
        self.draw()
        self.state = self.state.news([session()], [more], NOW)
        self.state, effects = press(self.state, "y")
        self.assertEqual(effects, (Send(Outcome.APPROVED, key_of(more), calls=1),))
        self.draw()
        self.assertEqual(self.type("a", "y"), [Send(Outcome.APPROVED, key_of(more), calls=5)])

    def test_d_and_y_deny(self) -> None:
        self.assertEqual(self.type("d", "y"), [Send(Outcome.DENIED, key_of(self.views[0]), calls=1)])

    def test_anything_but_y_decides_nothing(self) -> None:
        self.assertEqual(self.type("a", "enter", "a", "n", "y", "d", "esc", "y"), [])

    def test_a_y_that_was_typed_before_the_question_was_drawn_is_no_answer(self) -> None:
        self.state, _ = press(self.state, "a")
        self.state, effects = press(self.state, "y")
        self.assertEqual((effects, self.state.question is not None), ((), True))

    def test_a_call_whose_arguments_are_out_of_sight_is_not_approved(self) -> None:
        self.state, _ = press(self.state, "a")
        self.state = self.state.drawn(frame(self.state, Details(), 80, 6, NOW).shown)
        self.state, effects = press(self.state, "y")
        self.assertEqual(effects, ())
        self.assertIn("too small", self.state.message[0])

    def test_all_is_what_was_read_when_it_was_asked(self) -> None:
        self.type("j")
        self.state, _ = enter(self.state, "/approve all")
        self.state = self.state.news([session()], [*self.views, escalation(4)], NOW)
        self.draw()
        self.assertEqual(
            self.type("y"), [Send(Outcome.APPROVED, ShownEscalation(n, f"{n:064x}"), calls=1) for n in (1, 2)]
        )

    def test_all_are_denied_also_those_out_of_sight_but_not_those_behind_a_filter(self) -> None:
        views = [escalation(number) for number in range(1, 50)]
        for line, wanted in (("/filter", 49), ("/filter file4", 11)):
            self.state = self.state.news([session()], views, NOW)
            self.state, _ = enter(self.state, line)
            self.state, _ = enter(self.state, "/deny all")
            self.draw()
            sent = self.type("y")
            self.assertEqual((len(sent), {send.outcome for send in sent}), (wanted, {Outcome.DENIED}))

    def test_a_session_is_ended(self) -> None:
        self.assertEqual(enter(self.state, "/stop 1")[1], (End(1),))

    def test_what_somebody_else_decided_leaves_the_question(self) -> None:
        self.type("j", "j")
        self.state, _ = enter(self.state, "/approve all")
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
        _, effects = enter(self.state, "/approve 1")
        self.assertEqual(effects, (Send(Outcome.APPROVED, key_of(self.views[0]), calls=1),))

    def test_a_command_for_what_was_not_read_shows_it_and_asks(self) -> None:
        self.state, effects = enter(self.state, "/approve 3")
        self.assertEqual((effects, self.state.number(Section.WAITING)), ((), 3))
        self.draw()
        self.assertEqual(self.type("y"), [Send(Outcome.APPROVED, key_of(self.views[2]), calls=1)])

    def test_a_command_for_what_is_over_says_so(self) -> None:
        expired = msgspec.structs.replace(self.views[0], outcome="expired", closed_at=NOW)
        self.state = self.state.news([session()], [expired], NOW)
        self.state, _ = enter(self.state, "/approve 1")
        self.assertEqual(self.state.message[0], "too late: escalation 1 expired: nobody decided in time")
        self.state, _ = enter(self.state, "/approve 99")
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
        self.type("tab", "tab")
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
            self.assertEqual(self.type(key), [Leave()])
        self.assertEqual(enter(self.state, "/quit")[1], (Leave(),))

    def test_the_input_line(self) -> None:
        self.type("/", "x", "backspace", "d", "e", "n", "y", " ", "2", "ctrl w")
        self.assertEqual(self.state.prompt, "/deny")
        self.type("ctrl u")
        self.assertEqual(self.state.prompt, "/")
        self.type("backspace")
        self.assertIsNone(self.state.prompt)

    def test_a_filter_hides_and_is_taken_back(self) -> None:
        self.state, _ = enter(self.state, "/filter file2")
        self.assertEqual([row.number for row in self.state.listed(Section.WAITING)], [2])
        self.assertEqual(self.state.number(Section.WAITING), 2)
        self.state, _ = enter(self.state, "/filter")
        self.assertEqual(len(self.state.listed(Section.WAITING)), 3)
