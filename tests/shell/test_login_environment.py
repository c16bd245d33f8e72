"""The environment of a login shell: what desktops, CI systems, editors and containers set changes no answer."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.secrets.redaction import Redactor
from ironcurtain.shell.scrubbing import Scrubber
from tests.login import HARMLESS, login_environ


class LoginEnvironmentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="my project "))
        self.addCleanup(shutil.rmtree, self.place)
        self.environ = login_environ(self.place)
        values = "\n".join(self.environ.values())
        self.text = f"directory: {self.place}\n{self.place}/src/main.py:3: error\n{values}\n"

    def test_no_variable_alone_hides_text(self) -> None:
        for name, value in self.environ.items():
            self.assertEqual(Scrubber(Redactor(), {name: value}).text(self.text), self.text, name)

    def test_all_variables_together_hide_nothing(self) -> None:
        self.assertEqual(Scrubber(Redactor(), self.environ).text(self.text), self.text)

    def test_records_keep_the_paths(self) -> None:
        for name in ("PWD", "pwd", "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "PASSWORD_STORE_DIR"):
            record = {name: self.environ.get(name, str(self.place))}
            self.assertEqual(Redactor().value(record), record, name)

    @given(st.lists(st.sampled_from(sorted(HARMLESS)), unique=True))
    def test_secrets_beside_them_stay_hidden(self, names: list[str]) -> None:
        environ = {name: self.environ[name] for name in names}
        secrets = {
            "MY_TOKEN": "opensesame-4711",
            "DB_PASSWORD": "/not/a/path/but/a/password",
            "PGPASSWORD": "hunter2hunter2",
        }
        scrubber = Scrubber(Redactor(), {**environ, **secrets})
        for name, value in secrets.items():
            self.assertNotIn(value, scrubber.text(f"printed {value} here"), name)
