"""The budget of a shell's session, and the question about more."""

from __future__ import annotations

from math import inf

import msgspec

from ironcurtain.errors import SessionError, UsageError
from ironcurtain.llm.model import TokenUsage
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter, Dimension
from ironcurtain.session.events import BudgetExhausted
from ironcurtain.shell.assistant import CANCELLED
from ironcurtain.shell.inheritance import AgentPolicies
from ironcurtain.shell.messages import BudgetReached, InstructionDone, Interrupt, MoreTokens
from ironcurtain.shell.session_budget import TOKENS_SETTING, SessionBudget
from tests.shell.assistant import AssistantTestCase


class UnaskedTests(AssistantTestCase):
    """Nobody is asked."""

    def test_the_instruction_ends(self) -> None:
        self.make(budget=BudgetLimits(tokens=12))
        self.instruct()
        self.plan("ls")
        self.allow()
        done = self.done()
        self.assertIn("budget used up: 12 of 12 tokens", done.error)
        self.assertEqual((len(self.model.requests), self.shell.ran), (1, ["ls"]))
        self.assertEqual(len([each for each in self.events if isinstance(each, BudgetExhausted)]), 1)


class BudgetTests(AssistantTestCase):
    """The tokens of the session are used up while a person is in the terminal."""

    def setUp(self) -> None:
        super().setUp()
        self.make(budget=BudgetLimits(tokens=12, tokens_setting=TOKENS_SETTING), asks=True)
        self.instruct()
        self.plan("ls")
        self.allow()

    def test_it_goes_on_once_the_person_has_allowed_more(self) -> None:
        self.assertEqual(self.told[-1], BudgetReached(used=12, more=6, setting=TOKENS_SETTING))
        self.assertEqual(len(self.model.requests), 1)
        self.act(MoreTokens(allow=True))
        self.say("One.")
        self.assertEqual(self.done().text, "One.")
        self.instruct("and then?")
        self.assertEqual(self.told[-1], BudgetReached(used=24, more=6, setting=TOKENS_SETTING))

    def test_what_was_allowed_is_not_asked_again(self) -> None:
        self.act(Interrupt())
        self.done()
        self.make(budget=BudgetLimits(tokens=30, tokens_setting=TOKENS_SETTING), asks=True)
        for answer in ("One.", "Two."):
            self.instruct()
            self.plan("ls")
            self.allow()
            if answer == "Two.":
                self.assertEqual(self.told[-1], BudgetReached(used=36, more=15, setting=TOKENS_SETTING))
                self.act(MoreTokens(allow=True))
            self.say(answer)
            self.assertEqual(self.done().text, answer)
        self.instruct()
        self.assertNotIsInstance(self.told[-1], BudgetReached)
        self.say("Three.")

    def test_it_ends_with_the_name_of_the_setting(self) -> None:
        self.act(MoreTokens(allow=False))
        self.assertIn(f"after raising {TOKENS_SETTING}", self.done().error)
        with self.assertRaises(UsageError):
            self.assistant.receive(MoreTokens(allow=True))

    def test_interrupted_it_ends(self) -> None:
        self.act(Interrupt())
        self.assertEqual(self.done().error, CANCELLED)

    def test_a_limit_of_the_budget_is_no_question(self) -> None:
        self.act(Interrupt())
        self.done()
        self.make(budget=BudgetLimits(steps=1), asks=True)
        self.instruct()
        self.plan("ls")
        self.allow()
        self.assertIn("after raising budget.steps", self.done().error)

    def test_usage_that_the_model_does_not_say_counts_and_is_not_shown_as_none(self) -> None:
        self.act(Interrupt())
        self.done()
        self.make(budget=BudgetLimits(tokens=12, tokens_setting=TOKENS_SETTING), asks=True)
        self.instruct()
        self.model.usage = TokenUsage()
        self.say("So.")
        done = self.done()
        self.assertEqual((done.usage_known, self.assistant.usage().token_tracking_available), (False, False))
        self.instruct()
        self.assertIsInstance(self.told[-1], BudgetReached)


class BelowTests(AssistantTestCase):
    """What agents below use counts here, and they may use no more than is left."""

    def budget(self, tokens: float | None = None, cost: float | None = None) -> SessionBudget:
        accounting = Accounting(
            BudgetMeter(BudgetLimits(tokens=tokens, cost=cost)),
            lambda tokens: None,
            self.events.append,
            self.clock.seconds,
        )
        return SessionBudget(accounting, False, self.told.append)

    def test_tokens_and_money_count_in_the_limits_of_the_agent_above(self) -> None:
        budget = self.budget(tokens=1000, cost=1.0)
        said = InstructionDone(tokens_in=600, tokens_out=50, counted=200, cost=0.25)
        self.assertEqual(budget.below(said, "it", here=False), "tokens: 600 in, 50 out, $0.2500")
        left = budget.narrowed(AgentPolicies(({"x": 1},), 2, tokens=900, cost=0.5))
        self.assertEqual(left, AgentPolicies(({"x": 1},), 2, tokens=800, cost=0.5))
        self.assertEqual((budget.usage.input_tokens, budget.usage.output_tokens, budget.usage.cost), (600, 50, 0.25))
        self.assertEqual(budget.turn_below.input_tokens, 600)
        budget.below(msgspec.structs.replace(said, counted=0.0), "it", here=False)
        self.assertEqual(budget.narrowed(AgentPolicies()).tokens, 150)
        budget.below(said, "it", here=False)
        self.assertIsInstance(self.events[-1], BudgetExhausted)
        self.assertRaises(SessionError, budget.accounting.require)
        with self.assertRaisesRegex(UsageError, "nothing of the budget is left"):
            budget.narrowed(AgentPolicies())

    def test_without_limits_there_are_none_below(self) -> None:
        self.assertEqual(self.budget().narrowed(AgentPolicies()), AgentPolicies())

    def test_what_is_not_known_is_said(self) -> None:
        for done in (None, InstructionDone(text="So."), InstructionDone(usage_known=False)):
            budget = self.budget(tokens=1000)
            self.assertEqual(budget.below(done, "the agent on far", here=False), "tokens: not known")
            self.assertIn("the agent on far did not say how many tokens it used", self.told[-1].text)  # type: ignore[union-attr]
            self.assertFalse(budget.usage.token_tracking_available)
        budget = self.budget()
        budget.begin()
        self.assertTrue(budget.usage.token_tracking_available)
        budget.below(InstructionDone(tokens_in=10, usage_known=False), "it", here=False)
        self.assertIn("all that it used", self.told[-1].text)  # type: ignore[union-attr]
        self.assertEqual(budget.usage.input_tokens, 10)

    def test_none_gives_tokens_back(self) -> None:
        budget = self.budget(tokens=1000, cost=1.0)
        budget.below(InstructionDone(tokens_in=-500, tokens_out=10, counted=-1e9, cost=-5.0), "it", here=False)
        self.assertEqual(budget.narrowed(AgentPolicies()), AgentPolicies(tokens=990, cost=1.0))

    def test_no_number_is_too_large_to_be_counted(self) -> None:
        for said in (InstructionDone(tokens_in=10**5000), InstructionDone(tokens_out=1, counted=1e308, cost=1e308)):
            budget = self.budget(tokens=1000, cost=1.0)
            budget.below(said, "it", here=False)
            budget.below(said, "it", here=False)
            self.assertEqual(budget.accounting.left(Dimension.TOKENS), 0)
            self.assertLess(budget.accounting.turn_counted, inf)
            self.assertLess(budget.usage.cost or 0.0, inf)
