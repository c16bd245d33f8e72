from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.model import TokenUsage
from ironcurtain.session import events
from ironcurtain.session.budget import UNPRICED, WARN_AT, Accounting, BudgetLimits, BudgetMeter, Dimension

AMOUNTS = st.lists(st.integers(0, 50), max_size=40)


class BudgetTests(SynchronousTestCase):
    def test_a_warning_and_then_the_end(self) -> None:
        budget = BudgetMeter(BudgetLimits(steps=10))
        notices = [budget.spend(Dimension.STEPS, 1) for _ in range(12)]
        self.assertEqual([i for i, notice in enumerate(notices, 1) if notice], [8, 10])
        self.assertEqual(str(notices[7]), "budget nearly used up: 8 of 10 steps")
        self.assertEqual(str(notices[9]), "budget used up: 10 of 10 steps")

    def test_a_leap_over_both_says_only_the_end(self) -> None:
        budget = BudgetMeter(BudgetLimits(cost=0.5))
        notice = budget.spend(Dimension.COST, 2.25)
        assert notice is not None
        self.assertTrue(notice.exhausted)
        self.assertIsNone(budget.spend(Dimension.COST, 0.01))

    def test_without_a_limit_nothing_ends(self) -> None:
        budget = BudgetMeter(BudgetLimits())
        for dimension in Dimension:
            self.assertIsNone(budget.spend(dimension, 1e12))
        self.assertIsNone(budget.exhausted)

    def test_dimensions_are_counted_apart(self) -> None:
        budget = BudgetMeter(BudgetLimits(steps=1, tokens=100))
        budget.spend(Dimension.TOKENS, 99)
        self.assertIsNone(budget.exhausted)
        budget.spend(Dimension.STEPS, 1)
        exhausted = budget.exhausted
        assert exhausted is not None
        self.assertEqual(exhausted.dimension, Dimension.STEPS)

    @given(st.integers(1, 500), AMOUNTS)
    def test_each_notice_comes_once_and_in_time(self, limit: int, amounts: list[int]) -> None:
        budget = BudgetMeter(BudgetLimits(tokens=limit))
        total, warned, ended = 0, False, False
        for amount in amounts:
            total += amount
            notice = budget.spend(Dimension.TOKENS, amount)
            wanted = (total >= limit and not ended) or (limit * WARN_AT <= total < limit and not warned)
            self.assertEqual(notice is not None, wanted)
            self.assertEqual(budget.exhausted is not None, total >= limit)
            ended = ended or total >= limit
            warned = warned or limit * WARN_AT <= total < limit
            if notice is not None:
                self.assertEqual((notice.used, notice.exhausted), (total, total >= limit))
        self.assertEqual(budget.used[Dimension.TOKENS], total)


class AccountingTests(SynchronousTestCase):
    """Costs that have a limit, and cannot be counted."""

    def warnings(self, limits: BudgetLimits, price: float | None) -> list[str]:
        """:returns: what is said after some requests."""
        told: list[events.SessionEvent] = []
        accounting = Accounting(BudgetMeter(limits), lambda usage: price, told.append, lambda: 0.0)
        for number in range(3):
            accounting.step(number, TokenUsage(input_tokens=5, output_tokens=1))
        accounting.unreported(4, 7)
        return [each.message for each in told if isinstance(each, events.BudgetWarning)]

    def test_a_price_that_is_not_known_is_said_once(self) -> None:
        self.assertEqual(self.warnings(BudgetLimits(cost=1.0), None), [UNPRICED])

    def test_usage_that_is_not_known_is_said_too(self) -> None:
        self.assertEqual(self.warnings(BudgetLimits(cost=1.0), 0.01), [UNPRICED])

    def test_without_a_limit_nothing_is_said(self) -> None:
        self.assertEqual(self.warnings(BudgetLimits(tokens=1000), None), [])
