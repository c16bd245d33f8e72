"""The course of a plan: who is asked, what runs, and what ends it."""

from __future__ import annotations

import json
import signal
from functools import partial

from msgspec.structs import replace
from twisted.internet.defer import Deferred, DeferredList, succeed

from ironcurtain.errors import SessionError, StaleDecision, UsageError
from ironcurtain.escalation import Outcome
from ironcurtain.shell.execution import LOOK_SECONDS, TYPED_SECONDS
from ironcurtain.shell.messages import (
    Approval,
    ApprovalRequested,
    Edit,
    Interrupt,
    Kill,
    PlanProposed,
    Steer,
    StepCompleted,
    StepDecided,
    StepOutcome,
    StepOutput,
)
from ironcurtain.shell.model import ConfirmMode, PlanEnding
from ironcurtain.shell.plan import LINE_LIMIT, PlanRun
from tests.audit.doubles import ManualThread, at_once
from tests.shell.support import ShellTestCase, steps


class PlanTestCase(ShellTestCase):
    """With one plan."""

    def begin(self, *commands: str, confirm: ConfirmMode = ConfirmMode.PLAN) -> None:
        """Run a plan of these commands."""
        self.plan = PlanRun("p1", steps(*commands), replace(self.parts, confirm=confirm))
        self.running = Deferred.fromCoroutine(self.plan.run())
        self.turn()

    def say(self, decision: str, step: int | None = None, digest: str | None = None) -> None:
        """Decide."""
        self.plan.receive(Approval(plan_id="p1", decision=decision, step=step, digest=digest))  # type: ignore[arg-type]
        self.turn()

    def outcomes(self) -> list[StepOutcome]:
        """:returns: how the steps ended, once the plan is over."""
        self.turn()
        return [step.outcome for step in self.successResultOf(self.running)]


class ConfirmTests(PlanTestCase):
    """The mode ``plan``: one question for all."""

    def test_nothing_runs_before_it_is_confirmed(self) -> None:
        self.begin("ls", "allow x")
        self.assertNoResult(self.running)
        self.assertEqual(self.shell.ran, [])
        self.assertTrue(self.last(PlanProposed).confirm)  # type: ignore[union-attr]

    def test_allowed_it_runs_as_a_whole(self) -> None:
        self.begin("ls", "df", "allow x")
        self.say("allow")
        self.assertEqual(self.outcomes(), [StepOutcome.DONE] * 3)
        self.assertEqual((self.shell.ran, self.undo.prepared, self.undo.finished), (["ls", "df", "allow x"], 1, 1))

    def test_each_approval_is_recorded_with_who_gave_it(self) -> None:
        self.begin("ls")
        self.say("allow")
        records = [json.loads(line) for line in self.audit_path.read_text().splitlines()]
        decision = next(record for record in records if record["kind"] == "decision")
        self.assertEqual((decision["outcome"], decision["by"]), ("approved", "local:ada"))
        call = next(record for record in records if record["kind"] == "call")
        self.assertEqual(call["arguments"], {"command": "ls", "directory": "/work"})

    def test_denied_nothing_runs(self) -> None:
        self.begin("ls", "df")
        self.say("deny")
        self.assertEqual(self.outcomes(), [StepOutcome.NOT_RUN] * 2)
        self.assertEqual((self.shell.ran, self.plan.ending), ([], PlanEnding.REFUSED))
        self.assertEqual((self.undo.prepared, self.undo.finished), (0, 0))

    def test_interrupted_nothing_runs(self) -> None:
        for action in (Interrupt(), Kill()):
            self.begin("ls")
            self.plan.receive(action)
            self.assertEqual((self.outcomes(), self.plan.ending), ([StepOutcome.NOT_RUN], PlanEnding.CANCELLED))

    def test_a_word_of_the_user_ends_it(self) -> None:
        self.begin("ls")
        self.plan.receive(Steer(plan_id="p1", context="only the small ones"))
        self.assertEqual(self.outcomes(), [StepOutcome.NOT_RUN])
        self.assertEqual((self.plan.ending, self.plan.note), (PlanEnding.STEERED, "only the small ones"))

    def test_an_edited_step_is_what_runs(self) -> None:
        self.begin("rm -rf x", "df")
        self.plan.receive(Edit(plan_id="p1", step=1, command="rm -ri x"))
        shown = self.last(PlanProposed)
        self.assertEqual([step.command for step in shown.steps], ["rm -ri x", "df"])  # type: ignore[union-attr]
        self.say("allow")
        self.outcomes()
        self.assertEqual(self.shell.ran, ["rm -ri x", "df"])

    def test_a_step_can_be_left_out(self) -> None:
        self.begin("ls", "df")
        self.say("skip", 1)
        self.say("allow")
        self.assertEqual(self.outcomes(), [StepOutcome.SKIPPED, StepOutcome.DONE])
        self.assertEqual(self.shell.ran, ["df"])

    def test_a_decision_that_is_none_on_the_plan_is_refused(self) -> None:
        self.begin("ls", "df")
        for decision, step in (("allow", 1), ("deny", 2), ("allow", 9), ("skip", None), ("skip", 9)):
            with self.assertRaisesRegex(UsageError, "the plan waits"):
                self.say(decision, step)
        with self.assertRaises(StaleDecision):
            self.say("allow", digest="0" * 64)
        with self.assertRaisesRegex(UsageError, "no step 3"):
            self.plan.receive(Edit(plan_id="p1", step=3, command="rm x"))
        self.assertEqual(self.shell.ran, [])
        self.say("allow")
        self.assertEqual(self.outcomes(), [StepOutcome.DONE] * 2)

    def test_what_is_about_another_plan_is_refused(self) -> None:
        self.begin("ls")
        with self.assertRaisesRegex(StaleDecision, "plan p0 is over"):
            self.plan.receive(Approval(plan_id="p0", decision="allow"))
        self.assertNoResult(self.running)


