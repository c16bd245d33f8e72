"""Whether a command can be undone, as far as its text shows it."""

from __future__ import annotations

from hypothesis import given
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Risk
from ironcurtain.policy.verdict import Reversal
from tests.commandline.strategies import lines
from tests.shell.test_gate import HERE, gate


class CommandReversalTests(SynchronousTestCase):
    def check(self, reversal: Reversal, *commands: str, directory: str = HERE) -> None:
        for command in commands:
            self.assertIs(gate({}).judged(command, directory).reversal, reversal, command)

    def test_files_in_the_workspace(self) -> None:
        self.check(Reversal.SNAPSHOT, "echo x > a", "rm -rf src", "mv a b", "cd src && touch y", "cp a inside/x")
        self.check(Reversal.SNAPSHOT, f"rm {HERE}/a", directory="/tmp")

    def test_files_elsewhere_also_by_links_one_is_enough(self) -> None:
        self.check(Reversal.OUTSIDE, "mv a /tmp", "rm ../x", "cp a out/x", "touch a; touch ~/b", "dd if=a of=/dev/sda")
        self.check(Reversal.OUTSIDE, "touch a", directory="/tmp")

    def test_what_only_reads(self) -> None:
        self.check(Reversal.READS, "ls", "cat a > /dev/null", "git status")

    def test_what_leaves_this_machine(self) -> None:
        self.check(Reversal.REMOTE, "curl http://x.example", "git push", "echo x > /dev/tcp/a/1", "rm a; git fetch")

    def test_what_the_text_does_not_show(self) -> None:
        self.check(Reversal.UNKNOWN, "sudo rm a", "make", "echo x > $X", "cd $A; touch y", "kill 3", "xargs rm < list")

    def test_repositories_may_begin_elsewhere_and_have_hooks(self) -> None:
        self.check(Reversal.UNKNOWN, "git commit -m x", "git reset --hard")

    @given(lines)
    def test_nothing_can_be_undone_whose_effects_are_not_known(self, line: str) -> None:
        found, risk = gate({}).judged(line, HERE).reversal, gate({}).risk(line, HERE)
        if found is Reversal.SNAPSHOT:
            self.assertIn(risk, (Risk.WRITE_INSIDE, Risk.DESTRUCTIVE))
