"""Random keys at random moments, and news, in any order: a decision is plain, and only for what was on the screen."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.details import Details
from ironcurtain.console.keys import press
from ironcurtain.console.layout import frame
from ironcurtain.console.state import ConsoleState, Effect, Question, Section, Send, ShownEscalation, key_of
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.operations.model import EscalationView
from ironcurtain.text.columns import unstyled
from ironcurtain.view.commands import Command
from tests.console.doubles import NOW, Setup, escalation, session

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
        self.state, self.details, self.time = ConsoleState(), Details(), 0.0
        self.struck = self.appeared = -inf
        self.question: Question | None = None
        self.read: dict[ShownEscalation, float] = {}
        self.views: dict[int, EscalationView] = {}
        self.seen: set[ShownEscalation] = set()
        """The escalations whose last line was on the screen."""

    def press(self, key: str) -> tuple[ConsoleState, tuple[Effect, ...]]:
        return press(self.state, key, self.time)

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
        self.state = self.state.drawn(picture.shown, self.time)
        self.read = {key: self.read.get(key, self.time) for key in self.seen}
        if picture.shown.question != self.question:
            self.question, self.appeared = picture.shown.question, self.time

    @rule(seconds=st.sampled_from((0.1, 0.9, 1.0, 2.0)))
    def waited(self, seconds: float) -> None:
        self.time += seconds

    @rule(key=st.sampled_from(ALL_KEYS))
    def pressed(self, key: str) -> None:
        typing, rested = self.state.prompt, min(self.time - self.struck, self.time - self.appeared) >= QUIET_SECONDS
        state, effects = self.press(key)
        self.struck = self.time
        for effect in effects:
            if isinstance(effect, Send) and typing is None:
                assert key == "y", (key, effect)
                assert rested, effect
        self.take(state, effects)

    @rule(line=st.sampled_from(LINES), first=st.booleans())
    def typed(self, line: str, first: bool) -> None:
        if self.state.prompt is None:
            for key in ("y", *line) if first else line:
                self.pressed(key)
            self.pressed("enter")

    def take(self, state: ConsoleState, effects: tuple[Any, ...]) -> None:
        shown = self.state.shown
        self.state = state
        for effect in effects:
            if isinstance(effect, Send) and effect.outcome is Outcome.APPROVED:
                listed = shown.question.keys if shown.question is not None and shown.question.every else ()
                assert effect.key == shown.whole or effect.key in listed, effect
                assert effect.key in self.seen, effect
                assert self.time >= self.read[effect.key] + QUIET_SECONDS, effect
                asked = shown.question is not None and shown.question.keep and shown.question.keys == (effect.key,)
                assert asked or not effect.keep, effect
                assert not effect.keep or self.views[effect.key.number].scope
            assert effect != Command("quit")

    @invariant()
    def what_is_chosen_is_there(self) -> None:
        for section in Section:
            numbers = [row.number for row in self.state.listed(section)]
            assert self.state.number(section) in numbers or not numbers or self.state.prompt is not None


READS = st.one_of(
    st.sampled_from([key.encode() for key in "aAdynj/G :"] + [b"\r", b"\x1b[B", b"\x1b[6~", b"\t"]),
    st.sampled_from([b"ay", b"yy", b"yes", b"/approve 1\r", b"/approve all\r", b"/deny all\r"]),
    st.sampled_from([b"\x1b[200~y\x1b[201~", b"\x1b[200~/approve 1\r\x1b[201~", b"\x1b[200~approve 2\x1b[201~"]),
)
GAPS = st.one_of(st.sampled_from((0.0, 0.2, 0.9, 1.1, 2.0)), st.floats(0, 2))


class ScreenTests(SynchronousTestCase):
    """The whole console on a terminal in memory."""

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(GAPS, READS), max_size=20), st.integers(0, 20))
    def test_nothing_is_decided_that_was_not_plainly_decided(self, stream: list[tuple[float, bytes]], new: int) -> None:
        setup, struck, asked, asked_at = Setup(80, 24, escalation(1), escalation(2)), -inf, "", -inf
        for index, (gap, read) in enumerate(stream):
            if index == new:
                setup.source.put(escalation(3))
            setup.clock.advance(gap)
            setup.settle()
            now, before = setup.clock.seconds(), len(setup.source.decided)
            setup.console.received(read)
            setup.settle()
            for number, outcome, _ in setup.source.decided[before:]:
                if read == b"y":
                    self.assertGreaterEqual(now - max(struck, asked_at), QUIET_SECONDS)
                    self.assertIn(f"{number}", asked)
                    self.assertIn("Approve" if outcome is Outcome.APPROVED else "Deny", asked)
                else:
                    self.assertIn(read, (b"\r", b"/approve 1\r"))
                    self.assertEqual((number, outcome), (1, Outcome.APPROVED))
            struck = now
            question = next((each for each in setup.terminal.text.split("\n") if each.endswith("? y/Esc")), "")
            asked, asked_at = question, asked_at if question == asked else now

    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 8), st.floats(0, 0.8))
    def test_a_line_that_is_typed_at_a_question(self, asked: int, gap: float) -> None:
        setup, line = Setup(80, 24, escalation(1)), "cd .. && make clean all && yes\r"
        for index, character in enumerate(line):
            if index == asked:
                setup.console.received(b"a")
            setup.clock.advance(gap)
            setup.console.received(character.encode())
            setup.settle()
        self.assertEqual(setup.source.decided, [])


StatefulTests = Machine.TestCase
StatefulTests.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
