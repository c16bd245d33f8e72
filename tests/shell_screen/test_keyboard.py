"""What keys do, state by state."""

from __future__ import annotations

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.messages import (
    Approval,
    ApprovalRequested,
    BudgetReached,
    Instruct,
    InstructionDone,
    Interrupt,
    Kill,
    MoreTokens,
    Note,
    PlanProposed,
    ProposedStep,
    StepCompleted,
    StepDecided,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell_screen.keyboard import EditRequested, Suspend
from ironcurtain.terminal.keys import ForwardedInput
from tests.shell_screen.doubles import CACHES, JOURNAL, LISTING, PLAN, STEPS, AgentMode
from tests.shell_screen.frames import SCOPED, begun, between, planned, running, stepping


class WorkingTests(SynchronousTestCase):
    """While the agent works."""

    def setUp(self) -> None:
        self.mode = AgentMode()
        begun(self.mode)

    def test_keys_that_are_not_taken_are_told(self) -> None:
        self.assertEqual(self.mode.press(b"l"), [])
        self.assertIn("not taken while the agent works: # begins a note", self.mode.text)
        self.mode.press(b"s\r", b"\x1b[200~pasted\x1b[201~")
        self.assertEqual(self.mode.keyboard.give_up(), (b"ls\r\x1b[200~pasted\x1b[201~", b""))
        self.assertEqual(self.mode.keyboard.give_up(), (b"", b""))

    def test_what_comes_with_an_interrupt_is_not_taken(self) -> None:
        self.assertEqual(self.mode.press(b"\x03ls\r"), [Interrupt()])
        self.assertEqual(self.mode.keyboard.give_up(), (b"ls\r", b""))

    def test_a_paste_that_goes_on_is_for_who_gets_the_rest(self) -> None:
        self.assertEqual(self.mode.press(b"\x1b[200~one\rtwo"), [])
        self.assertEqual(self.mode.keyboard.give_up(), (b"", b"\x1b[200~one\rtwo"))
        self.assertEqual(self.mode.press(b"a"), [])

    def test_a_note_is_sent_and_shown(self) -> None:
        self.assertEqual(self.mode.press(b"# only one\r"), [Note(text="only one")])
        self.assertIn("# only one", self.mode.text)

    def test_a_note_that_is_being_typed_is_kept_when_the_agent_is_done(self) -> None:
        self.mode.press(b"# only on")
        self.mode.receive(InstructionDone(text="So."))
        self.assertEqual(self.mode.panel.unsent, "only on")

    def test_more_tokens(self) -> None:
        for key, allow in ((b"a", True), (b"d", False)):
            self.setUp()
            self.mode.receive(BudgetReached(used=100_000, more=50_000, setting="shell.max_tokens_per_session"))
            self.assertIn("100,000 tokens used: go on for 50,000 more?", self.mode.text)
            self.assertIn("shell.max_tokens_per_session sets the limit", self.mode.text)
            self.assertEqual(self.mode.press(b"aa", b"#", b"l"), [])
            self.assertEqual(self.mode.press(key), [MoreTokens(allow=allow)])
            self.assertIsNone(self.mode.panel.question)

    def test_usage_that_is_not_known_is_said(self) -> None:
        self.mode.receive(InstructionDone(text="So.", usage_known=False))
        self.assertIn("the model does not say how many tokens it used", self.mode.text)


class PlanKeyTests(SynchronousTestCase):
    """At a plan."""

    def setUp(self) -> None:
        self.mode = AgentMode()
        planned(self.mode)

    def test_decisions(self) -> None:
        for key, decision in ((b"a", "allow_undoable"), (b"y", "allow_undoable"), (b"s", "step"), (b"d", "deny")):
            mode = AgentMode()
            planned(mode)
            self.assertEqual(
                [(a.plan_id, a.decision, a.step) for a in mode.press(key) if isinstance(a, Approval)],
                [(PLAN, decision, None)],
            )
            self.assertIsNone(mode.panel.question)

    def test_a_decision_is_made_once(self) -> None:
        self.assertEqual(len(self.mode.press(b"a", b"a", b"a")), 1)

    def test_keys_of_a_step_mean_nothing(self) -> None:
        self.assertEqual(self.mode.press(b"x", b"A", b"S", b"z", b"\x1b[15~", b"\t"), [])

    def test_letters_of_a_note_are_no_keys(self) -> None:
        for key in (b"n", b"c", b"#"):
            self.setUp()
            self.assertEqual(self.mode.press(key, b"a", b"y", b"s", b"d"), [])
            self.assertEqual(self.mode.press(b"\r"), [Note(text="aysd")])

    def test_a_note_is_begun_at_once(self) -> None:
        mode = AgentMode()
        planned(mode)
        self.assertEqual(mode.press(b"j", b"n", b"a", b"\r", pause=0.1), [Note(text="a")])
        mode = AgentMode()
        planned(mode)
        self.assertEqual(mode.press(b"l", b"n", pause=0.1), [])
        self.assertIn("too early: press n again", mode.text)

    def test_what_can_be_undone_is_allowed_at_once(self) -> None:
        can = ProposedStep(number=1, command="touch one", undo="snapshot")
        for steps, decision, words in (
            ((can, replace(can, number=2)), "allow", "a allow all  s"),
            ((can, replace(CACHES, number=2)), "allow_undoable", "a allow all, asking again before 2  s"),
            ((replace(CACHES, number=2),), "allow", "a allow  s"),
        ):
            mode = AgentMode()
            begun(mode)
            mode.receive(PlanProposed(plan_id=PLAN, steps=steps, confirm=True))
            self.assertIn(words, mode.text)
            self.assertEqual([a.decision for a in mode.press(b"a") if isinstance(a, Approval)], [decision])

    def test_quit(self) -> None:
        self.assertEqual(self.mode.press(b"q"), [Interrupt()])

    def test_text_at_a_plan_moves_nothing_and_is_said_not_to_be_taken(self) -> None:
        self.mode.receive(PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True))
        self.assertEqual(self.mode.press(b"make jk clean\r"), [])
        self.assertIn("several keys came at once, which decide nothing", self.mode.text)
        self.assertEqual((self.mode.panel.selected, self.mode.panel.inspection), (1, None))

    def test_moves_in_one_read_are_all_taken(self) -> None:
        self.mode.press(b"jj")
        self.assertEqual(self.mode.panel.selected, 3)

    def test_a_key_without_a_meaning_is_said_not_to_have_one(self) -> None:
        for key, shown in ((b"z", "z"), (b"\x1b[15~", "\\x1b[15~"), (b"\t", "\\t")):
            self.mode.press(key)
            self.assertIn(f"{shown} does nothing here", self.mode.text)

    def test_the_selected_step_is_edited(self) -> None:
        self.assertEqual(self.mode.press(b"e"), [EditRequested(PLAN, LISTING)])
        self.assertEqual(self.mode.press(b"\x1b[B", b"e"), [EditRequested(PLAN, JOURNAL)])
        self.assertEqual(self.mode.press(b"j", b"j", b"j", b"e"), [EditRequested(PLAN, CACHES)])
        self.assertEqual(self.mode.press(b"k", b"\x1bOA", b"k", b"e"), [EditRequested(PLAN, LISTING)])

    def test_a_note(self) -> None:
        self.assertEqual(self.mode.press(b"n", b"keep pip", b"\r"), [Note(text="keep pip")])
        self.assertIn("├ # keep pip", self.mode.text)

    def test_after_a_note_the_old_plan_cannot_be_allowed(self) -> None:
        self.mode.press(b"n", b"keep pip\r")
        self.assertEqual(self.mode.press(b"a"), [])

    def test_a_note_is_dropped(self) -> None:
        self.assertEqual(self.mode.press(b"n", b"no", b"\x1b"), [])
        self.assertEqual(self.mode.passes(0.1), [])
        self.assertIsNone(self.mode.panel.input)
        self.assertEqual(self.mode.press(b"n", b"  ", b"\r"), [])
        self.assertEqual(len(self.mode.press(b"a")), 1)

    def test_letters_of_a_line_press_no_keys(self) -> None:
        self.assertEqual(self.mode.press(b"#", b"a", b"d", b"\x1b[200~a\r\x03\x1b[201~"), [])
        self.assertEqual(self.mode.press(b"\r"), [Note(text="ada")])

    def test_steps_that_end_leave_the_plan(self) -> None:
        for step in STEPS:
            self.mode.receive(StepCompleted(plan_id="another", step=step.number, outcome=StepOutcome.NOT_RUN))
            self.assertIsNotNone(self.mode.panel.question)
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.NOT_RUN))
        self.assertEqual(self.mode.press(b"e"), [EditRequested(PLAN, JOURNAL)])
        for number in (2, 3):
            self.mode.receive(StepCompleted(plan_id=PLAN, step=number, outcome=StepOutcome.NOT_RUN))
        self.assertEqual(self.mode.press(b"a"), [])

    def test_a_step_that_ended_is_asked_about_again(self) -> None:
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.FAILED))
        self.mode.receive(ApprovalRequested(plan_id=PLAN, step=LISTING, number=3, digest="again"))
        self.assertEqual([a.digest for a in self.mode.press(b"a") if isinstance(a, Approval)], ["again"])

    def test_another_plan_has_none_of_the_steps(self) -> None:
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE))
        self.mode.receive(PlanProposed(plan_id="another", steps=(LISTING,), confirm=True))
        self.assertEqual(self.mode.panel.plan.waiting, [LISTING])
        self.assertEqual([a.plan_id for a in self.mode.press(b"a") if isinstance(a, Approval)], ["another"])

    def test_a_whole_plan_with_steps_that_ended(self) -> None:
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE))
        self.mode.receive(PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True))
        self.assertEqual(self.mode.panel.plan.waiting, [JOURNAL, CACHES])


