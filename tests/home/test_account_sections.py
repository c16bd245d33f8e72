from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.settings import load


class AccountSettingsTests(SynchronousTestCase):
    def test_sources_of_accounts_are_read(self) -> None:
        text = '[accounts.claude]\nsource = "cli"\nfile = "~/x"\n[accounts.copilot]\ntoken = { env = "X" }\n'
        accounts = load("config.toml", text, {}).settings.accounts
        self.assertEqual((accounts["claude"].file, accounts["copilot"].token.env), ("~/x", "X"))

    def test_wrong_tables_are_refused(self) -> None:
        for text in (
            '[accounts.nobody]\nsource = "cli"\n',
            '[accounts.claude]\nsource = "browser"\n',
            '[accounts.claude]\nfile = "~/x"\n',
            '[accounts.claude]\nsource = "cli"\ntoken = { env = "X" }\n',
            '[accounts.claude]\ntoken = { env = "X", file = "y" }\n',
        ):
            self.assertRaises(ConfigurationError, load, "config.toml", text, {})

    def test_literal_token_is_refused_and_not_repeated(self) -> None:
        for text in ('token = "sk-ant-oat01-canary"', 'token = { value = "sk-ant-oat01-canary" }'):
            error = self.assertRaises(ConfigurationError, load, "config.toml", f"[accounts.claude]\n{text}\n", {})
            self.assertIn("config.toml:2", str(error))
            self.assertIn("CLAUDE_CODE_OAUTH_TOKEN", str(error))
            self.assertNotIn("canary", str(error))
