from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.settings import Settings, load
from ironcurtain.operations.model import Reloaded, reloaded


def settings(text: str) -> Settings:
    return load("config.toml", text, {}).settings


class ReloadedTests(SynchronousTestCase):
    def test_nothing_changed(self) -> None:
        text = '[providers.anthropic]\nkey = { env = "KEY" }'
        self.assertEqual(reloaded(settings(text), settings(text)), Reloaded())

    def test_settings_with_another_value(self) -> None:
        found = reloaded(settings("[budget]\ncost = 2.0"), settings('run_as = "ada"\n[budget]\ncost = 3.0'))
        self.assertEqual(found, Reloaded(changed=("budget.cost", "run_as")))

    def test_what_stands_in_tables_with_names_of_their_own(self) -> None:
        before, now = (settings(f'[providers.{name}]\nkey = {{ env = "KEY" }}') for name in ("anthropic", "openai"))
        self.assertIn("providers.openai.key.env", reloaded(before, now).changed)
        self.assertIn("providers.anthropic.key.env", reloaded(before, now).changed)

    def test_where_ssh_is_listened_for_needs_a_new_start(self) -> None:
        found = reloaded(settings(""), settings("[ssh]\nport = 22\n[agent]\nmax_steps = 3"))
        self.assertEqual(found, Reloaded(changed=("agent.max_steps", "ssh.port"), restart=("ssh.port",)))
