from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.kept import KeptLogins
from ironcurtain.accounts.login import Login
from ironcurtain.accounts.source import ACCOUNT_ID
from ironcurtain.errors import ConfigurationError, NotFound
from ironcurtain.secrets.redaction import Secret
from tests.accounts.samples import CANARY

tokens = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30).map(Secret)


class KeptLoginTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-accounts-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.logins = KeptLogins(self.directory / "accounts")
        self.file = self.logins.of("claude")
        self.file.lock()

    @given(tokens, st.none() | tokens, st.none() | st.floats(0, 1e10), st.text(max_size=9))
    def test_login_is_read_as_it_was_written(
        self, access: Secret, refresh: Secret | None, expires: float | None, owner: str
    ) -> None:
        login = Login("chatgpt", access, refresh, expires, {ACCOUNT_ID: access}, owner, "plus", expires)
        self.file.write(login)
        self.assertEqual(self.file.read(), login)

    def test_only_the_owner_can_read_it_and_its_directory(self) -> None:
        self.file.write(Login("claude", Secret(CANARY)))
        self.assertEqual(stat.S_IMODE(self.file.path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.file.path.parent.stat().st_mode), 0o700)

    def test_file_that_others_can_read_is_refused(self) -> None:
        self.file.write(Login("claude", Secret(CANARY)))
        self.file.path.chmod(0o644)
        self.assertIn("chmod 600", str(self.assertRaises(ConfigurationError, self.file.read)))

    def test_link_is_refused(self) -> None:
        (self.directory / "elsewhere").write_bytes(b"{}")
        os.symlink(self.directory / "elsewhere", self.file.path)
        self.assertRaises(ConfigurationError, self.file.read)

    def test_damaged_files_are_refused_without_their_content(self) -> None:
        good = {"version": 1, "kind": "claude", "access": CANARY, "refresh": None, "expires": None, "extra": {}}
        whole = {**good, "owner": "", "plan": ""}
        for changes in (
            {"access": f"{CANARY}\n"},
            {"kind": CANARY},
            {"extra": {"a": f"{CANARY} b"}},
            {"owner": [CANARY]},
        ):
            self.file.path.write_text(json.dumps({**whole, **changes}))
            self.file.path.chmod(0o600)
            error = self.assertRaises(ConfigurationError, self.file.read)
            self.assertIn("is damaged", str(error))
            self.assertNotIn(CANARY, str(error))
        for data in (b"", b"\xff", b"[]", b"[" * 10_000):
            self.file.path.write_bytes(data)
            self.assertRaises(ConfigurationError, self.file.read)

    def test_newer_format_is_refused(self) -> None:
        self.file.write(Login("claude", Secret(CANARY)))
        self.file.path.write_text(self.file.path.read_text().replace('"version": 1', '"version": 2'))
        self.assertIn("newer", str(self.assertRaises(ConfigurationError, self.file.read)))

    def test_missing_login_is_reported(self) -> None:
        self.assertRaises(NotFound, self.logins.of("copilot").read)
