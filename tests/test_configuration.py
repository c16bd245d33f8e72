"""The settings as they are read, with the tables of providers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.configuration import read_settings
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.settings import Settings
from tests.model_stub.certificates import Authority

OWN = 'host = "llm.example.com"\nendpoints = ["POST /v1/messages"]\nkey = { header = "x-key", prefix = "llm-" }\n'
"""A provider that is not built in, described in full."""


class ReadTests(SynchronousTestCase):
    """:func:`read_settings`"""

    def setUp(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ic-")) / "config.toml"
        self.addCleanup(shutil.rmtree, self.path.parent)

    def read(self, text: str) -> Settings:
        self.path.write_text(text)
        return read_settings(self.path, {}).settings

    def refusal(self, text: str) -> str:
        """:returns: the words, from the line on."""
        error = self.assertRaises(ConfigurationError, self.read, text)
        self.assertEqual(error.source, str(self.path))
        return str(error).removeprefix(f"{self.path}:")

    def test_no_file_means_defaults(self) -> None:
        self.assertEqual(read_settings(self.path, {}).settings, Settings())
        changed = read_settings(self.path, {"IRONCURTAIN_AGENT_MAX_STEPS": "3"})
        self.assertEqual(changed.settings.agent.max_steps, 3)

    def test_files_of_other_systems_are_read_or_named(self) -> None:
        text = "version = 1\r\n[agent]\r\nmax_steps = 3\r\n"
        for encoding in ("utf-8", "utf-8-sig"):
            self.path.write_bytes(text.encode(encoding))
            self.assertEqual(read_settings(self.path, {}).settings.agent.max_steps, 3)
        self.path.write_bytes(text.encode("utf-16"))
        refused = self.assertRaises(ConfigurationError, read_settings, self.path, {})
        self.assertEqual(str(refused), f"{self.path}: is encoded in UTF-16; save it as UTF-8")

    def test_zero_characters_are_named(self) -> None:
        for text, wanted in (
            ('[providers.openai]\nkey = { file = "/x\\u0000y" }\n', "3: providers.openai.key.file"),
            ('run_as = "a\\u0000"\n', "2: run_as"),
            ('[container.projects."/x\\u0000"]\nbase = "x"\n', "2: container.projects"),
        ):
            self.path.write_text(f"version = 1\n{text}")
            refused = str(self.assertRaises(ConfigurationError, read_settings, self.path, {}))
            self.assertEqual(
                refused, f"{self.path}:{wanted}: has a zero character, which neither paths nor programs take"
            )

    def test_what_a_session_could_start_with(self) -> None:
        ca_file = self.path.with_name("ca.pem")
        ca_file.write_bytes(Authority.make().pem)
        for text in (
            '[providers.openai]\nhost = "llm.example.com"\nport = 8443\n',
            '[providers.google]\nbase_url = "http://127.0.0.1:11434/llm"\n',
            f'[providers.anthropic]\nca_file = "{ca_file}"\nkey = {{ file = "~/key" }}\n',
            f"[providers.mine]\n{OWN}",
            f"[providers.mine]\n{OWN}port = 8443\n",
        ):
            self.assertEqual(len(self.read(text).providers), 1, text)

    def test_each_agent_has_providers_of_its_own_so_two_may_share_a_host(self) -> None:
        shared = OWN.replace("llm.example.com", "api.openai.com")
        self.assertEqual(len(self.read(f"[providers.openai]\n[providers.mine]\n{shared}").providers), 2)

    def test_with_what_no_session_could_start(self) -> None:
        for text, wanted in (
            ('[providers.anthropic]\nhost = "https://api.example.com"\n', "2: providers.anthropic.host: 'https://api."),
            ('[providers.anthropic]\nhost = "10.0.0.1"\n', "2: providers.anthropic.host: '10.0.0.1'"),
            (
                '[agent]\n[providers.anthropic]\nendpoints = ["POST /v1/messages", "/v1/models"]\n',
                "3: providers.anthropic.endpoints: must look like 'POST /v1/messages'",
            ),
            (
                "[providers.anthropic]\nport = 8443\n",
                "2: providers.anthropic.port: has an effect only together with host",
            ),
            (
                '[providers.anthropic]\nport = 8443\nbase_url = "https://gateway.example"\n',
                "2: providers.anthropic.port: has an effect only together with host",
            ),
            ('[providers.antropic]\nkey = { env = "KEY" }\n', "1: providers.antropic.host: is missing"),
            (
                f"[providers.mine]\n{OWN}".replace("x-key", "content-length"),
                "4: providers.mine.key.header: the header 'content-length' cannot carry",
            ),
            ('[providers.openai.key]\nprefix = "a b"\n', "2: providers.openai.key.prefix: contains characters"),
            ('[providers.x]\nport = 1\nbase_url = "file:///etc/x"\n', "1: providers.x.host: is missing"),
            ('[providers.openai]\nbase_url = "file:///etc/x"\n', "2: providers.openai.base_url: must look"),
            ('[providers.openai]\nbase_url = "http://203.0.113.1"\n', "2: providers.openai.base_url: must look"),
            ('[providers.openai]\nbase_url = "https://a.example/../x"\n', "2: providers.openai.base_url: must look"),
        ):
            words = self.refusal(text)
            self.assertTrue(words.startswith(wanted), words)

    def test_it_says_what_to_write(self) -> None:
        self.assertIn("as in api.example.com", self.refusal('[providers.openai]\nhost = "https://a.example"\n'))
        self.assertIn("into base_url", self.refusal("[providers.openai]\nport = 8443\n"))

    def test_files_are_named_in_full_whatever_the_current_directory_is(self) -> None:
        for field, text in (
            ("ca_file", 'ca_file = "certificates/ca.pem"\n'),
            ("ca_file", 'ca_file = "~ada/ca.pem"\n'),
            ("key.file", 'key = { file = "key" }\n'),
            ("key.file", 'key = { file = "./key" }\n'),
        ):
            words = self.refusal(f"[providers.anthropic]\n{text}")
            self.assertTrue(words.startswith(f"2: providers.anthropic.{field}: "), words)
            self.assertIn("begin it with / or ~/", words)

    def test_values_that_no_start_could_use(self) -> None:
        key = self.path.with_name("key")
        key.write_text("sk-ant-api03-x")
        key.chmod(0o644)
        for text, wanted in (
            (
                '[ssh]\nlisten = ["127.0.0.1", "nonsense"]\n',
                "2: ssh.listen[1]: 'nonsense' is not an address to listen on: give an IP address",
            ),
            ('default_agent = "nobody"\n', "1: default_agent: there is no agent 'nobody': choose one of builtin, "),
            (f'[providers.anthropic]\nkey = {{ file = "{key}" }}\n', "2: providers.anthropic.key.file: others can "),
            (
                '[model]\nbackend = "else"\n',
                "2: model.backend: there is no backend 'else': choose one of anthropic, openai",
            ),
            ('[model]\nbackends = ["google", "x:y"]\n', "2: model.backends[1]: there is no backend 'x:y'"),
            ('[shell]\nbackends = ["subprocess"]\n', "2: shell.backends[0]: the backend subprocess needs a command"),
            (
                '[providers.openai-chat]\nbase_url = "http://example.com/v1"\n',
                "2: providers.openai-chat.base_url: must",
            ),
            ('[providers.x]\nkey = "sk-1"\n', "2: providers.x.key: keys are not allowed in this file: give"),
            ('[providers.x.key]\nvalue = "sk-1"\n', "2: providers.x.key.value: keys are not allowed in this file"),
            ('[accounts.chatgpt]\ntoken = { env = "X" }\n', "2: accounts.chatgpt.token: a token alone does not say"),
            (f'[accounts.claude]\ntoken = {{ file = "{key}" }}\n', "2: accounts.claude.token.file: others can use"),
            (f'[accounts.claude]\nsource = "cli"\nfile = "{key}"\n', "3: accounts.claude.file: others can use"),
            ('[accounts.claude]\nsource = "cli"\nfile = "$X/y"\n', "3: accounts.claude.file: the path $X/y contains"),
        ):
            words = self.refusal(text)
            self.assertTrue(words.startswith(wanted), words)
            self.assertNotIn("sk-1", words)
        key.chmod(0o600)
        self.read(f'default_agent = "codex"\n[providers.anthropic]\nkey = {{ file = "{key}" }}\n')

    def test_an_account_as_which_nothing_can_run(self) -> None:
        with self.assertRaisesRegex(ConfigurationError, "config.toml:2: run_as: (there is no user|only root can)"):
            self.read('version = 1\nrun_as = "nobody here"\n')

    def test_the_environment_is_named_where_it_is_wrong(self) -> None:
        environ = {"IRONCURTAIN_DEFAULT_AGENT": "nobody"}
        error = self.assertRaises(ConfigurationError, read_settings, self.path, environ)
        self.assertIn("environment variable IRONCURTAIN_DEFAULT_AGENT: default_agent: ", str(error))
        error = self.assertRaises(ConfigurationError, read_settings, self.path, {"IRONCURTAIN_MODEL_BACKEND": "x"})
        self.assertIn("there is no backend 'x'", str(error))

    def test_agents_share_what_they_can(self) -> None:
        settings = self.read(
            "[agents]\nturn_seconds = 60\n[agents.claude-code]\nshare = true\n[agents.codex]\nshare = []\n"
        )
        self.assertEqual(settings.agents.turn_seconds, 60)
        self.assertEqual(
            {name: each.share for name, each in settings.agents.named.items()}, {"claude-code": True, "codex": ()}
        )

    def test_share_of_unknown_agents_and_kinds_is_refused(self) -> None:
        for text, said in (
            ("[agents.claude]\nshare = true\n", "there is no agent of this name; there are: claude-code"),
            ('[agents.codex]\nshare = ["skills"]\n', "codex cannot share 'skills', only: commands, memory"),
            ("[agents.codex]\nshares = true\n", "shares"),
            ("[agents.codex]\nshare = 3\n", "share"),
        ):
            self.assertIn(said, self.refusal(text))
