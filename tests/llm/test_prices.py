from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.settings import load
from ironcurtain.llm.model import TokenUsage
from ironcurtain.llm.prices import PRICES, TokenPrice, cost, fresh_tokens

MILLION = 1_000_000


class CostTests(SynchronousTestCase):
    def test_each_kind_of_token_has_its_price(self) -> None:
        spent = cost("claude-opus-4-8", TokenUsage(MILLION, MILLION, MILLION, MILLION))
        self.assertAlmostEqual(spent or 0, 5 + 25 + 0.5 + 6.25)

    def test_a_dated_name_costs_the_same(self) -> None:
        self.assertEqual(
            cost("claude-haiku-4-5-20251001", TokenUsage(10, 10)), cost("claude-haiku-4-5", TokenUsage(10, 10))
        )

    def test_an_unknown_model_has_no_cost(self) -> None:
        for model in ("claude-opus-9", "scripted", "", "claude-opus-4-8-fast", "claude"):
            self.assertIsNone(cost(model, TokenUsage(MILLION, MILLION)))

    def test_a_long_prompt_raises_the_price_of_the_whole_request(self) -> None:
        at_limit = cost("claude-haiku-5-5", TokenUsage(60_000, 1000, 40_000))
        above = cost("claude-haiku-5-5", TokenUsage(60_001, 1000, 40_000))
        self.assertAlmostEqual(at_limit or 0, 0.0069)
        self.assertAlmostEqual(above or 0, 0.0345005)

    def test_other_vendors_have_prices_too(self) -> None:
        self.assertAlmostEqual(cost("gpt-6.1-sol", TokenUsage(100_000, 10_000, 100_000, 50_000)) or 0, 0.435)
        self.assertAlmostEqual(cost("gpt-6.1-sol", TokenUsage(272_001)) or 0, 1.088004)
        self.assertEqual(cost("gpt-5.4-mini-2026-03-17", TokenUsage(10, 10)), cost("gpt-5.4-mini", TokenUsage(10, 10)))
        self.assertAlmostEqual(cost("gemini-3.1-pro-preview", TokenUsage(200_001, 1000)) or 0, 0.818004)

    def test_the_settings_win(self) -> None:
        overrides = {"claude-opus-5": TokenPrice(1, 1, 0, 0), "my-model": TokenPrice(2, 2, 0, 0)}
        self.assertEqual(cost("claude-opus-5", TokenUsage(MILLION), overrides), 1.0)
        self.assertEqual(cost("my-model", TokenUsage(MILLION), overrides), 2.0)

    def test_the_table_is_plausible(self) -> None:
        for model, price in PRICES.items():
            self.assertTrue(price.cache_read < price.input <= price.cache_write < price.output, model)


class SettingsTests(SynchronousTestCase):
    def test_prices_are_read(self) -> None:
        text = "[prices.m]\ninput = 1\noutput = 2.5\n"
        (price,) = load("config.toml", text, {}).settings.prices.values()
        self.assertEqual((price.input, price.output, price.cache_read), (1, 2.5, 0))

    def test_mistakes_name_the_model(self) -> None:
        for entry in ("input = 1", 'input = "1"\noutput = 2', "input = 1\noutput = 2\nx = 3", "input = -1\noutput = 2"):
            with self.assertRaisesRegex(ConfigurationError, r"config.toml:\d: prices\.m"):
                load("config.toml", f"[prices.m]\n{entry}\n", {})


class FreshTokensTests(SynchronousTestCase):
    """What cached tokens count for."""

    def test_they_count_at_their_price(self) -> None:
        usage = TokenUsage(100, 10, 1000, 200)
        self.assertEqual(fresh_tokens("claude-sonnet-4-6-20251001", usage), 100 + 10 + 1000 * 0.1 + 200 * 1.25)
        self.assertEqual(fresh_tokens("mine", usage, {"mine": TokenPrice(4, 9, 1, 4)}), 100 + 10 + 250 + 200)

    def test_without_a_price_all_count(self) -> None:
        usage = TokenUsage(100, 10, 1000, 200)
        self.assertEqual(fresh_tokens("mine", usage), 1310)
        self.assertEqual(fresh_tokens("mine", usage, {"mine": TokenPrice(0, 0, 0, 0)}), 1310)
