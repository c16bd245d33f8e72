"""What an approval for the session covers: the same command in the same directory, and nothing else."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.permission import Scope, make_scope
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.commands import RUN_TOOL
from ironcurtain.shell.gate import CommandGate

HOME = "/home/ann"
HERE = f"{HOME}/project"


def scope(command: str, directory: str = HERE) -> Scope | None:
    """:returns: what an approval of a command covers."""
    gate = CommandGate(
        read_approval({"shell": {"mode": "ask"}}, "policy.toml", HOME), (), HOME, lambda path: path, HOME
    )
    return make_scope(
        RUN_TOOL.server,
        RUN_TOOL.name,
        gate.judged(command, directory),
        definition=RUN_TOOL.digest,
        schema=RUN_TOOL.schema,
        policy_version="1",
        home=HOME,
        is_directory=lambda path: False,
        shown=str,
    )


class ScopeTests(SynchronousTestCase):
    """Of commands that the policy asks about."""

    def test_the_same_command_is_covered(self) -> None:
        kept, again = scope("touch a"), scope("touch a")
        assert kept is not None and again is not None
        self.assertTrue(kept.covers(again))

    def test_nothing_else_is(self) -> None:
        kept = scope("touch a")
        assert kept is not None
        for other in (scope("touch b"), scope("rm -rf a"), scope("touch a b"), scope("touch a", "/tmp")):
            assert other is not None
            self.assertFalse(kept.covers(other), other)

    def test_a_program_that_is_not_known_can_be_kept(self) -> None:
        kept = scope("make test")
        assert kept is not None
        self.assertFalse(kept.covers(scope("make clean") or kept))

    def test_what_is_not_understood_is_asked_about_each_time(self) -> None:
        self.assertIsNone(scope("$x a"))
