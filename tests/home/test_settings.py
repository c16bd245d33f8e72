from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.registry_sections import canonical
from ironcurtain.home.settings import Settings, flatten, load

NAMES = [name for name, _ in flatten(Settings())]


class LoadTests(SynchronousTestCase):
    def test_defaults(self) -> None:
        effective = load("config.toml", None, {})
        self.assertEqual(effective.settings, Settings())
        self.assertEqual((effective.settings.agent.max_steps, effective.settings.escalation.timeout_seconds), (10, 300))
        self.assertEqual((effective.settings.run_as, effective.settings.agents.turn_seconds), ("", 3600.0))
        self.assertEqual(set(effective.origins.values()), {"default"})
        self.assertEqual(effective.origins.keys(), set(NAMES))

    def test_the_environment_wins_over_the_file_over_the_default(self) -> None:
        text = "default_agent = 'x'\n[agent]\nmax_steps = 3\n[budget]\ncost = 1\n"
        environ = {"IRONCURTAIN_AGENT_MAX_STEPS": "5", "IRONCURTAIN_BUDGET_STEPS": "7", "IRONCURTAIN_MODEL_NAME": ""}
        effective = load("config.toml", text, environ)
        self.assertEqual(effective.settings.agent.max_steps, 5)
        self.assertEqual((effective.settings.budget.cost, effective.settings.budget.steps), (1.0, 7.0))
        origins = effective.origins
        self.assertEqual(origins["agent.max_steps"], "environment variable IRONCURTAIN_AGENT_MAX_STEPS")
        self.assertEqual(origins["budget.steps"], "environment variable IRONCURTAIN_BUDGET_STEPS")
        self.assertEqual((origins["budget.cost"], origins["default_agent"]), ("config.toml", "config.toml"))
        self.assertEqual(origins["model.name"], "default")

    def test_what_is_wrong_is_named(self) -> None:
        for text, environ, wanted in (
            ("[agent]\nmax_stpes = 3", {}, "config.toml:2: agent.max_stpes"),
            ("[agent]\nmax_steps = 0", {}, "config.toml:2: agent.max_steps"),
            ("[escalation]\ntimeout_seconds = nan", {}, "config.toml:2: escalation.timeout_seconds"),
            ("version = 2", {}, "config.toml:1: version"),
            ("[shell]\nconfirm_mode = 'never'", {}, "config.toml:2: shell.confirm_mode"),
            ("[shell]\nmax_plan_steps = 0", {}, "config.toml:2: shell.max_plan_steps"),
            ("[telemetry]\nsink = 'cloud'", {}, "config.toml:2: telemetry.sink"),
            ("[context]\nscrub = ['[']", {}, "config.toml:1: context: '[' is no regular expression"),
            ("[context]\nscrub = ['a', 'b*']", {}, "config.toml:1: context: the regular expression 'b*' fits"),
            ("[agents]\nturn_seconds = 0", {}, "config.toml:2: agents.turn_seconds"),
            (None, {"IRONCURTAIN_AGENTS_TURN_SECONDS": "x"}, "environment variable IRONCURTAIN_AGENTS_TURN_SECONDS"),
            ("version = true", {}, "config.toml:1: version"),
            ("=", {}, "config.toml:1"),
            (None, {"IRONCURTAIN_AGENT_MAX_STEPS": "many"}, "environment variable IRONCURTAIN_AGENT_MAX_STEPS"),
            (None, {"IRONCURTAIN_BUDGET_COST": "nan"}, "environment variable IRONCURTAIN_BUDGET_COST"),
            (None, {"IRONCURTAIN_RESOURCES_PIDS": "1"}, "environment variable IRONCURTAIN_RESOURCES_PIDS"),
        ):
            error = self.assertRaises(ConfigurationError, load, "config.toml", text, environ)
            self.assertTrue(str(error).startswith(wanted), str(error))

    def test_a_literal_key_is_refused_without_being_shown(self) -> None:
        for key in ("value = 'sk-literal'", "key = 'sk-literal'"):
            text = f"[providers.anthropic.key]\nheader = 'x-api-key'\n{key}\n"
            error = self.assertRaises(ConfigurationError, load, "config.toml", text, {})
            self.assertNotIn("sk-literal", str(error))
        error = self.assertRaises(ConfigurationError, load, "c", "[providers.x]\nkey = 'sk-literal'", {})
        self.assertNotIn("sk-literal", str(error))

        for key in ("key = 'sk-literal'", "key = { token = 'sk-literal' }"):
            text = f"[registries.npm]\nurl = 'https://npm.corp'\n{key}"
            error = self.assertRaises(ConfigurationError, load, "c", text, {})
            self.assertTrue(str(error).startswith("c:3: registries.npm.key"), str(error))
            self.assertNotIn("sk-literal", str(error))

    def test_registries_are_closed_or_open_or_have_a_table(self) -> None:
        self.assertIsNone(load("c", None, {}).settings.registries.opened("npm"))
        effective = load("c", "[registries]\nnpm = true\nmin_age = '3d'", {})
        opened = effective.settings.registries.opened("npm")
        assert opened is not None
        self.assertEqual((opened.url, opened.min_age), ("", "3d"))
        effective = load("c", "[registries]\npypi = { min_age = '0', deny = ['x'] }", {})
        opened = effective.settings.registries.opened("pypi")
        assert opened is not None
        self.assertEqual((opened.min_age, opened.deny), ("0", ("x",)))
        self.assertNotIn("registries.pypi", effective.origins)
        self.assertEqual(effective.origins["registries.pypi.deny"], "c")

    def test_private_hosts_of_registries_are_names_or_addresses(self) -> None:
        hosts = ("Storage.corp.", "10.0.0.1", "fd00::1", "[fd00::1]")
        effective = load("c", f"[registries.npm]\nprivate = {list(hosts)}", {})
        opened = effective.settings.registries.opened("npm")
        assert opened is not None
        self.assertEqual([*map(canonical, opened.private)], ["storage.corp", "10.0.0.1", "fd00::1", "fd00::1"])
        for wrong in ("https://storage.corp", "storage.corp:8443", "10.0.0.0/8", "*.corp", ""):
            error = self.assertRaises(ConfigurationError, load, "c", f"[registries.npm]\nprivate = ['{wrong}']", {})
            self.assertIn("is no host: write a name or an address, without port", str(error))

    def test_the_environment_opens_a_registry(self) -> None:
        effective = load("c", None, {"IRONCURTAIN_REGISTRIES_NPM": "true"})
        self.assertIs(effective.settings.registries.npm, True)
        text = "[registries.npm]\nurl = 'https://npm.corp'"
        effective = load("c", text, {"IRONCURTAIN_REGISTRIES_NPM_URL": "https://x", "IRONCURTAIN_REGISTRIES_NPM": ""})
        opened = effective.settings.registries.opened("npm")
        assert opened is not None
        self.assertEqual(opened.url, "https://npm.corp")

    def test_wrong_settings_of_registries_are_named(self) -> None:
        for text, wanted in (
            ("[registries]\nnpm = 'yes'", "c:2: registries.npm: must be true or false or a table"),
            ("[registries]\nmaven = true", "c:2: registries.maven: there is no such setting"),
            ("[registries]\nmin_age = '7'", "c:1: registries: min_age: '7' is no length of time"),
            ("[registries.npm]\nmin_age = '7y'", "c:1: registries.npm: min_age: '7y' is no"),
            ("[registries.npm]\nurl = 'http://npm.corp'", "c:1: registries.npm: url must look like https://"),
            ("[registries.npm]\nkey = { env = 'T' }", "c:1: registries.npm: a key needs the url"),
            ("[registries]\nmax_missing = 0", "c:2: registries.max_missing"),
            ("[registries.npm]\nallow = 'x'", "c:2: registries.npm.allow: must be a list"),
        ):
            error = self.assertRaises(ConfigurationError, load, "c", text, {})
            self.assertTrue(str(error).startswith(wanted), str(error))

    def test_one_source_of_a_key(self) -> None:
        text = "[providers.x.key]\nheader = 'h'\nenv = 'A'\nfile = 'b'\n"
        error = self.assertRaises(ConfigurationError, load, "config.toml", text, {})
        self.assertIn("one of env, command and file", str(error))
        self.assertIn("providers.x.key", str(error))

    def test_as_whom_sessions_run(self) -> None:
        effective = load("config.toml", "run_as = 'ada'", {})
        self.assertEqual((effective.settings.run_as, effective.origins["run_as"]), ("ada", "config.toml"))
        effective = load("config.toml", "run_as = 'ada'", {"IRONCURTAIN_RUN_AS": "1001"})
        self.assertEqual(effective.settings.run_as, "1001")

    def test_keys_are_no_settings_of_the_environment(self) -> None:
        text = "[providers.x.key]\nheader = 'h'\nenv = 'A'\n"
        effective = load("config.toml", text, {"IRONCURTAIN_PROVIDERS_X_KEY_ENV": "B", "IRONCURTAIN_VERSION": "9"})
        self.assertEqual(effective.settings.providers["x"].key.env, "A")

    def test_a_section_that_refuses_a_variable_names_it(self) -> None:
        with self.assertRaises(ConfigurationError) as caught:
            load("config.toml", "", {"IRONCURTAIN_TELEMETRY_OTLP_ENDPOINT": "0", "IRONCURTAIN_SSH_PORT": "2223"})
        self.assertIn("environment variable IRONCURTAIN_TELEMETRY_OTLP_ENDPOINT: ", str(caught.exception))
        self.assertNotIn("SSH", str(caught.exception))

    @given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=6), max_size=4))
    def test_any_environment_fits_or_is_refused(self, values: dict[str, str]) -> None:
        environ = {f"IRONCURTAIN_{name.replace('.', '_').upper()}": text for name, text in values.items()}
        try:
            effective = load("config.toml", None, environ)
        except ConfigurationError as e:
            self.assertIn("environment variable", str(e))
        else:
            self.assertEqual(len(effective.origins), len(NAMES))