class StepKeyTests(SynchronousTestCase):
    """At a step."""

    def setUp(self) -> None:
        self.mode = AgentMode()
        stepping(self.mode)

    def decisions(self, *keys: bytes) -> list[tuple[str, int | None, str | None]]:
        return [(a.decision, a.step, a.digest) for a in self.mode.press(*keys) if isinstance(a, Approval)]

    def test_decisions(self) -> None:
        for key, decision in (
            (b"a", "allow"),
            (b"y", "allow"),
            (b"A", "allow_session"),
            (b"S", "allow_session"),
            (b"x", "skip"),
            (b"d", "deny"),
        ):
            self.setUp()
            self.assertEqual(self.decisions(key), [(decision, 2, "d")])

    def test_without_a_scope_it_is_allowed_once_only(self) -> None:
        self.mode.receive(ApprovalRequested(plan_id=PLAN, step=JOURNAL, number=8, digest="e"))
        self.assertEqual(self.decisions(b"A", b"S"), [])
        self.assertIn("this can be allowed only once", self.mode.text)
        self.assertEqual(self.decisions(b"a"), [("allow", 2, "e")])

    def test_letters_of_a_note_are_no_keys(self) -> None:
        for key in (b"n", b"c", b"#"):
            self.setUp()
            self.assertEqual(self.mode.press(key, b"a", b"d", b"A"), [])
            self.assertEqual(self.mode.press(b"\r"), [Note(text="adA")])

    def test_a_note_is_begun_while_the_step_is_read_in_full(self) -> None:
        for key in (b"n", b"c", b"#"):
            self.setUp()
            self.assertEqual(self.mode.press(b"\r", key, b"a", b"\r"), [Note(text="a")])

    def test_quit_edit_and_context(self) -> None:
        self.assertEqual(self.mode.press(b"e"), [EditRequested(PLAN, JOURNAL)])
        self.assertEqual(self.mode.press(b"c", b"not so much\r"), [Note(text="not so much")])
        self.mode.receive(SCOPED)
        self.assertEqual(self.mode.press(b"q"), [Interrupt()])

    def test_somebody_else_decides(self) -> None:
        self.mode.receive(StepDecided(plan_id=PLAN, step=2, allowed=False, by="ada over ssh", reason="not now"))
        self.assertEqual(self.mode.press(b"a", b"x"), [])
        self.assertIn("├ step 2 denied by ada over ssh: not now", self.mode.text)

    def test_a_decision_on_another_step_leaves_the_question_open(self) -> None:
        self.mode.receive(StepDecided(plan_id=PLAN, step=3, allowed=True, by="policy"))
        self.assertEqual(self.decisions(b"a"), [("allow", 2, "d")])

    def test_the_step_ends_without_a_decision(self) -> None:
        self.mode.receive(StepCompleted(plan_id=PLAN, step=2, outcome=StepOutcome.NOT_RUN))
        self.assertEqual(self.mode.press(b"a"), [])


