from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from click.testing import CliRunner

from ironcurtain.cli.doctor_keys import github, models
from ironcurtain.cli.findings import Finding
from ironcurtain.home.layout import Home, find_home
from tests.cli.test_commands import CommandCase

Check = Callable[[Home], Iterator[Finding]]


class KeyTests(CommandCase):
    def findings(self, check: Check) -> list[Finding]:
        """:returns: what the doctor finds, without all else that it looks at."""
        with CliRunner().isolation(env=self.environ):
            return list(check(find_home(self.environ, os.getuid())))

    def said_of(self, check: Check) -> tuple[str, str]:
        """:returns: state and advice of the only finding."""
        (found,) = self.findings(check)
        return found.state, found.mend

    def test_the_advice_fits_where_the_key_comes_from(self) -> None:
        self.home.mkdir(mode=0o700)
        (self.person / "my key").write_text("sk-ant-api03-key")
        (self.person / "my key").chmod(0o600)
        for key, wanted in (
            ('env = "MY_KEY"', ("hint", "Set it: export MY_KEY=...")),
            ('file = "~/my key"', ("ok", "")),
            ('file = "~/k"', ("hint", f"Write it there, readable by you only: (umask 077; cat > {self.person}/k)")),
            ('command = "no-such-program x"', ("hint", "Install it, or mend providers.anthropic.key in config.toml")),
            ('command = "pass \'x"', ("wrong", "Mend providers.anthropic.key in config.toml")),
            ('command = "cat x"', ("ok", "")),
        ):
            (self.home / "config.toml").write_text(f"[providers.anthropic]\nkey = {{ {key} }}\n")
            self.assertEqual(self.said_of(models), wanted, key)

    def test_a_model_behind_a_command_needs_its_program(self) -> None:
        self.home.mkdir(mode=0o700)
        for command, state in (("cat -", "ok"), ("no-such-model run", "hint"), ("", "hint"), ("cat 'x", "wrong")):
            (self.home / "config.toml").write_text(f'[model]\nbackend = "subprocess"\ncommand = "{command}"\n')
            self.assertEqual(self.said_of(models)[0], state, command)

    def test_each_model_of_a_list_is_looked_at(self) -> None:
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(
            '[model]\nbackends = ["google", "openai-chat:llama3"]\n'
            '[providers.openai-chat]\nbase_url = "http://127.0.0.1:11434/v1"\n'
        )
        self.environ["GOOGLE_API_KEY"] = "AIza-0"
        found = [finding.detail for finding in self.findings(models)]
        local = "openai-chat, without a key, at http://127.0.0.1:11434/v1"
        self.assertEqual(found, ["google, key from GOOGLE_API_KEY", local])

    def test_token_for_github(self) -> None:
        self.home.mkdir(mode=0o700)
        token, empty = self.person / "token", self.person / "empty"
        token.write_text("ghp_token")
        empty.touch()
        for file in (token, empty):
            file.chmod(0o600)
        write = "Write it there, readable by you only: (umask 077; cat > "
        for source, wanted in (
            (f'{{ file = "{token}" }}', ("ok", "")),
            (f'{{ file = "{empty}" }}', ("hint", f"{write}{empty})")),
            (f'{{ file = "{self.person}/none" }}', ("hint", f"{write}{self.person}/none)")),
            ('{ env = "MY_TOKEN" }', ("hint", "Set it: export MY_TOKEN=...")),
            ('{ command = "no-such-program x" }', ("hint", "Install it, or mend github.token in config.toml")),
            ("{}", ("hint", "Set github.token in config.toml")),
        ):
            (self.home / "config.toml").write_text(f'[github]\ntoken = {source}\nrepositories = ["me/shop"]\n')
            self.assertEqual(self.said_of(github), wanted, source)
        (self.home / "config.toml").write_text("")
        self.assertEqual(self.findings(github), [])


class FileTests(CommandCase):
    def test_files_that_others_can_read_hold_no_secret(self) -> None:
        self.home.mkdir(mode=0o700)
        key = self.person / "key"
        key.write_text("me:secret")
        source = f'{{ file = "{key}" }}'
        for setting, text in (
            ("providers.google.key.file", f"[providers.google]\nkey = {source}\n"),
            ("accounts.claude.token.file", f"[accounts.claude]\ntoken = {source}\n"),
            ("accounts.chatgpt.file", f'[accounts.chatgpt]\nsource = "cli"\nfile = "{key}"\n'),
            ("registries.npm.key.file", f'[registries.npm]\nurl = "https://npm.example/"\nkey = {source}\n'),
            ("network.proxy_password.file", f'[network]\nproxy = "http://me@p.example:1"\nproxy_password = {source}\n'),
            ("github.token.file", f"[github]\ntoken = {source}\n"),
            ("audit.witness_key_file", f'[audit]\nwitness = ["https://w.example/"]\nwitness_key_file = "{key}"\n'),
        ):
            (self.home / "config.toml").write_text(text)
            key.chmod(0o604)
            done = self.run_command("config", "check")
            self.assertEqual(done.exit_code, 78, setting)
            self.assertIn(f"{setting}: others can use the key in {key}: chmod 600 {key}", done.output)
            key.chmod(0o600)
            done = self.run_command("config", "check")
            self.assertEqual(done.exit_code, 0, done.output)

    def test_certificates_that_cannot_be_used(self) -> None:
        self.home.mkdir(mode=0o700)
        file = self.person / "ca.pem"
        file.write_text("no certificate")
        for setting, text in (
            ("providers.google.ca_file", '[providers.google]\nca_file = "FILE"\n'),
            ("registries.npm.ca_file", '[registries.npm]\nurl = "https://npm.example/"\nca_file = "FILE"\n'),
            ("network.proxy_ca_file", '[network]\nproxy = "https://p.example:1"\nproxy_ca_file = "FILE"\n'),
            ("audit.witness_ca_file", '[audit]\nwitness = ["https://w.example/"]\nwitness_ca_file = "FILE"\n'),
        ):
            for path, why in ((file, "contains no PEM certificate"), (self.person / "none", "cannot be read: No such")):
                (self.home / "config.toml").write_text(text.replace("FILE", str(path)))
                done = self.run_command("config", "check")
                self.assertEqual(done.exit_code, 78, setting)
                self.assertIn(f"config.toml:{text.count(chr(10))}: {setting}: {path} {why}", done.output)
