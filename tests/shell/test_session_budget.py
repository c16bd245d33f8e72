"""The budget of a shell's session, and the question about more."""

from __future__ import annotations

from ironcurtain.errors import UsageError
from ironcurtain.llm.model import TokenUsage
from ironcurtain.session.budget import BudgetLimits
from ironcurtain.session.events import BudgetExhausted
from ironcurtain.shell.assistant import CANCELLED
from ironcurtain.shell.messages import BudgetReached, Interrupt, MoreTokens
from ironcurtain.shell.session_budget import TOKENS_SETTING
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
