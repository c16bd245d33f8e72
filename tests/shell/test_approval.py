"""The tables ``[approval]`` of a policy."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.configuration import check_files
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import find_home
from ironcurtain.home.parsing import parse_toml
from ironcurtain.policy.verdict import Decision
from ironcurtain.shell.approval import Approval, read_approval

EVERYTHING = """
[approval]
default = "ask"

[approval.shell]
mode = "allow"
deny_patterns = ["rm -rf /", "sudo *", "chmod 777 *", "curl * | sh"]
allow_patterns = ["git *", "make"]

[approval.filesystem]
mode = "allow"
read = ["$CWD/**", "$HOME/Documents/**", "/usr/**"]
write = ["$CWD/**", "~/x"]
deny = ["$HOME/.ssh/**", "$HOME/.gnupg/**"]

[approval.vision]
screenshot = "allow"
ui_tree = "allow"

[approval.audio]
microphone = "ask"
system_audio = "allow"
speech_to_text = "allow"

[approval.ui]
mode = "ask"
allow_apps = ["Terminal", "Firefox"]

[approval.network]
mode = "deny"
allow_hosts = ["api.github.com", "*.internal.corp"]
"""


def read(text: str) -> Approval:
    """:returns: the tables in a text."""
    return read_approval(parse_toml("policy.toml", text).get("approval", {}), "policy.toml", "/home/ann", text)


class ApprovalTests(SynchronousTestCase):
    """:func:`read_approval`"""

    def refusal(self, text: str) -> str:
        """:returns: what is wrong, from the line on."""
        return str(self.assertRaises(ConfigurationError, read, text)).removeprefix("policy.toml:")

    def test_no_tables_ask_about_everything(self) -> None:
        approval = read("")
        self.assertEqual((approval.deny, approval.allow), ((), ()))
        for table in ("shell", "filesystem", "network"):
            self.assertEqual(approval.mode(table), (Decision.ESCALATE, "approval.default"))

    def test_all_tables(self) -> None:
        approval = read(EVERYTHING)
        self.assertEqual([pattern.text for pattern in approval.deny][1], "sudo *")
        self.assertEqual([len(pattern.commands) for pattern in approval.deny], [1, 1, 1, 2])
        self.assertEqual(approval.mode("shell"), (Decision.ALLOW, "approval.shell.mode"))
        self.assertEqual(approval.mode("network"), (Decision.DENY, "approval.network.mode"))
        self.assertEqual(approval.tables.vision.screenshot, "allow")
        self.assertEqual(approval.tables.ui.allow_apps, ("Terminal", "Firefox"))
        self.assertEqual(read('[approval]\ndefault = "allow"').mode("shell"), (Decision.ALLOW, "approval.default"))

    def test_mistakes_name_line_and_field(self) -> None:
        for text, said in (
            ('[approval]\ndefualt = "ask"', "2: approval.defualt: there is no such setting"),
            ('[approval]\ndefault = "no"', '2: approval.default: must be one of "allow", "ask", "deny"'),
            ("[approval.sell]\n", "1: approval.sell: there is no such setting"),
            ('[approval.shell]\nmode = "allow"\ndeny = []', "3: approval.shell.deny: there is no such setting"),
            ('[approval.shell]\ndeny_patterns = "x"', "2: approval.shell.deny_patterns: "),
            ('[approval.shell]\ndeny_patterns = ["ls", ""]', "2: approval.shell.deny_patterns[1]: it has no command"),
            ('[approval.shell]\nallow_patterns = ["ls $x"]', "2: approval.shell.allow_patterns[0]: it can have no var"),
            ('[approval.shell]\ndeny_patterns = ["ls; rm"]', "2: approval.shell.deny_patterns[0]: write one pattern"),
            ('[approval.shell]\ndeny_patterns = ["ls > x"]', "2: approval.shell.deny_patterns[0]: write redirections"),
            ('[approval.shell]\ndeny_patterns = ["ls ("]', "2: approval.shell.deny_patterns[0]: it is more than"),
            ('[approval.filesystem]\nread = ["src/**"]', "2: approval.filesystem.read[0]: begin it with /, ~,"),
            ('[approval.filesystem]\ndeny = ["$CWDX"]', "2: approval.filesystem.deny[0]: begin it with /, ~,"),
            ('[approval.filesystem]\ndeny = ["~/{a,b}/**"]', "2: approval.filesystem.deny[0]: braces are not expanded"),
            ('[approval.filesystem]\ndeny = ["~/a/../b"]', "2: approval.filesystem.deny[0]: it contains .."),
            ('[approval.filesystem]\ndeny = ["/home/$USER/x"]', "2: approval.filesystem.deny[0]: the variable $USER"),
            (
                '[approval.filesystem]\nread = ["/workspace/**"]',
                "2: approval.filesystem.read[0]: /workspace is known in",
            ),
            ('[approval.filesystem]\nwrite = ["~/a\\u200bb"]', "2: approval.filesystem.write[0]: it has invisible"),
            (
                '[approval.network]\nallow_hosts = ["http://x"]',
                "2: approval.network.allow_hosts[0]: write the host with",
            ),
            ('[approval.ui]\nallow_hosts = ["x"]', "2: approval.ui.allow_hosts: there is no such setting"),
            ("[approval.vision]\nscreenshot = true", "2: approval.vision.screenshot: "),
        ):
            refusal = self.refusal(text)
            self.assertTrue(refusal.startswith(said), refusal)

    def test_the_checker_of_configuration_finds_them(self) -> None:
        directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, directory)
        home = find_home({"IRONCURTAIN_HOME": str(directory), "HOME": str(directory)}, os.geteuid())
        home.policy.write_text('version = 1\n\n[approval.shell]\nmode = "maybe"\n')
        (error,) = [
            str(found.error) for found in check_files(home, {"HOME": str(directory)}) if found.error is not None
        ]
        self.assertEqual(error, f'{home.policy}:4: approval.shell.mode: must be one of "allow", "ask", "deny"')
        home.policy.write_text(EVERYTHING)
        self.assertEqual({found.error for found in check_files(home, {"HOME": str(directory)})}, {None})
