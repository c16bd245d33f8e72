from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.accounts.keys import open_key
from ironcurtain.accounts.source import FixedToken
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import KeySettings

the_reactor: Any = reactor


class FetchedTests(TestCase):
    """Keys that are fetched again when the provider refuses them."""

    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.file = self.top / "key"
        self.write("CANARY-one")

    def write(self, key: str) -> None:
        """Change the key."""
        self.file.write_text(key + "\n")
        self.file.chmod(0o600)

    async def test_new_key_of_a_file_or_command_is_used(self) -> None:
        for source in (KeySettings(file=str(self.file)), KeySettings(command=f"cat {self.file}")):
            self.write("CANARY-one")
            account = await open_key("vertex", source, os.environ, the_reactor)
            old = account.current()
            self.write("CANARY-two")
            new = await account.refreshed(old)
            self.assertEqual((old.secret.reveal(), new.secret.reveal()), ("CANARY-one", "CANARY-two"))
            self.assertIs(await account.refreshed(old), new, "it was renewed already")
            self.assertNotIn("CANARY", account.description)

    async def test_same_key_again_is_refused(self) -> None:
        account = await open_key("vertex", KeySettings(file=str(self.file)), os.environ, the_reactor)
        error = await self.assertFailure(self.renew(account), ConfigurationError)
        self.assertIn("is not accepted", str(error))
        self.assertNotIn("CANARY", str(error))

    def renew(self, account: Any) -> Any:
        """:returns: the renewal."""
        return Deferred.fromCoroutine(account.refreshed(account.current()))

    async def test_key_of_the_environment_stays(self) -> None:
        account = await open_key("anthropic", KeySettings(), {"ANTHROPIC_API_KEY": "k"}, the_reactor)
        self.assertIsInstance(account, FixedToken)

    async def test_token_of_a_subscription_is_no_key(self) -> None:
        self.write("sk-ant-oat01-CANARY")
        with self.assertRaises(ConfigurationError) as caught:
            await open_key("anthropic", KeySettings(file=str(self.file)), os.environ, the_reactor)
        self.assertIn("CLAUDE_CODE_OAUTH_TOKEN", str(caught.exception))
        self.assertNotIn("CANARY", str(caught.exception))
