"""Instructions: what the model is asked, what it gets back, and how an instruction ends."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.errors import ConfigurationError, StaleDecision, UsageError
from ironcurtain.llm.model import FellBack, ModelError, Retrying, TextBlock, TextDelta, TokenUsage
from ironcurtain.shell.assistant import CANCELLED, REFUSED
from ironcurtain.shell.messages import (
    Approval,
    ApprovalRequested,
    Edit,
    InstructionAccepted,
    InstructionDone,
    Interrupt,
    Kill,
    ModelText,
    Notice,
    PlanProposed,
    Steer,
    StepCompleted,
    StepForming,
    StepOutcome,
)
from ironcurtain.shell.model import ConfirmMode
from tests.shell.assistant import LIMITS, AssistantTestCase
from tests.shell.model import last_results, last_words


class RoundTests(AssistantTestCase):
    """The model answers, its plan runs, it gets the results."""

    def test_words_are_the_answer(self) -> None:
        self.instruct("what is it?")
        self.assertEqual(self.told, [InstructionAccepted(text="what is it?")])
        self.model.notify(TextDelta("It "))
        self.model.notify(TextDelta("is."))
        self.say(" It is. ")
        self.assertEqual([each.text for each in self.told if isinstance(each, ModelText)], ["It ", "is."])
        self.assertEqual(
            self.done(), InstructionDone(text="It is.", tokens_in=10, tokens_out=2, counted=12, cost=0.02, model="m-1")
        )
        request = self.model.requests[0]
        self.assertEqual((request.model, request.max_tokens, request.traceparent), ("m-1", 1000, "00-trace"))
        self.still_valid()

    def test_a_fault_that_nobody_expects_is_told(self) -> None:
        self.instruct("what is it?")
        self.model.fail(ZeroDivisionError("by zero"))
        self.assertEqual(self.done().error, "a fault of IronCurtain ended it: ZeroDivisionError: by zero")
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.instruct("again")
        self.say("Yes.")
        self.assertEqual(self.done().text, "Yes.")

    def test_results_go_to_the_model(self) -> None:
        self.instruct()
        self.plan("ls", "df")
        self.assertEqual([each.step.command for each in self.told if isinstance(each, StepForming)], ["ls", "df"])
        self.assertEqual(self.shell.ran, [])
        self.allow()
        self.assertEqual(self.shell.ran, ["ls", "df"])
        results = last_results(self.model.requests[1])
        self.assertEqual([(each.id, each.is_error) for each in results], [("use-1", False), ("use-2", False)])
        self.assertEqual(results[1].content, "0 output of df")
        self.say("Two.")
        done = self.done()
        self.assertEqual((done.text, done.tokens_in, done.tokens_out, done.cost), ("Two.", 20, 4, 0.04))
        self.still_valid()

    def test_each_plan_has_a_name_of_its_own(self) -> None:
        self.instruct()
        self.plan("ls")
        first = self.last(PlanProposed).plan_id  # type: ignore[union-attr]
        self.allow()
        self.plan("df")
        with self.assertRaises(StaleDecision):
            self.assistant.receive(Approval(plan_id=first, decision="allow"))
        self.turn()
        self.assertEqual(self.shell.ran, ["ls"])
        self.allow()
        self.say("Done.")
        self.done()
        self.instruct()
        self.plan("ls")
        self.assertNotEqual(self.last(PlanProposed).plan_id, first)  # type: ignore[union-attr]

    def test_what_forms_has_the_name_of_its_plan(self) -> None:
        self.instruct()
        self.plan("ls")
        forming, proposed = self.last(StepForming), self.last(PlanProposed)
        self.assertEqual(forming.plan_id, proposed.plan_id)  # type: ignore[union-attr]

    def test_the_plan_that_recovers_from_a_failure_is_judged_afresh(self) -> None:
        self.shell.statuses["make"] = 2
        self.instruct()
        self.plan("make", "ls")
        self.allow()
        failed, left_out = last_results(self.model.requests[1])
        self.assertEqual((failed.content, failed.is_error), ("2 output of make", True))
        self.assertEqual((left_out.content, left_out.is_error), ("None  not-run: a step failed", True))
        self.plan("deny all", "ls")
        self.assertEqual(self.shell.ran, ["make"])  # although "ls" was allowed in the plan before
        proposed = self.last(PlanProposed)
        self.assertTrue(proposed.confirm)  # type: ignore[union-attr]
        self.assertEqual([step.decision for step in proposed.steps], ["deny", "escalate"])  # type: ignore[union-attr]
        self.allow()
        self.assertEqual(self.shell.ran, ["make"])
        self.assertIn("denied: DENIED: because (rule deny-rule)", last_results(self.model.requests[2])[0].content)
        self.plan("ls -l")
        self.allow()
        self.say("Mended.")
        self.assertEqual((self.done().text, self.shell.ran), ("Mended.", ["make", "ls -l"]))
        self.still_valid()

    def test_a_word_of_the_user_comes_to_the_model_with_the_results(self) -> None:
        self.instruct()
        self.plan("ls", "df")
        self.assistant.note("only the first")
        self.turn()
        request = self.model.requests[1]
        self.assertEqual([each.is_error for each in last_results(request)], [True, True])
        self.assertIn("only the first", last_words(request))
        self.assertEqual(self.shell.ran, [])
        self.plan("ls")
        self.allow()
        self.say("So.")
        self.assertEqual((self.done().error, self.shell.ran), ("", ["ls"]))
        self.still_valid()

    def test_a_word_that_comes_while_a_command_runs(self) -> None:
        self.shell.slow.add("make")
        self.instruct()
        self.plan("make", "df")
        self.allow()
        self.act(Steer(plan_id="p1", context="that is enough"))
        self.shell.finish(0)
        self.turn()
        request = self.model.requests[1]
        self.assertEqual([each.is_error for each in last_results(request)], [False, True])
        self.assertIn("that is enough", last_words(request))

    def test_a_word_that_comes_while_the_model_answers(self) -> None:
        """As from the shell, while the agent is suspended."""
        self.make(ConfirmMode.AUTO)
        self.instruct()
        self.assistant.note("but not")
        self.assistant.note("that one")
        self.plan("allow x", "allow y")
        self.assertEqual(self.shell.ran, [])
        request = self.model.requests[1]
        self.assertEqual([each.is_error for each in last_results(request)], [True, True])
        self.assertIn("The user says: but not\nthat one\n", last_words(request))
        self.assistant.note("and why")
        self.say("As you wish.")
        self.assertIn("and why", last_words(self.model.requests[2]))
        self.say("Because.")
        self.assertEqual(self.done().text, "Because.")
        self.still_valid()

    def test_an_edited_step_is_what_the_model_gets_the_result_of(self) -> None:
        self.instruct()
        self.plan("rm x")
        self.act(Edit(plan_id="p1", step=1, command="rm -i x"))
        self.allow()
        self.assertIn("output of rm -i x", last_results(self.model.requests[1])[0].content)

    def test_a_skipped_step_is_no_failure_of_the_plan(self) -> None:
        self.make(ConfirmMode.AUTO)
        self.instruct()
        self.plan("ls", "allow df")
        self.last(ApprovalRequested)
        self.act(Approval(plan_id="p1", decision="skip", step=1))
        self.assertEqual(self.shell.ran, ["allow df"])
        self.assertEqual([each.is_error for each in last_results(self.model.requests[1])], [True, False])
        self.say("So.")
        self.done()
        self.still_valid()

    def test_what_the_model_is_told_comes_with_every_retry_and_change_of_backend(self) -> None:
        self.instruct()
        self.model.notify(Retrying(4.0, "the server is overloaded"))
        self.model.notify(FellBack("anthropic m-1", "openai m-2", "no answer"))
        notices = [each.text for each in self.told if isinstance(each, Notice)]
        self.assertEqual(
            notices,
            [
                "the server is overloaded; trying again in 4 s",
                "anthropic m-1 gave no answer (no answer); asking openai m-2",
            ],
        )
        self.say("Here.")
        self.assertEqual(self.done().text, "Here.")


class WrongAnswerTests(AssistantTestCase):
    """Models make mistakes."""

    def test_what_has_no_command_is_given_back(self) -> None:
        cases: list[tuple[dict[str, object], str]] = [
            ({}, "shell"),
            ({"command": 5}, "shell"),
            ({"command": ["ls"]}, "shell"),
            ({"command": "ls"}, "bash"),
        ]
        for arguments, name in cases:
            self.instruct()
            self.model.answer(self.model.use({"command": "allow x"}), self.model.use(arguments, name))
            self.turn()
            results = last_results(self.model.requests[-1])
            self.assertEqual([each.is_error for each in results], [True, True])
            self.assertIn("nothing of the plan was run", results[0].content)
            self.say("Sorry.")
            self.assertEqual((self.done().error, self.shell.ran), ("", []))
        self.still_valid()

    def test_a_purpose_of_another_type_is_left_out(self) -> None:
        self.instruct()
        self.model.answer(self.model.use({"command": "ls", "purpose": 7}))
        self.turn()
        self.assertEqual(self.last(PlanProposed).steps[0].purpose, "")  # type: ignore[union-attr]

    def test_a_plan_that_is_too_long_does_not_run(self) -> None:
        self.instruct()
        self.plan("allow 1", "allow 2", "allow 3", "allow 4")
        done = self.done()
        self.assertIn("at most 3 steps, and this one 4", done.error)
        self.assertEqual(self.shell.ran, [])
        self.still_valid()

    def test_a_model_that_comes_to_no_end(self) -> None:
        self.make(ConfirmMode.AUTO)
        self.instruct()
        for number in range(LIMITS.rounds):
            self.plan(f"allow {number}")
        done = self.done()
        self.assertIn("no end after 4 model requests", done.error)
        self.assertEqual((done.tokens_in, len(self.model.requests)), (40, 4))
        self.still_valid()

    def test_a_plan_that_was_cut_off_does_not_run(self) -> None:
        self.make(ConfirmMode.AUTO)
        self.instruct()
        self.model.answer(self.model.use({"command": "allow 1"}), stop_reason="max_tokens")
        self.turn()
        self.assertEqual(self.shell.ran, [])
        self.assertIn("cut off", last_results(self.model.requests[-1])[0].content)
        self.say("Shorter.")
        self.assertEqual(self.done().text, "Shorter.")
        self.still_valid()

    def test_words_that_were_cut_off_say_so(self) -> None:
        for reason in ("max_tokens", "model_context_window_exceeded"):
            self.instruct()
            self.model.answer(TextBlock("I would"), stop_reason=reason)
            self.assertRegex(self.done().text, r"^I would\n\[cut off")
        self.still_valid()

    def test_an_empty_answer_is_an_error(self) -> None:
        self.instruct()
        self.model.answer(stop_reason="pause")
        self.assertEqual(self.done().error, "the model gave an empty answer (pause): ask again")

    def test_an_answer_that_broke_off_is_kept(self) -> None:
        self.instruct()
        self.model.notify(TextDelta("The first half"))
        self.model.fail(ModelError("network", "localhost closed the connection"))
        done = self.done()
        self.assertEqual(done.text, "The first half")
        self.assertIn("the model's answer broke off: localhost closed the connection. ", done.error)
        self.instruct("go on")
        kept, asked = self.model.requests[1].messages[-2:]
        self.assertEqual((kept.role, kept.content), ("assistant", (TextBlock("The first half"),)))
        self.assertEqual(asked.role, "user")
        self.still_valid()

    def test_once_something_was_done_it_may_end_without_a_word(self) -> None:
        self.instruct()
        self.plan("ls")
        self.allow()
        self.model.answer()
        done = self.done()
        self.assertEqual((done.text, done.error), ("", ""))
        self.still_valid()

    def test_a_model_that_fails(self) -> None:
        self.instruct()
        self.model.fail(ModelError("overloaded", "the model is overloaded", usage=TokenUsage(output_tokens=7)))
        done = self.done()
        self.assertEqual((done.text, done.error, done.tokens_out), ("", "the model is overloaded", 7))
        self.still_valid()

    def test_a_model_that_fails_after_its_first_plan(self) -> None:
        self.instruct()
        self.plan("ls")
        self.allow()
        self.model.fail(ModelError("network", "the connection broke"))
        self.assertEqual(self.done().error, "the connection broke")
        self.still_valid()

    def test_no_model_to_ask(self) -> None:
        self.choosing = Deferred()
        self.instruct()
        self.choosing.errback(ConfigurationError("config.toml", "there is no key"))
        self.assertIn("there is no key", self.done().error)


class EndTests(AssistantTestCase):
    """The user ends it, or the shell does."""

    def test_interrupted_while_the_model_answers_the_request_is_cancelled(self) -> None:
        for action in (Interrupt(), Kill()):
            self.instruct()
            self.model.notify(TextDelta("I am"))
            self.act(action)
            self.assertEqual(self.done().error, CANCELLED)
        self.assertEqual(self.model.cancelled, 2)
        self.still_valid()

    def test_interrupted_after_a_plan_the_next_request_is_cancelled(self) -> None:
        self.instruct()
        self.plan("ls")
        self.allow()
        self.assertTrue(self.model.asked)
        self.act(Interrupt())
        self.assertEqual((self.done().error, self.model.cancelled), (CANCELLED, 1))
        self.still_valid()

    def test_interrupted_before_there_is_a_model(self) -> None:
        """As while a command that gives its key runs."""
        self.choosing = Deferred()
        self.instruct()
        self.act(Interrupt())
        self.assertEqual((self.done().error, self.model.requests), (CANCELLED, []))
        self.choosing = None
        self.still_valid()

    def test_a_plan_that_is_interrupted_or_denied(self) -> None:
        refusal = Approval(plan_id="", decision="deny")
        for action, error in ((Interrupt(), CANCELLED), (Kill(), CANCELLED), (refusal, REFUSED)):
            self.instruct()
            self.plan("ls", "df")
            if isinstance(action, Approval):
                action = Approval(plan_id=self.last(PlanProposed).plan_id, decision="deny")  # type: ignore[union-attr]
            self.act(action)
            outcomes = [each.outcome for each in self.told if isinstance(each, StepCompleted)]
            self.assertEqual(outcomes, [StepOutcome.NOT_RUN] * 2)
            self.assertEqual(self.done().error, error)
        self.assertEqual(self.shell.ran, [])
        self.still_valid()

    def test_nobody_to_ask_is_no_denial_of_the_user(self) -> None:
        self.attended = False
        self.make(ConfirmMode.AUTO)
        self.instruct()
        self.plan("ls")
        self.assertIn("nobody to ask", self.done().error)
        self.still_valid()

    def test_a_command_that_is_interrupted_ends_the_instruction(self) -> None:
        self.shell.slow.add("sleep 9")
        self.instruct()
        self.plan("sleep 9", "ls")
        self.allow()
        self.act(Interrupt())
        self.clock.advance(1)
        self.assertEqual((self.done().error, self.shell.ran), (CANCELLED, ["sleep 9"]))
        self.still_valid()
        results = [block for each in self.model.requests[-1].messages for block in each.content]
        self.assertIn("130 output of sleep 9 interrupted", [getattr(block, "content", "") for block in results])

    def test_the_shell_ends(self) -> None:
        self.shell.slow.add("sleep 9")
        self.instruct()
        self.plan("sleep 9", "ls")
        self.allow()
        self.runner.lost()
        self.assertEqual(self.done().error, "the shell ended")
        self.shell.prompt()
        self.still_valid()

    def test_cancelled_from_outside_the_conversation_stays_valid(self) -> None:
        self.instruct()
        self.plan("ls")
        self.responding.cancel()
        self.failureResultOf(self.responding, CancelledError)
        self.told.clear()
        self.still_valid()

    def test_what_nothing_waits_for_is_refused(self) -> None:
        self.instruct()
        with self.assertRaisesRegex(UsageError, "no plan waits"):
            self.assistant.receive(Approval(plan_id="p1", decision="allow"))
        self.say("So.")
        self.done()
        with self.assertRaisesRegex(UsageError, "no instruction is worked on"):
            self.assistant.receive(Steer(plan_id="p1", context="x"))
