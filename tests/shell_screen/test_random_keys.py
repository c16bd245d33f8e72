"""Random keys at random moments: nothing is allowed that a person did not plainly allow."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.shell.messages import (
    Approval,
    ApprovalRequested,
    Instruct,
    InstructionDone,
    Message,
    Note,
    PlanProposed,
    ProposedStep,
    StepCompleted,
    StepForming,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell_screen.keyboard import Suspend
from tests.shell_screen.doubles import PLAN, AgentMode
from tests.shell_screen.frames import begun

STEPS = (
    ProposedStep(number=1, command="du -sh cache", undo="reads", decision="allow"),
    ProposedStep(number=2, command="rm -r cache", undo="snapshot"),
    ProposedStep(number=3, command="git push", undo="remote"),
)
MESSAGES: tuple[Message, ...] = (
    StepForming(plan_id=PLAN, step=STEPS[0]),
    PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True),
    PlanProposed(plan_id=PLAN, steps=STEPS[:2], confirm=True),
    ApprovalRequested(plan_id=PLAN, step=STEPS[1], number=1, digest="one", scope="rm -r"),
    ApprovalRequested(plan_id=PLAN, step=STEPS[2], number=2, digest="two"),
    StepStarted(plan_id=PLAN, step=1, command=STEPS[0].command),
    StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE),
    InstructionDone(),
)
TYPED = "cd .. && make clean all\r"
FOCUS = b"\x1b[I"
"""What terminals report by themselves."""

READS = st.one_of(
    st.sampled_from([*(key.encode() for key in "ayASsdxencq#jk b"), b"\r", b"\x1b", b"\x1b[A", FOCUS]),
    st.sampled_from([b"ay", b"aa", b"a\r", b"na", b"# a\r", TYPED.encode(), b"\x1b[200~a\x1b[201~", b"\x1b[200~a"]),
)
GAPS = st.one_of(st.sampled_from((0.0, 0.15, 0.9, 1.0, 1.1, 2.0)), st.floats(0, 2))
ALLOWING = (b"a", b"y", b"A", b"S")


class Person:
    """Sees the terminal, and knows what was pressed when."""

    def __init__(self) -> None:
        self.mode = AgentMode()
        begun(self.mode)
        self.read_at = self.asked_at = 0.0
        self.asked: object = None

    @property
    def is_asked(self) -> bool:
        """Whether the keys of a question are on the screen, and no line is being written."""
        below = self.mode.terminal.text.split("\n")[-4:]
        return any(line[2:].startswith(("a allow", "Enter inspect")) for line in below)

    def look(self) -> None:
        """Notice that another question is on the screen."""
        question = self.mode.panel.question if self.is_asked else None
        if question is not self.asked:
            self.asked, self.asked_at = question, self.mode.now

    def press(self, read: bytes) -> list[Approval]:
        """:returns: what it decides; each approval was plain."""
        mode = self.mode
        rested = min(mode.now - self.read_at, mode.now - self.asked_at) >= QUIET_SECONDS
        plain = rested and self.is_asked and read in ALLOWING
        done = mode.keyboard.typed(read, mode.now)
        if read != FOCUS:
            self.read_at = mode.now
        if any(isinstance(each, Suspend) for each in done):
            mode.write(mode.screen.remove())
        mode.draw()
        decisions = [each for each in done if isinstance(each, Approval)]
        for each in decisions:
            assert not each.decision.startswith("allow") or plain, (read, each)
            assert each.decision.startswith("allow") or (rested and read in (b"s", b"d", b"x")), (read, each)
        return decisions


class RandomKeyTests(SynchronousTestCase):
    """The panel, its keyboard and its screen."""

    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.tuples(GAPS, st.one_of(READS, READS, st.sampled_from(MESSAGES))), max_size=25))
    def test_nothing_is_allowed_that_was_not_plainly_allowed(self, stream: list[tuple[float, bytes | Message]]) -> None:
        person = Person()
        for gap, event in stream:
            person.mode.passes(gap)
            person.look()
            if isinstance(event, bytes):
                person.press(event)
            else:
                person.mode.receive(event)
            person.look()

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, len(TYPED) - 1), st.floats(0.0, 0.9), st.sampled_from(MESSAGES[1:5]))
    def test_a_line_that_is_typed_while_a_plan_comes(self, asked: int, gap: float, message: Message) -> None:
        """Whenever the question comes and however slowly it is typed, no letter of it decides."""
        person = Person()
        for index, character in enumerate(TYPED):
            if index == asked:
                person.mode.receive(message)
            person.mode.passes(gap)
            person.look()
            self.assertEqual(person.press(character.encode()), [])

    def test_a_plain_answer_after_all_that(self) -> None:
        person = Person()
        for character in TYPED[:10]:
            person.press(character.encode())
        person.mode.receive(MESSAGES[2])
        for character in TYPED[10:-1]:
            person.mode.passes(0.15)
            self.assertEqual(person.press(character.encode()), [])
        person.mode.passes(QUIET_SECONDS)
        self.assertEqual([each.decision for each in person.press(b"a")], ["allow"])

    @settings(max_examples=60, deadline=None)
    @given(
        st.sampled_from((b"n", b"c", b"#")),
        st.sampled_from(MESSAGES[1:5]),
        st.floats(0, 2),
        st.lists(st.tuples(GAPS, st.sampled_from("aysdAxq ne")), min_size=1, max_size=8),
    )
    def test_a_note_is_a_note(self, key: bytes, message: Message, gap: float, text: list[tuple[float, str]]) -> None:
        mode = AgentMode()
        begun(mode)
        mode.receive(message)
        mode.passes(gap)
        self.assertEqual(mode.keyboard.typed(key, mode.now), [])
        for pause, letter in text:
            mode.passes(pause)
            self.assertEqual(mode.keyboard.typed(letter.encode(), mode.now), [])
        words = "".join(letter for _, letter in text).strip()
        sent = mode.keyboard.typed(b"\r", mode.now)
        self.assertEqual([each.text for each in sent if isinstance(each, Note)], [words] if words else [])
        self.assertFalse(any(isinstance(each, Approval | Instruct) for each in sent))

    @settings(max_examples=150, deadline=None)
    @given(
        st.text("lsaqé #\r").map(lambda text: text.replace("#", "")),
        st.sampled_from((b"", b"#", b"\x1b")),
        st.text("lsaqé #"),
        st.lists(st.integers(0, 40), max_size=5),
    )
    def test_nothing_that_is_typed_vanishes(self, before: str, key: bytes, after: str, cuts: list[int]) -> None:
        """However it is cut into reads, while the agent works: it is refused, in a line, or for the shell."""
        mode = AgentMode()
        begun(mode)
        data = before.encode() + key + (after.encode() if key else b"")
        at, shell = sorted(cut % (len(data) + 1) for cut in cuts), None
        for begin, end in itertools.pairwise([0, *at, len(data)]):
            if shell is not None:
                shell += data[begin:end]
                continue
            done = mode.keyboard.typed(data[begin:end], mode.now)
            mode.draw()
            if done:
                shell = done[-1].rest if isinstance(done[-1], Suspend) else b"?"
        if key == b"\x1b" and shell is None:
            self.assertEqual(mode.passes(1), [Suspend()])
            shell = b""
        line = mode.panel.input.text if mode.panel.input is not None else None
        self.assertEqual(mode.keyboard.give_up(), (before.encode(), b""))
        self.assertEqual(line, after if key == b"#" else None)
        self.assertEqual(shell, after.encode() if key == b"\x1b" else None)
