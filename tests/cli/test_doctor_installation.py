from __future__ import annotations

import os

from ironcurtain.cli.doctor_installation import daemon, interpreter
from ironcurtain.cli.findings import OK, WRONG
from ironcurtain.home.layout import find_home
from ironcurtain.process.own_programs import daemon_command
from tests.cli.test_commands import CommandCase
from twisted import plugins


class InstallationTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.where = find_home(self.environ, os.getuid())

    def test_interpreter_is_named_by_a_path_that_can_be_run(self) -> None:
        (finding,) = interpreter(self.where)
        self.assertEqual((finding.state, os.access(finding.detail, os.X_OK)), (OK, True), finding)

    def test_command_of_the_daemon_is_that_of_this_installation(self) -> None:
        (finding,) = daemon(self.where)
        self.assertEqual(finding.state, OK)
        self.assertIn(f"start it with: {daemon_command()})", finding.detail)

    def test_missing_plugin_is_wrong_with_the_words_for_pip(self) -> None:
        self.patch(plugins, "__path__", [])
        (finding,) = daemon(self.where)
        self.assertEqual(finding.state, WRONG)
        self.assertIn("--config-settings editable_mode=compat", finding.mend)
