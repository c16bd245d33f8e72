from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.payers import Payers
from ironcurtain.accounts.places import Accounts
from ironcurtain.agents.claude_code import ClaudeCode
from ironcurtain.agents.opencode import OpenCode
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.account_sections import AccountName, AccountSettings
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Provider

TOKEN = "sk-ant-oat01-CANARY-0123456789"


class PayerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.home = Home(self.top, self.top)
        self.environ: dict[str, str] = {"HOME": str(self.top)}
        self.tables: dict[str, Provider] = {}
        self.settings: dict[AccountName, AccountSettings] = {}

    def payers(self, adapter: ClaudeCode | OpenCode | None = None) -> Payers:
        adapter = adapter or ClaudeCode()
        accounts = Accounts(self.home, self.settings, self.environ)
        return Payers(adapter.display_name, adapter.providers, self.tables, accounts)

    def chosen(self, wanted: str = "", *preferred: str, adapter: ClaudeCode | OpenCode | None = None) -> list[str]:
        """:returns: names and providers."""
        found = self.payers(adapter).chosen(wanted, preferred)
        return [f"{payer.name}:{payer.provider}" for payer in found]

    def keep(self, name: str) -> None:
        """Keep a login."""
        self.home.accounts.mkdir(parents=True, exist_ok=True)
        (self.home.accounts / f"{name}.json").write_text("{}")

    def table(self, name: str, **fields: object) -> None:
        """Add a provider's table."""
        self.tables |= msgspec.convert({name: fields}, Mapping[str, Provider])

    def test_each_source_alone_pays(self) -> None:
        self.environ["ANTHROPIC_API_KEY"] = "sk-ant-api03-x"
        self.assertEqual(self.chosen(), ["anthropic:anthropic"])
        self.environ = {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN}
        self.assertEqual(self.chosen(), ["claude:claude"])
        self.environ = {}
        self.keep("claude")
        self.assertEqual(self.chosen(), ["claude:claude"])

    def test_nothing_is_chosen_between_two(self) -> None:
        self.environ |= {"ANTHROPIC_API_KEY": "sk-ant-api03-CANARY", "CLAUDE_CODE_OAUTH_TOKEN": TOKEN}
        error = self.assertRaises(ConfigurationError, self.chosen)
        for word in ("--account anthropic", "accounts = [", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"):
            self.assertIn(word, str(error))
        self.assertNotIn("CANARY", str(error))
        self.assertEqual(self.chosen("claude"), ["claude:claude"])
        self.assertEqual(self.chosen("", "chatgpt", "anthropic", "claude"), ["anthropic:anthropic"])
        self.assertRaises(UsageError, self.chosen, "chatgpt")

    def test_login_and_token_of_one_account_are_two(self) -> None:
        self.keep("claude")
        self.environ["CLAUDE_CODE_OAUTH_TOKEN"] = TOKEN
        self.assertRaises(ConfigurationError, self.chosen)
        self.assertEqual(self.chosen("claude"), ["claude:claude"])
        self.assertEqual(self.chosen("claude-token"), ["claude-token:claude"])

    def test_models_of_several_families_are_paid_each_by_its_own_account(self) -> None:
        self.environ |= {"ANTHROPIC_API_KEY": "a", "OPENROUTER_API_KEY": "b"}
        self.keep("chatgpt")
        found = self.chosen(adapter=OpenCode())
        self.assertEqual(found, ["anthropic:anthropic", "chatgpt:chatgpt", "openrouter:openrouter"])
        self.assertEqual(self.chosen("chatgpt", adapter=OpenCode()), ["chatgpt:chatgpt"])
        self.environ["OPENAI_API_KEY"] = "c"
        self.assertRaises(ConfigurationError, self.chosen, adapter=OpenCode())

    def test_clouds_need_a_table(self) -> None:
        self.environ["AWS_BEARER_TOKEN_BEDROCK"] = "ABSKx"
        self.assertRaises(ConfigurationError, self.chosen)
        self.table("bedrock", region="us-east-1")
        self.assertEqual(self.chosen(), ["bedrock:bedrock"])

    def test_without_any_all_ways_are_named(self) -> None:
        error = str(self.assertRaises(ConfigurationError, self.chosen))
        for way in (
            "ANTHROPIC_API_KEY",
            "[providers.anthropic]",
            "ironcurtain login claude",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ):
            self.assertIn(way, error)

    def test_token_in_the_place_of_a_key_is_explained(self) -> None:
        self.environ["ANTHROPIC_API_KEY"] = TOKEN
        error = str(self.assertRaises(ConfigurationError, self.chosen))
        self.assertIn("a token of a Claude subscription", error)
        self.assertNotIn("CANARY", error)