class AnywhereTests(SynchronousTestCase):
    """Keys that mean the same wherever they are pressed."""

    def setUp(self) -> None:
        self.mode = AgentMode()

    def test_interrupt_and_kill(self) -> None:
        begun(self.mode)
        self.assertEqual(self.mode.press(b"\x03", b"\x03", pause=0.5), [Interrupt(), Kill()])
        self.mode.passes(1.1)
        self.assertEqual(self.mode.press(b"\x1b[99;5u"), [Interrupt()])

    def test_an_interrupted_plan_cannot_be_allowed(self) -> None:
        planned(self.mode)
        self.assertEqual(self.mode.press(b"\x03", b"a"), [Interrupt()])

    def test_escape_and_ctrl_z_give_the_shell_back(self) -> None:
        planned(self.mode)
        self.assertEqual(self.mode.press(b"\x1b"), [])
        self.assertEqual(self.mode.passes(0.1), [Suspend()])
        self.assertEqual(self.mode.press(b"\x1a"), [Suspend()])
        self.assertEqual(self.mode.press(b"\x1als\r"), [Suspend(b"ls\r")])
        self.assertEqual(self.mode.press(b"\x1b[200~\x1aa\x1b[201~a"), [])

    def test_what_is_typed_after_escape_is_for_the_shell(self) -> None:
        """In one read, as ssh and programs that type give it."""
        rests = (b"ls\r", b"\x1b[A", b"\x1b", b"\x03", "é\x1b[200~a\rb".encode(), b"cd\x1b[I\x1b[", b"x\x1b\xc3")
        for rest in rests:
            for before in (b"", b"zz", b"\x1b[A"):
                self.setUp()
                planned(self.mode)
                self.assertEqual(self.mode.press(before + b"\x1b" + rest), [Suspend(rest)], (before, rest))
                self.assertEqual(self.mode.keyboard.give_up(), (b"", b""))

    def test_escape_leaves_a_line_before_it_leaves_the_agent(self) -> None:
        begun(self.mode)
        self.assertEqual(self.mode.press(b"# note", b"\x1bq"), [])
        self.assertIn("not taken: \\x1bq does nothing here", self.mode.text)
        self.assertEqual(self.mode.press(b"\x1b\x1bls"), [Suspend(b"ls")])

    def test_sequences_give_nothing_back(self) -> None:
        planned(self.mode)
        for data in (b"\x1b[A", b"\x1b[<0;1;1M", b"\x1b[I", b"\x1b[200~\x1b\x1b[201~", b"\x1b]11;x\x07"):
            self.assertEqual([*self.mode.press(data), *self.mode.passes(0.2)], [], data)

    def test_steering_between_steps(self) -> None:
        between(self.mode)
        self.assertEqual(self.mode.press(b"# not", b" so", b"\r"), [Note(text="not so")])

    def test_a_line_that_is_typed_survives_a_step(self) -> None:
        between(self.mode)
        self.mode.press(b"# half")
        self.mode.receive(StepStarted(plan_id=PLAN, step=2, command="true"))
        self.mode.receive(StepCompleted(plan_id=PLAN, step=2, outcome=StepOutcome.DONE))
        self.assertEqual(self.mode.press(b" done\r"), [Note(text="half done")])

    def test_afterwards_it_is_another_instruction(self) -> None:
        begun(self.mode)
        self.mode.receive(InstructionDone())
        self.assertEqual(self.mode.press(b"a", b"# and now?\r"), [Instruct(text="and now?")])


