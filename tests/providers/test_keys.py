from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import KeySettings
from ironcurtain.providers.keys import real_key
from ironcurtain.secrets.redaction import Secret

the_reactor: Any = _reactor


class RealKeyTests(TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.file = Path(directory.name, "key")

    def key(self, key: KeySettings, provider: str = "anthropic", **environ: str) -> Deferred[Secret]:
        environ = {"PATH": os.environ["PATH"], **environ}
        return Deferred.fromCoroutine(real_key(provider, key, environ, the_reactor))

    async def fails(self, key: KeySettings, **environ: str) -> str:
        running: Deferred[Any] = self.key(key, **environ)
        return str(await self.assertFailure(running, ConfigurationError))

    async def test_from_the_environment(self) -> None:
        self.assertEqual((await self.key(KeySettings(env="MINE"), MINE=" sk-1\n")).reveal(), "sk-1")
        for provider, variable in (
            ("anthropic", "ANTHROPIC_API_KEY"),
            ("openai", "OPENAI_API_KEY"),
            ("google", "GEMINI_API_KEY"),
            ("google", "GOOGLE_API_KEY"),
        ):
            self.assertEqual((await self.key(KeySettings(), provider, **{variable: "sk-2"})).reveal(), "sk-2")

    async def test_from_a_file_that_is_ones_own(self) -> None:
        self.file.write_text("sk-3\n")
        self.file.chmod(0o600)
        self.assertEqual((await self.key(KeySettings(file=str(self.file)))).reveal(), "sk-3")
        self.file.chmod(0o640)
        self.assertIn("chmod 600", await self.fails(KeySettings(file=str(self.file))))

    async def test_from_a_file_of_another_system(self) -> None:
        self.file.write_bytes("sk-3\r\n".encode("utf-8-sig"))
        self.file.chmod(0o600)
        self.assertEqual((await self.key(KeySettings(file=str(self.file)))).reveal(), "sk-3")
        self.file.write_bytes("sk-3\r\n".encode("utf-16"))
        self.assertIn("UTF-16", await self.fails(KeySettings(file=str(self.file))))

    async def test_from_a_command_without_a_shell(self) -> None:
        self.assertEqual((await self.key(KeySettings(command="printf '%s' 'sk-$HOME'"))).reveal(), "sk-$HOME")
        self.assertEqual((await self.key(KeySettings(command="printenv MINE"), MINE="sk-4")).reveal(), "sk-4")

    async def test_what_is_no_key(self) -> None:
        for key, wanted in (
            (KeySettings(), "set ANTHROPIC_API_KEY, or set env, command or file here"),
            (KeySettings(env="MINE"), "set MINE"),
            (KeySettings(env="SPACES"), "the value of the environment variable SPACES is not a key"),
            (KeySettings(file="/no/such/file"), "cannot read"),
            (KeySettings(command="false"), "ended with status 1"),
            (KeySettings(command="echo 'a b'"), "the value of the command \"echo 'a b'\" is not a key"),
            (KeySettings(command="echo '"), "No closing quotation"),
            (KeySettings(command=" "), "is not a command"),
        ):
            message = await self.fails(key, SPACES="a b")
            self.assertIn(wanted, message)
            self.assertIn("config.toml: providers.anthropic.key: ", message)
