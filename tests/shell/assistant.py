"""An assistant whose model a test answers by hand."""

from __future__ import annotations

from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.llm.registry import Chosen
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter
from ironcurtain.session.events import SessionEvent
from ironcurtain.shell.assistant import Assistant, AssistantLimits
from ironcurtain.shell.context import Prompt
from ironcurtain.shell.messages import (
    Action,
    Approval,
    InstructionDone,
    PlanProposed,
)
from ironcurtain.shell.model import ConfirmMode
from ironcurtain.shell.model_requests import ModelRequests
from ironcurtain.shell.session_budget import SessionBudget
from ironcurtain.shell.window import ContextWindow
from tests.shell.model import HandModel, last_words, problems
from tests.shell.support import ShellTestCase

LIMITS = AssistantLimits(rounds=4, steps=3)


class AssistantTestCase(ShellTestCase):
    """With one assistant, whose model is answered by hand."""

    def setUp(self) -> None:
        super().setUp()
        self.model = HandModel()
        self.choosing: Deferred[Chosen] | None = None
        self.events: list[SessionEvent] = []
        self.make()

    def make(
        self,
        confirm: ConfirmMode = ConfirmMode.PLAN,
        limits: AssistantLimits = LIMITS,
        budget: BudgetLimits | None = None,
        asks: bool = False,
    ) -> None:
        """Make the assistant."""

        async def choose() -> Chosen:
            return Chosen(self.model, "m-1") if self.choosing is None else await self.choosing

        accounting = Accounting(
            BudgetMeter(budget or BudgetLimits()),
            lambda tokens: tokens.output_tokens / 100,
            self.events.append,
            self.clock.seconds,
        )
        self.assistant = Assistant(
            ModelRequests(
                choose,
                ContextWindow(len, lambda: 100_000),
                SessionBudget(accounting, asks, self.parts.tell),
                1000,
                "00-trace",
                self.parts.tell,
            ),
            lambda instruction: self.describe(instruction),
            lambda step, remark: f"{step.exit_code} {step.output.strip()} {remark}".strip(),
            limits,
            replace(self.parts, confirm=confirm),
        )

    def describe(self, instruction: str) -> Prompt:
        """:returns: what the model is told of an instruction."""
        return Prompt(instruction, "", (), "", "mark")

    def instruct(self, text: str = "look") -> None:
        """Give an instruction."""
        self.responding = Deferred.fromCoroutine(self.assistant.respond(text))
        self.turn()

    def plan(self, *commands: object) -> None:
        """The model proposes a plan."""
        self.model.plan(*commands)
        self.turn()

    def say(self, text: str) -> None:
        """The model ends its answer with words."""
        self.model.say(text)
        self.turn()

    def act(self, action: Action) -> None:
        """The user does something."""
        self.assistant.receive(action)
        self.turn()

    def allow(self) -> None:
        """The user allows the plan."""
        self.act(Approval(plan_id=self.last(PlanProposed).plan_id, decision="allow"))  # type: ignore[union-attr]

    def done(self) -> InstructionDone:
        """:returns: how it ended, which front ends were told as well."""
        self.turn()
        done = self.successResultOf(self.responding)
        self.assertIs(self.told[-1], done)
        self.assertEqual(len([each for each in self.told if isinstance(each, InstructionDone)]), 1)
        self.told.clear()
        return done

    def still_valid(self) -> None:
        """Another instruction goes to the model with a conversation that providers take."""
        self.instruct("and then?")
        self.assertTrue(self.model.asked)
        for request in self.model.requests:
            self.assertEqual(problems(request), [])
        self.assertIn("and then?", last_words(self.model.requests[-1]))
        self.say("nothing")
        self.assertEqual(self.done().error, "")
