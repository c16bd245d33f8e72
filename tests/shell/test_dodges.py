"""Denied commands in disguise, and innocent ones that look like them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.verdict import Decision
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.gate import CommandGate
from tests.shell import dodges

DIRECTORY = "/home/ann/project"


def realpath(path: str) -> str:
    """:returns: a path on a machine with one symbolic link."""
    return "/" if path == f"{DIRECTORY}/link-to-root" else path


class DodgeTests(SynchronousTestCase):
    """Everything else is allowed: nothing but the deny patterns and doubts can stop a command."""

    def setUp(self) -> None:
        tables = {"default": "allow", "shell": {"deny_patterns": list(dodges.DENY_PATTERNS)}}
        self.gate = CommandGate(read_approval(tables, "policy.toml", "/home/ann"), (), "/home/ann", realpath)

    def decision(self, command: str) -> Decision:
        return self.gate.judged(command, DIRECTORY).decision

    def test_there_are_enough(self) -> None:
        self.assertEqual(set(dodges.COMMANDS), set(dodges.DENY_PATTERNS))
        self.assertGreater(len(dodges.DENIED) + len(dodges.ASKED), 80)
        self.assertGreater(len(dodges.INNOCENT), 60)

    def test_disguises_are_denied(self) -> None:
        missed = [
            (self.decision(text).value, text)
            for command in dodges.COMMANDS.values()
            for template in dodges.DENIED
            if self.decision(text := dodges.filled(template, command)) is not Decision.DENY
        ]
        self.assertEqual(missed, [])

    def test_what_the_text_does_not_show_is_asked(self) -> None:
        missed = [
            text
            for command in dodges.COMMANDS.values()
            for template in dodges.ASKED
            if self.decision(text := dodges.filled(template, command)) is Decision.ALLOW
        ]
        self.assertEqual(missed, [])

    def test_spellings_of_each_command_are_denied(self) -> None:
        missed = [
            (self.decision(text).value, text)
            for block in dodges.SPECIAL_DENIED.values()
            for text in dodges.lines(block)
            if self.decision(text) is not Decision.DENY
        ]
        self.assertEqual(missed, [])

    def test_unclear_spellings_are_asked(self) -> None:
        missed = [
            text
            for block in dodges.SPECIAL_ASKED.values()
            for text in dodges.lines(block)
            if self.decision(text) is Decision.ALLOW
        ]
        self.assertEqual(missed, [])

    def test_look_alikes_are_not_denied(self) -> None:
        wrong = [
            (text, self.gate.judged(text, DIRECTORY).reason)
            for line in dodges.INNOCENT
            if self.decision(text := line.replace("{n}", "\n")) is Decision.DENY
        ]
        self.assertEqual(wrong, [])

    def test_most_look_alikes_are_not_even_asked(self) -> None:
        asked = [
            text for line in dodges.INNOCENT if self.decision(text := line.replace("{n}", "\n")) is not Decision.ALLOW
        ]
        self.assertEqual(asked, [])