class StepTests(PlanTestCase):
    """Decisions about single steps."""

    def asked(self, number: int) -> ApprovalRequested:
        """:returns: the question about a step, which waits."""
        question = self.last(ApprovalRequested)
        assert isinstance(question, ApprovalRequested)
        self.assertEqual(question.step.number, number)
        return question

    def test_step_by_step(self) -> None:
        self.begin("ls", "allow x")
        self.say("step")
        self.asked(1)
        self.assertEqual(self.shell.ran, [])
        self.say("allow", 1)
        self.asked(2)  # although the policy allows it
        self.say("skip", 2)
        self.assertEqual(self.outcomes(), [StepOutcome.DONE, StepOutcome.SKIPPED])

    def test_the_mode_auto_asks_only_about_what_the_policy_does_not_allow(self) -> None:
        self.begin("allow x", "ls", confirm=ConfirmMode.AUTO)
        self.asked(2)
        self.assertEqual(self.shell.ran, ["allow x"])
        self.say("allow", 2)
        self.assertEqual(self.outcomes(), [StepOutcome.DONE] * 2)

    def test_the_mode_each_asks_about_every_step(self) -> None:
        self.begin("allow x", confirm=ConfirmMode.EACH)
        self.asked(1)
        self.say("allow", 1)
        self.assertEqual(self.outcomes(), [StepOutcome.DONE])

    def test_an_answer_from_a_console_counts(self) -> None:
        self.begin("ls", confirm=ConfirmMode.AUTO)
        question = self.asked(1)
        self.escalations.decide(question.number, Outcome.APPROVED, "key:bob", question.digest)
        self.assertEqual(self.outcomes(), [StepOutcome.DONE])
        self.assertEqual(self.last(StepDecided).by, "key:bob")  # type: ignore[union-attr]

    def test_a_denied_step_ends_the_plan(self) -> None:
        self.begin("ls", "allow x", confirm=ConfirmMode.AUTO)
        self.say("deny", 1)
        self.assertEqual(self.outcomes(), [StepOutcome.DENIED, StepOutcome.NOT_RUN])
        self.assertEqual((self.shell.ran, self.plan.ending), ([], PlanEnding.REFUSED))

    def test_another_digest_is_refused(self) -> None:
        self.begin("ls", confirm=ConfirmMode.AUTO)
        with self.assertRaises(StaleDecision):
            self.say("allow", 1, "0" * 64)
        self.assertEqual(self.shell.ran, [])

    def test_a_decision_on_another_step_is_not_taken_for_this_one(self) -> None:
        """As one that was sent twice."""
        self.begin("ls", "df", confirm=ConfirmMode.AUTO)
        self.say("allow", 1)
        for decision, step in (("allow", 1), ("allow_session", 1), ("skip", 1), ("allow", None), ("allow", 3)):
            with self.assertRaisesRegex(StaleDecision, "step 2"):
                self.say(decision, step)
        self.assertEqual(self.shell.ran, ["ls"])
        self.say("deny")
        self.assertEqual(self.outcomes(), [StepOutcome.DONE, StepOutcome.DENIED])

    def test_taken_back_while_its_approval_is_recorded(self) -> None:
        """The disk is slow."""
        for action, ending in (
            (Interrupt(), PlanEnding.CANCELLED),
            (Steer(plan_id="p1", context="no"), PlanEnding.STEERED),
        ):
            self.begin("ls", confirm=ConfirmMode.AUTO)
            question = self.asked(1)
            self.disk = disk = ManualThread()
            self.escalations.decide(question.number, Outcome.APPROVED, "key:bob", question.digest)
            self.turn()
            self.plan.receive(action)
            self.disk = at_once
            disk.run()
            self.assertEqual((self.outcomes(), self.plan.ending), ([StepOutcome.NOT_RUN], ending))
        self.assertEqual(self.shell.ran, [])

    def test_a_step_that_is_edited_is_asked_about_afresh(self) -> None:
        self.begin("ls", confirm=ConfirmMode.AUTO)
        first = self.asked(1)
        self.plan.receive(Edit(plan_id="p1", step=1, command="ls -la"))
        self.turn()
        second = self.asked(1)
        self.assertEqual(second.step.command, "ls -la")
        self.assertNotEqual(first.digest, second.digest)
        with self.assertRaises(StaleDecision):
            self.escalations.decide(first.number, Outcome.APPROVED, "key:bob")
        self.say("allow", 1)
        self.outcomes()
        self.assertEqual(self.shell.ran, ["ls -la"])

    def test_an_edit_to_something_denied_is_denied(self) -> None:
        self.begin("ls", confirm=ConfirmMode.AUTO)
        self.plan.receive(Edit(plan_id="p1", step=1, command="deny it"))
        self.assertEqual((self.outcomes(), self.shell.ran), ([StepOutcome.DENIED], []))

    def test_steering_and_interrupts_withdraw_the_question(self) -> None:
        for action, ending in (
            (Steer(plan_id="p1", context="no"), PlanEnding.STEERED),
            (Interrupt(), PlanEnding.CANCELLED),
        ):
            self.begin("ls", "df", confirm=ConfirmMode.AUTO)
            self.plan.receive(action)
            self.assertEqual((self.outcomes(), self.plan.ending), ([StepOutcome.NOT_RUN] * 2, ending))
            self.assertEqual(self.escalations.pending(), [])

    def test_an_approval_for_the_session_is_not_asked_again(self) -> None:
        self.begin("ls", confirm=ConfirmMode.AUTO)
        self.assertEqual(self.asked(1).scope, "exactly this command in /work")
        self.say("allow_session", 1)
        self.outcomes()
        self.begin("ls", "ls -R", confirm=ConfirmMode.AUTO)
        self.asked(2)
        self.assertEqual(self.shell.ran, ["ls", "ls"])
        self.say("deny", 2)

    def test_nobody_to_ask_is_a_refusal(self) -> None:
        self.attended = False
        self.begin("ls", confirm=ConfirmMode.AUTO)
        self.assertEqual((self.outcomes(), self.shell.ran), ([StepOutcome.DENIED], []))