class RunningTests(SynchronousTestCase):
    """While a command runs."""

    def setUp(self) -> None:
        self.mode = AgentMode()
        running(self.mode)

    def test_keys_are_for_the_command(self) -> None:
        keys = (b"a", b"\x1b", b"\x1b[A", b"#x\r", b"\x1a")
        self.assertEqual(self.mode.press(*keys), [ForwardedInput(key) for key in keys])

    def test_ctrl_c(self) -> None:
        self.assertEqual(self.mode.press(b"\x03", b"\x03", pause=0.5), [Interrupt(), Kill()])
        self.assertEqual(self.mode.press(b"\x1b[200~\x03\x1b[201~"), [ForwardedInput(b"\x1b[200~\x03\x1b[201~")])

    def test_escape_for_the_command_gives_no_shell_back(self) -> None:
        self.mode.press(b"\x1b")
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE))
        self.assertEqual(self.mode.passes(1), [])

    def test_a_paste_that_began_before_is_not_for_the_command(self) -> None:
        mode = AgentMode()
        begun(mode)
        mode.press(b"# keep ", b"\x1b[200~one")
        running(mode)
        self.assertEqual(mode.press(b" two\x1b[201~yes\r"), [ForwardedInput(b"yes\r")])
        mode = AgentMode()
        between(mode)
        mode.press(b"# keep ", b"\x1b[200~one")
        mode.receive(StepStarted(plan_id=PLAN, step=2, command="true"))
        self.assertEqual(mode.press(b" two", b"\x1b[201~yes\r"), [ForwardedInput(b"yes\r")])
        mode.receive(StepCompleted(plan_id=PLAN, step=2, outcome=StepOutcome.DONE))
        self.assertEqual(mode.press(b"\r"), [Note(text="keep one two")])

    def test_escape_just_before_the_command_is_said_to_come_too_late(self) -> None:
        between(self.mode)
        self.mode.press(b"\x1b")
        self.mode.receive(StepStarted(plan_id=PLAN, step=2, command="true"))
        self.assertEqual(self.mode.passes(0.1), [])
        self.assertIn("a command runs already", self.mode.panel.hint)

    def test_a_paste_that_the_command_did_not_read_presses_no_keys(self) -> None:
        self.mode.press(b"\x1b[200~one\n")
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE))
        self.mode.receive(PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True))
        self.assertEqual(self.mode.press(b"a", b"\x1b[201~"), [])
        self.assertEqual(len(self.mode.press(b"a")), 1)
