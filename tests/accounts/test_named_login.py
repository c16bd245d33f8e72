from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.named_login import NamedLogin, read_program_login
from ironcurtain.errors import ConfigurationError
from ironcurtain.secrets.redaction import Redactor
from tests.accounts.samples import CANARY, CLAUDE_ACCESS, claude_file


class NamedLoginTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = Path(tempfile.mkdtemp(prefix="ic-accounts-"))
        self.addCleanup(shutil.rmtree, directory)
        self.path = directory / ".credentials.json"
        self.write(claude_file())
        self.redactor = Redactor()

    def write(self, data: bytes) -> None:
        self.path.write_bytes(data)
        self.path.chmod(0o600)

    def login(self) -> NamedLogin:
        return NamedLogin("claude", self.path, "~/.claude/.credentials.json", self.redactor)

    def test_token_is_that_of_the_file(self) -> None:
        login = self.login()
        self.assertEqual(login.current().secret.reveal(), CLAUDE_ACCESS)
        self.assertEqual(login.description, "your Claude subscription (max), from ~/.claude/.credentials.json")
        self.assertIs(login.current(), login.current())

    def test_changed_file_is_read_again(self) -> None:
        login = self.login()
        stale = login.current()
        self.write(claude_file(accessToken=f"{CANARY}-renewed"))
        token = self.successResultOf(Deferred.fromCoroutine(login.refreshed(stale)))
        self.assertEqual(token.secret.reveal(), f"{CANARY}-renewed")
        self.assertEqual(self.redactor.text(f"{CANARY}-renewed"), "[redacted]")

    def test_half_written_or_missing_file_keeps_the_last_token(self) -> None:
        login = self.login()
        self.write(claude_file()[:40])
        self.assertEqual(login.current().secret.reveal(), CLAUDE_ACCESS)
        self.path.unlink()
        self.assertEqual(login.current().secret.reveal(), CLAUDE_ACCESS)
        self.write(claude_file(accessToken="next"))
        self.assertEqual(login.current().secret.reveal(), "next")

    def test_refused_token_names_what_renews_it_and_the_file_stays(self) -> None:
        login, before = self.login(), self.path.stat()
        failed = self.failureResultOf(Deferred.fromCoroutine(login.refreshed(login.current())), ConfigurationError)
        self.assertIn("claude /login", str(failed.value))
        self.assertNotIn(CANARY, str(failed.value))
        after = self.path.stat()
        self.assertEqual((before.st_mtime_ns, before.st_ino), (after.st_mtime_ns, after.st_ino))
        self.assertEqual(os.listdir(self.path.parent), [self.path.name])

    def test_file_behind_a_link_is_read(self) -> None:
        link = self.path.with_name("link.json")
        link.symlink_to(self.path)
        login = NamedLogin("claude", link, "~/link.json", self.redactor)
        self.assertEqual(login.current().secret.reveal(), CLAUDE_ACCESS)

    def test_missing_login_names_the_command_or_the_keychain(self) -> None:
        nowhere = self.path.with_name("none")
        for platform, words in (("linux", "claude /login"), ("darwin", "Keychain of macOS")):
            error = self.assertRaises(ConfigurationError, read_program_login, "claude", nowhere, "~/none", platform)
            self.assertIn(words, str(error))

    def test_file_that_others_can_read_is_refused(self) -> None:
        self.path.chmod(0o644)
        self.assertRaises(ConfigurationError, self.login)
