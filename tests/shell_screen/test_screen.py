"""The bytes that reach the terminal: what is printed stays, and what is drawn leaves no trace."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Risk
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.shell.messages import (
    ApprovalRequested,
    InstructionAccepted,
    InstructionDone,
    Message,
    ModelText,
    Notice,
    PlanProposed,
    ProposedStep,
    StepCompleted,
    StepDecided,
    StepForming,
    StepOutcome,
    StepOutput,
    StepStarted,
)
from ironcurtain.shell_screen.live import live
from ironcurtain.shell_screen.panel import Panel
from ironcurtain.shell_screen.screen import Screen
from ironcurtain.view.look import Look
from ironcurtain.view.step_record import Printed, StepRecord
from tests.shell_screen.doubles import PLAN, AgentMode, Terminal
from tests.shell_screen.frames import STATES, begun, planned, stepping

OURS = re.compile(
    rb"\x1b7\x1b\[r\x1b8\x1b\[4l\x1b\[\?7h\x1b\(B\x0f|\x1b\[(?:[\d;]*m|\d*A|\d+C|[KJ]|\?2004[hl])|[\r\n]|[^\x00-\x1f\x7f]"
)
"""All that the agent mode ever writes."""

HARMFUL = "\x1b]0;title\x07\x1b[2J\x9b31m\x1bP$q\x1b\\\u202e\r\b\x00"
WORDS = st.text(st.one_of(st.sampled_from("ab 日\n\t\u0301" + HARMFUL), st.characters()), max_size=120)
NUMBERS = st.integers(1, 4)
IDS = st.sampled_from((PLAN, "p2"))
STEP = st.builds(
    ProposedStep,
    number=NUMBERS,
    command=WORDS,
    purpose=WORDS,
    risk=st.sampled_from(Risk),
    decision=st.one_of(st.sampled_from(("allow", "escalate", "deny")), WORDS),
    rule=WORDS,
    reason=WORDS,
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(InstructionAccepted, text=WORDS),
    st.builds(ModelText, text=WORDS),
    st.builds(StepForming, plan_id=IDS, step=STEP),
    st.builds(PlanProposed, plan_id=IDS, steps=st.lists(STEP, max_size=5).map(tuple), confirm=st.booleans()),
    st.builds(ApprovalRequested, plan_id=IDS, step=STEP, number=NUMBERS, digest=WORDS, scope=WORDS),
    st.builds(StepDecided, plan_id=IDS, step=NUMBERS, allowed=st.booleans(), by=WORDS, reason=WORDS),
    st.builds(StepStarted, plan_id=IDS, step=NUMBERS, command=WORDS),
    st.builds(StepOutput, plan_id=IDS, step=NUMBERS, text=WORDS),
    st.builds(
        StepCompleted,
        plan_id=IDS,
        step=NUMBERS,
        outcome=st.sampled_from(StepOutcome),
        exit_code=st.none() | st.integers(0, 255),
        duration_ms=st.integers(0, 10**7),
        reason=WORDS,
    ),
    st.builds(Notice, text=WORDS),
    st.builds(
        InstructionDone, text=WORDS, error=WORDS, tokens_in=NUMBERS, cost=st.none() | st.floats(0, 99), model=WORDS
    ),
)
KEYS = st.one_of(
    st.sampled_from(
        [
            b"a",
            b"s",
            b"d",
            b"e",
            b"n",
            b"c",
            b"q",
            b"x",
            b"A",
            b"\r",
            b"j",
            b"k",
            b" ",
            b"#",
            b"\x1b",
            b"\x1b[A",
            b"\x03",
        ]
    ),
    st.binary(max_size=8),
)
STEPS = st.lists(
    st.one_of(
        MESSAGES, KEYS, st.floats(0, 5), st.sampled_from(("remove", "output\r\n", "no line end", "\x1b[31mred\r\n"))
    ),
    max_size=25,
)


History = list[list[Printed] | bytes]
"""What was printed to stay, and what commands printed, in order."""


def recorded(record: StepRecord, look: Look) -> Panel:
    """:returns: a panel with that record."""
    panel = Panel(look)
    panel.record = record
    return panel


class KeptRecord(StepRecord):
    """A record that remembers what it gave to be printed."""

    def __init__(self, look: Look, history: History) -> None:
        super().__init__(look)
        self._history = history

    def take(self) -> list[Printed]:
        printed = super().take()
        self._history.append(printed)
        return printed


class GivenRecord(StepRecord):
    """A record that has nothing but the lines that it is given."""

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self.given: list[Printed] = []

    def take(self) -> list[Printed]:
        given, self.given = self.given, []
        return given


def play(mode: AgentMode, steps: list[object], history: History) -> None:
    """Messages, keys, time and output, in any order."""
    for step in steps:
        if isinstance(step, bytes):
            mode.press(step)
        elif isinstance(step, float):
            mode.passes(step)
        elif step == "remove":
            mode.write(mode.screen.remove())
        elif isinstance(step, str):
            if mode.panel.running:
                history.append(step.encode())
                mode.output(step.encode())
        else:
            mode.receive(step)  # type: ignore[arg-type]


def only_printed(history: History, columns: int, rows: int, look: Look) -> list[str]:
    """:returns: the lines of a terminal on which nothing was ever drawn and erased."""
    terminal, given = Terminal(columns, rows), GivenRecord(look)
    panel = recorded(given, look)
    screen = Screen(panel, columns, rows)
    ends_line = True
    for what in history:
        if isinstance(what, bytes):
            terminal.write(what)
            ends_line = what.endswith(b"\n")
        elif what:
            terminal.write(b"" if ends_line else b"\r\n")
            given.given, ends_line = what, True
            terminal.write(screen.draw(0.0))
    return terminal.lines


class AnyOrderTests(SynchronousTestCase):
    """Any messages in any order, any keys at any time."""

    @given(STEPS, st.integers(4, 90), st.integers(2, 30), st.booleans())
    def test_what_is_drawn_leaves_no_trace(self, steps: list[object], columns: int, rows: int, unicode: bool) -> None:
        history: History = []
        look = Look(unicode)
        mode = AgentMode(columns, rows, panel=recorded(KeptRecord(look, history), look))
        play(mode, steps, history)
        mode.write(mode.screen.remove())
        self.assertEqual(mode.terminal.lines, only_printed(history, columns, rows, look))

    @given(st.lists(st.one_of(MESSAGES, KEYS, st.floats(0, 5)), max_size=25), st.integers(1, 90), st.integers(1, 30))
    def test_only_our_sequences_are_written(self, steps: list[object], columns: int, rows: int) -> None:
        mode = AgentMode(columns, rows)
        play(mode, steps, [])
        mode.write(mode.screen.remove())
        self.assertEqual(OURS.sub(b"", mode.written), b"")
        self.assertEqual([c for c in mode.written.decode() if "\x80" <= c < "\xa0"], [])


class DrawingTests(SynchronousTestCase):
    """The live area."""

    def test_it_is_erased_in_every_state(self) -> None:
        for name, state in STATES.items():
            for columns in (20, 40, 80):
                history: History = []
                mode = AgentMode(columns, 10, panel=recorded(KeptRecord(Look(), history), Look()))
                state(mode)
                mode.write(mode.screen.remove())
                self.assertNotIn("╰ ●", mode.text, name)
                self.assertNotIn("Enter inspect", mode.text, name)

    def test_it_leaves_a_row_free(self) -> None:
        for name, state in STATES.items():
            for columns in (20, 40, 80):
                for rows in (1, 6, 7, 8, 12):
                    mode = AgentMode(columns, rows)
                    state(mode)
                    frame = live(mode.panel, columns, rows, mode.now)
                    self.assertLessEqual(len(frame.lines), max(rows - 1, 1), (name, columns, rows))

    def test_nothing_is_written_if_nothing_changed(self) -> None:
        mode = AgentMode()
        stepping(mode)
        mode.passes(QUIET_SECONDS)
        before = mode.written
        mode.passes(0.2)
        mode.passes(3600)
        self.assertEqual(mode.written, before)

    def test_a_second_is_a_small_change(self) -> None:
        mode = AgentMode()
        begun(mode)
        mode.passes(1)
        before = len(mode.written)
        mode.passes(1)
        self.assertLess(len(mode.written) - before, 160)

    def test_the_cursor_is_where_is_typed(self) -> None:
        mode = AgentMode()
        planned(mode)
        mode.press(b"n", b"ab", b"\x1b[D")
        cursor = mode.terminal.screen.cursor
        self.assertEqual(mode.terminal.screen.display[cursor.y][: cursor.x], "╰ note: a")

    def test_other_sizes(self) -> None:
        """What was printed is never erased; a terminal that breaks lines anew may keep a piece of what was drawn."""
        for columns, rows in ((100, 30), (60, 24), (80, 12)):
            mode = AgentMode(80, 24)
            stepping(mode)
            above = mode.text.split("│ Step 2 of 3")[0].split("\n")
            mode.screen.resize(columns, rows)
            mode.terminal.screen.resize(24, columns)
            mode.draw()
            mode.write(mode.screen.remove())
            self.assertEqual([line[:columns].rstrip() for line in above[:-2]], mode.terminal.lines[: len(above) - 2])


class CommandTests(SynchronousTestCase):
    """While a command runs, the terminal is the command's."""

    def setUp(self) -> None:
        self.mode = AgentMode()
        planned(self.mode)
        self.mode.press(b"a")
        self.mode.receive(StepStarted(plan_id=PLAN, step=1, command="make"))

    def test_nothing_is_drawn_at_first(self) -> None:
        self.assertTrue(self.mode.text.endswith("\n$ make"), self.mode.text)
        self.mode.passes(1.9)
        self.assertTrue(self.mode.text.endswith("\n$ make"), self.mode.text)

    def test_its_time_is_shown_while_it_is_silent(self) -> None:
        self.mode.passes(2)
        self.assertTrue(self.mode.text.endswith("\n╰ ● running 2 s · Ctrl-C interrupts"), self.mode.text)
        self.mode.output(b"\x1b[32mok\x1b[0m\r\n")
        self.assertTrue(self.mode.text.endswith("\n$ make\nok"), self.mode.text)
        self.mode.passes(2)
        self.assertTrue(self.mode.text.endswith("\nok\n╰ ● running 4 s · Ctrl-C interrupts"), self.mode.text)

    def test_it_is_not_shown_where_it_would_disturb(self) -> None:
        for output in (b"Password: ", b"50 %\r", b"\x1b[?1049h\r\n", b"\x1b[5A\r\n", b"a\bb\n"):
            self.setUp()
            self.mode.output(output)
            before = self.mode.written
            self.mode.passes(100)
            self.assertEqual(self.mode.written, before, output)

    def test_nor_after_it_once_disturbed(self) -> None:
        self.mode.output(b"\x1b[?1049h")
        self.mode.output(b"line\r\n")
        before = self.mode.written
        self.mode.passes(100)
        self.assertEqual(self.mode.written, before)

    def test_output_is_passed_on_as_it_is(self) -> None:
        every = bytes(range(256))
        before = len(self.mode.written)
        self.mode.written += self.mode.screen.output(every, self.mode.now)
        self.assertEqual(self.mode.written[before:], every)

    def test_messages_wait_for_its_end(self) -> None:
        self.mode.output(b"half a ")
        self.mode.receive(Notice(text="the other backend answers"))
        self.mode.output(b"line\r\n")
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE, duration_ms=90_000))
        self.assertIn("half a line\n├ ! the other backend answers\n├ ✓ done · 1:30 min\n", self.mode.text)

    def test_what_follows_begins_on_a_line_of_its_own(self) -> None:
        for output in (b"no end", b"\x1b[1mno end\x1b[K", b"\x1b[Kend\r\n"):
            self.setUp()
            self.mode.output(output)
            self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE, duration_ms=1000))
            self.assertIn("end\n├ ✓ done · 1.0 s\n", self.mode.text)

    def test_what_is_drawn_begins_on_a_line_of_its_own(self) -> None:
        self.mode.output(b"no end")
        self.mode.receive(StepForming(plan_id="p2", step=ProposedStep(number=1, command="true")))
        self.assertIn("no end\n│ Plan\n", self.mode.text)

    def test_one_after_the_other(self) -> None:
        self.mode.output(b"one\r\n")
        done = StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE, duration_ms=1000)
        self.mode.panel.receive(done, self.mode.now)
        self.mode.receive(StepStarted(plan_id=PLAN, step=2, command="make install"))
        self.assertTrue(
            self.mode.text.endswith(
                "one\n├ ✓ done · 1.0 s\n├ step 2 of 3 · Shrink the journal of the system\n$ make install"
            ),
            self.mode.text,
        )

    def test_pastes_are_marked_but_for_commands(self) -> None:
        self.assertTrue(self.mode.written.endswith(b"\x1b[?2004l"))
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE))
        self.assertTrue(self.mode.written.endswith(b"\x1b[?2004h"))
        self.mode.write(self.mode.screen.remove())
        self.assertTrue(self.mode.written.endswith(b"\x1b[?2004l"))
        self.mode.draw()
        self.mode.receive(InstructionDone())
        self.assertTrue(self.mode.written.endswith(b"\x1b[?2004l"))

    def test_a_long_command_is_printed_in_part(self) -> None:
        mode = AgentMode()
        begun(mode)
        mode.receive(StepStarted(plan_id=PLAN, step=1, command="x\n" * 5000))
        self.assertIn("\n> x\n> … (10,000 characters in all)", mode.text)


class WordsTests(SynchronousTestCase):
    """What the model says."""

    def test_lines_are_printed_as_they_end(self) -> None:
        mode = AgentMode()
        begun(mode)
        mode.receive(ModelText(text="\n\nfirst\r\nsec"), ModelText(text="ond\n\n\n\nthird"))
        self.assertIn("│ first\n│ second\n│\n│ third\n╰ ● writing 0 s", mode.text)

    def test_last_words_are_not_repeated(self) -> None:
        for words, count in (("All done.", 1), ("Something else.", 0)):
            mode = AgentMode()
            begun(mode)
            mode.receive(ModelText(text=words), InstructionDone(text="All done."))
            self.assertEqual(mode.text.count("All done."), 1)
            self.assertEqual(mode.text.count(words), 1, count)

    def test_a_line_without_end_is_printed(self) -> None:
        mode = AgentMode()
        begun(mode)
        mode.receive(ModelText(text="word " * 1000))
        self.assertEqual(mode.panel.record.writing, "")
        self.assertEqual(mode.text.count("word"), 1000)
