"""Questions of agents below, while their step runs."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.mcp_proxy.admission import OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.refusals import CallRefused
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.messages import (
    Action,
    Approval,
    ApprovalRequested,
    Interrupt,
    ProposedStep,
    Steer,
    StepCompleted,
    StepDecided,
    StepKind,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell.model import PlanEnding
from ironcurtain.shell.plan import PlanRun
from ironcurtain.shell.reported_plan import Plan
from ironcurtain.shell.tools import Hands, JudgedStep, StepRun
from tests.shell.support import ShellTestCase, WordHand, steps


class AskingHand(WordHand):
    """Its steps ask about one more command, and wait until they are interrupted if that is refused."""

    kind = StepKind.AGENT

    async def run(self, call: OpenCall, judged: JudgedStep, how: StepRun) -> CommandResult:
        step = msgspec.structs.replace(judged.step, command="rm x")
        verdict = Verdict(Decision.ESCALATE, "agent-below", "because", {"command": "rm x"})
        asking = self.admission.open("shell", "agent")
        self.admission.record(asking, verdict)
        self.waiting: Deferred[None] = Deferred()
        try:
            self.by = await how.ask(asking, JudgedStep(step, verdict, judged.risk))
        except CallRefused as e:
            self.why = e.why
            await self.waiting
            return CommandResult(StepOutcome.INTERRUPTED, None, b"")
        return CommandResult(StepOutcome.DONE, 0, b"")

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        return None

    def interrupt(self) -> None:
        self.waiting.callback(None)


class BelowTests(ShellTestCase):
    """With a plan whose second step asks."""

    def setUp(self) -> None:
        super().setUp()
        self.hand = AskingHand(self.commands.policy, self.runner, StepKind.AGENT)
        parts = replace(self.parts, hands=Hands([self.commands, self.hand]))
        (first,) = steps("rm x")
        agent = ProposedStep(number=2, command="agent", kind=StepKind.AGENT)
        self.plan = PlanRun("p1", [first, agent], parts)
        self.running = Deferred.fromCoroutine(self.plan.run())
        self.act(Approval(plan_id="p1", decision="allow"))
        self.turn()

    def act(self, action: Action) -> None:
        """The user does something."""
        self.plan.receive(action)
        self.turn()

    def test_the_plans_approval_is_none_of_the_same_words_from_below(self) -> None:
        self.assertEqual(self.shell.ran, ["rm x"])
        request = self.last(ApprovalRequested)
        self.assertEqual((request.step.number, request.step.command), (2, "rm x"))  # type: ignore[union-attr]
        self.assertEqual(request.scope, "")  # type: ignore[union-attr]
        self.act(Approval(plan_id="p1", step=2, decision="allow"))
        self.assertEqual(self.hand.by, "local:ada")
        outcomes = [step.outcome for step in self.successResultOf(self.running)]
        self.assertEqual(outcomes, [StepOutcome.DONE, StepOutcome.DONE])

    def test_front_ends_see_it_run_again_after_the_answer(self) -> None:
        plan = Plan()
        self.act(Approval(plan_id="p1", step=2, decision="allow"))
        for message in self.told:
            match message:
                case ApprovalRequested(step=step):
                    plan.put("p1", step)
                    self.assertIsNone(plan.running)
                case StepStarted(step=number, command=command):
                    plan.start("p1", number, command)
                    self.assertEqual(plan.running, number)
                case StepCompleted(step=number, outcome=outcome):
                    plan.end("p1", number, outcome)
        self.assertEqual(plan.outcomes[2], StepOutcome.DONE)

    def test_an_interrupt_at_the_question_ends_the_step(self) -> None:
        self.act(Interrupt())
        self.assertEqual(self.hand.why, "withdrawn")
        self.successResultOf(self.running)
        self.assertIs(self.plan.ending, PlanEnding.CANCELLED)

    def test_words_instead_of_an_answer_end_the_step_too(self) -> None:
        self.act(Steer(plan_id="p1", context="not that"))
        self.successResultOf(self.running)
        self.assertEqual((self.plan.ending, self.plan.note), (PlanEnding.STEERED, "not that"))

    def test_a_denial_is_told_and_time_for_an_answer_is_no_time_of_the_plan(self) -> None:
        self.clock.advance(200.0)
        self.act(Approval(plan_id="p1", step=2, decision="deny"))
        decided = self.last(StepDecided)
        self.assertEqual((decided.allowed, decided.code), (False, "denied-by-person"))  # type: ignore[union-attr]
        self.assertNoResult(self.running)
        self.act(Interrupt())
        self.successResultOf(self.running)
