"""Denied commands in disguise, and innocent ones that look like them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.verdict import Decision
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.gate import CommandGate
from tests.shell.dodges import COMMANDS, disguises, examples

HOME = "/home/ann"
DIRECTORY = f"{HOME}/project"


def realpath(path: str) -> str:
    """:returns: a path on a machine with one symbolic link."""
    return "/" if path == f"{DIRECTORY}/link-to-root" else path


class DodgeTests(SynchronousTestCase):
    """Everything else is allowed: nothing but the deny patterns and doubts can stop a command."""

    def setUp(self) -> None:
        tables = {"default": "allow", "shell": {"deny_patterns": list(COMMANDS)}}
        self.gate = CommandGate(read_approval(tables, "policy.toml", HOME), (), HOME, realpath, HOME)

    def others(self, commands: list[str], *expected: Decision) -> list[str]:
        """:returns: the commands about which something else is decided, with the reason."""
        verdicts = ((command, self.gate.judged(command, DIRECTORY)) for command in commands)
        return [f"{command}: {found.reason}" for command, found in verdicts if found.decision not in expected]

    def test_there_are_enough_examples(self) -> None:
        self.assertGreater(len(examples("denied")) + len(examples("asked")), 170)
        self.assertGreater(len(examples("spellings-denied")) + len(examples("spellings-asked")), 150)
        self.assertGreater(len(examples("innocent")), 75)

    def test_disguises_are_denied(self) -> None:
        self.assertEqual(self.others(disguises("denied"), Decision.DENY), [])

    def test_what_the_text_does_not_show_is_asked(self) -> None:
        self.assertEqual(self.others(disguises("asked"), Decision.ESCALATE, Decision.DENY), [])

    def test_other_spellings_are_denied(self) -> None:
        self.assertEqual(self.others(examples("spellings-denied"), Decision.DENY), [])

    def test_unclear_spellings_are_asked(self) -> None:
        self.assertEqual(self.others(examples("spellings-asked"), Decision.ESCALATE), [])

    def test_look_alikes_are_allowed(self) -> None:
        self.assertEqual(self.others(examples("innocent"), Decision.ALLOW), [])


class ElsewhereTests(SynchronousTestCase):
    """Commands are allowed, but other files, hosts and programs than those of the tables are not."""

    def test_what_the_tables_do_not_allow_is_not_allowed(self) -> None:
        tables = {
            "shell": {"mode": "allow", "deny_patterns": ["sudo *", "rm -rf /*", "shutdown *"]},
            "filesystem": {
                "mode": "allow",
                "read": ["$CWD/**"],
                "write": ["$CWD/**", "/tmp/*"],
                "deny": ["/etc/shadow"],
            },
            "network": {"mode": "deny", "allow_hosts": ["api.github.com"]},
        }
        approval = read_approval(tables, "policy.toml", HOME)
        protected, count = (f"{HOME}/.ssh", f"{HOME}/.ironcurtain"), 0
        for shell, name in (("bash", "elsewhere"), ("zsh", "elsewhere-zsh"), ("fish", "elsewhere-fish")):
            gate = CommandGate(approval, protected, HOME, realpath, DIRECTORY, shell)
            commands = examples(name)
            count += len(commands)
            allowed = [each for each in commands if gate.judged(each, DIRECTORY).decision is Decision.ALLOW]
            self.assertEqual(allowed, [], shell)
        self.assertGreater(count, 800)
