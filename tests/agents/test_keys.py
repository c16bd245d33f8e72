"""Which provider a model is of."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import provider_and_model
from ironcurtain.errors import UsageError
from tests.agents.samples import KEYS, facts

PROVIDERS = ("anthropic", "openai", "google")


class ProviderTests(SynchronousTestCase):
    """By the model's name, else by the keys that there are."""

    def test_by_name(self) -> None:
        for model, wanted in (
            ("claude-opus-5-5", ("anthropic", "claude-opus-5-5")),
            ("gpt-4.1", ("openai", "gpt-4.1")),
            ("o4-mini", ("openai", "o4-mini")),
            ("gemini-2.5-pro", ("google", "gemini-2.5-pro")),
            ("openai/claude-like", ("openai", "claude-like")),
            ("", ("anthropic", "")),
        ):
            self.assertEqual(provider_and_model(facts(model=model), PROVIDERS, "Agent"), wanted)

    def test_a_slash_that_is_part_of_the_name(self) -> None:
        given = facts({"openai": KEYS["openai"]}, model="accounts/fine-tuned/1")
        self.assertEqual(provider_and_model(given, PROVIDERS, "Agent"), ("openai", "accounts/fine-tuned/1"))

    def test_the_first_with_a_key(self) -> None:
        given = facts({"google": KEYS["google"], "anthropic": ""}, model="own-model")
        self.assertEqual(provider_and_model(given, PROVIDERS, "Agent"), ("google", "own-model"))

    def test_no_key(self) -> None:
        for given in (facts({}), facts({"openai": KEYS["openai"]}, model="claude-opus-5-5")):
            error = self.assertRaises(UsageError, provider_and_model, given, PROVIDERS, "Agent")
            self.assertIn("Agent needs an account for anthropic", str(error))