class RunTests(PlanTestCase):
    """What happens while commands run."""

    def test_what_the_policy_denies_does_not_run_whatever_was_confirmed(self) -> None:
        self.begin("deny x", "ls")
        self.say("allow")
        self.assertEqual(self.outcomes(), [StepOutcome.DENIED, StepOutcome.NOT_RUN])
        self.assertEqual((self.shell.ran, self.plan.ending), ([], PlanEnding.STEP_DENIED))

    def test_a_failing_step_stops_the_plan(self) -> None:
        self.shell.statuses["false"] = 1
        self.begin("false", "ls")
        self.say("allow")
        self.assertEqual(self.outcomes(), [StepOutcome.FAILED, StepOutcome.NOT_RUN])
        self.assertEqual((self.shell.ran, self.plan.ending), (["false"], PlanEnding.STEP_FAILED))

    def test_what_a_hook_rewrote_is_asked_about_although_the_plan_was_confirmed(self) -> None:
        self.commands.rewritten["ls"] = "ls --color=never"
        self.begin("ls")
        self.say("allow")
        question = self.last(ApprovalRequested)
        self.assertEqual(question.step.command, "ls --color=never")  # type: ignore[union-attr]
        self.assertEqual(self.shell.ran, [])
        self.say("deny", 1)

    def test_a_command_that_runs_is_interrupted(self) -> None:
        self.shell.slow.add("sleep 9")
        self.begin("sleep 9", "ls")
        self.say("allow")
        self.plan.receive(Interrupt())
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.outcomes(), [StepOutcome.INTERRUPTED, StepOutcome.NOT_RUN])
        self.assertEqual(self.plan.ending, PlanEnding.CANCELLED)

    def test_a_plan_that_takes_too_long_stops(self) -> None:
        self.shell.slow.add("make")
        self.parts = replace(self.parts, plan_seconds=100.0)
        self.begin("make", "ls")
        self.clock.advance(1000)  # people may take their time
        self.say("allow")
        self.clock.advance(100)
        self.assertEqual(self.shell.signals, [signal.SIGINT])
        self.shell.finish(0)
        self.assertEqual(self.outcomes(), [StepOutcome.TIMED_OUT, StepOutcome.NOT_RUN])

    def test_a_word_while_a_command_runs_ends_the_plan_after_it(self) -> None:
        self.shell.slow.add("make")
        self.begin("make", "ls")
        self.say("allow")
        self.plan.receive(Steer(plan_id="p1", context="enough"))
        self.shell.finish(0)
        self.assertEqual(self.outcomes(), [StepOutcome.DONE, StepOutcome.NOT_RUN])
        self.assertEqual((self.plan.ending, self.plan.note), (PlanEnding.STEERED, "enough"))

    def test_nothing_is_typed_once_it_was_cancelled_in_the_shell(self) -> None:
        for action in (Interrupt(), Steer(plan_id="p1", context="no")):
            back: Deferred[None] = Deferred()
            self.parts = replace(self.parts, resumed=partial(DeferredList, [back]))
            self.begin("allow x", confirm=ConfirmMode.AUTO)
            self.plan.receive(action)
            back.callback(None)
            self.assertEqual(self.outcomes(), [StepOutcome.NOT_RUN])
        self.assertEqual((self.shell.ran, self.commands.finished_steps), ([], []))

    def test_a_kill_counts_before_the_command_has_begun(self) -> None:
        self.shell.deaf = True
        self.begin("allow x", confirm=ConfirmMode.AUTO)
        self.plan.receive(Kill())
        self.clock.advance(TYPED_SECONDS)
        self.assertTrue(self.shell.written.endswith(b"\x03"))
        self.shell.prompt()
        self.assertEqual(self.outcomes(), [StepOutcome.INTERRUPTED])

    def test_the_end_of_the_shell_is_recorded_too(self) -> None:
        self.shell.slow.add("allow x")
        self.begin("allow x", confirm=ConfirmMode.AUTO)
        self.runner.lost()
        self.failureResultOf(self.running, SessionError)
        self.admission.flush()
        records = [json.loads(line) for line in self.audit_path.read_text().splitlines()]
        self.assertEqual([r["status"] for r in records if r["kind"] == "outcome"], ["failed"])

    def test_a_decision_that_nothing_waits_for_is_refused(self) -> None:
        self.shell.slow.add("make")
        self.begin("make")
        self.say("allow")
        with self.assertRaisesRegex(UsageError, "nothing waits"):
            self.say("allow", 1)
        self.shell.finish(0)

    def test_output_is_shown_in_whole_lines(self) -> None:
        self.shell.slow.add("allow x")
        self.begin("allow x", confirm=ConfirmMode.AUTO)
        for piece in ("é".encode()[:1], "é".encode()[1:] + b"\x1b[", b"m\nsec", b"ret\n\nno end"):
            self.runner.output(piece)
        self.shell.finish(0)
        self.outcomes()
        shown = [each.text for each in self.told if isinstance(each, StepOutput)]
        self.assertEqual(shown, ["output of allow x\n", "é\x1b[m\n", "secret\n\n", "no end"])

    def test_a_long_line_is_shown_before_its_end(self) -> None:
        self.shell.slow.add("allow x")
        self.begin("allow x", confirm=ConfirmMode.AUTO)
        self.runner.output(b"x" * LINE_LIMIT)
        self.assertEqual(len([each for each in self.told if isinstance(each, StepOutput)]), 1)
        self.runner.output(b"y")
        self.assertTrue(self.last(StepOutput).text.endswith("xy"))  # type: ignore[union-attr]
        self.shell.finish(0)

    def test_what_was_approved_for_another_directory_is_judged_again(self) -> None:
        """While the user was in the shell; the first approval counts for nothing."""
        back: Deferred[None] = Deferred()
        waits = iter((back,))
        self.parts = replace(self.parts, resumed=lambda: next(waits, succeed(None)))
        self.begin("rm x", confirm=ConfirmMode.AUTO)
        self.say("allow", 1)
        self.directory = "/elsewhere"
        back.callback(None)
        self.turn()
        self.assertEqual(self.shell.ran, [])
        self.say("allow", 1)
        self.assertEqual((self.outcomes(), self.shell.ran), ([StepOutcome.DONE], ["rm x"]))
        records = [json.loads(line) for line in self.audit_path.read_text().splitlines()]
        calls = [r["arguments"]["directory"] for r in records if r["kind"] == "call"]
        self.assertEqual(calls, ["/work", "/elsewhere"])

    def test_the_end_of_each_call_is_recorded(self) -> None:
        self.shell.statuses["false"] = 3
        self.begin("false")
        self.say("allow")
        self.outcomes()
        records = [json.loads(line) for line in self.audit_path.read_text().splitlines()]
        self.assertEqual([r["status"] for r in records if r["kind"] == "outcome"], ["error"])
        completed = self.last(StepCompleted)
        self.assertEqual((completed.exit_code, completed.output), (3, "output of false"))  # type: ignore[union-attr]
        self.assertEqual(self.commands.finished_steps, [1])
