"""
Approvals of a whole category of steps, until the session ends.

A category has only steps whose text shows all that they do, and about which nothing but the tables of the policy asks:
no step that a structural rule, a deny list, a hook or an unknown command makes doubtful is in any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ironcurtain.command_rules import Risk
from ironcurtain.command_rules.effects import effects
from ironcurtain.commandline import read_command
from ironcurtain.policy.verdict import Decision, Reversal
from ironcurtain.shell.messages import ProposedStep, StepKind
from ironcurtain.shell.tools import JudgedStep

WORDS: Final[Mapping[Risk, str]] = {
    Risk.READ: "every step that only reads files",
    Risk.WRITE_INSIDE: "every step that writes files below the directory of this session, none of them hidden, and "
    "deletes nothing",
    Risk.NETWORK: "every step that reaches hosts, and uses no files",
}
"""The categories, and what an approval of each covers."""

_TABLES: Final = frozenset(
    (
        "approval.default",
        "approval.shell.mode",
        "approval.filesystem.mode",
        "approval.filesystem.read",
        "approval.filesystem.write",
        "approval.network.mode",
        "approval.network.allow_hosts",
    )
)
"""The rules that ask because nothing more special is said."""

_INSIDE: Final = frozenset((Reversal.SNAPSHOT, Reversal.NO_SNAPSHOT))
"""What the text of a step shows that writes below the directory of the session only."""

_FILES: Final = frozenset(("read-path", "write-path"))


def category_of(judged: JudgedStep) -> Risk | None:
    """:returns: the category that an approval of a step may cover; ``None``: it can be in none."""
    verdict, risk = judged.verdict, judged.risk
    if judged.step.kind not in (StepKind.COMMAND, StepKind.EDIT) or risk not in WORDS:
        return None
    if verdict.decision is not Decision.ESCALATE or not {verdict.rule, *verdict.asking} <= _TABLES:
        return None
    if _obeys_files(judged.step):
        return None
    files = any(resource.role in _FILES for resource in verdict.resources)
    # What programs obey unasked is there: ".git/config", ".bashrc", ".envrc".
    hidden = any("/." in resource.value for resource in verdict.resources if resource.role == "write-path")
    fits = {
        Risk.READ: verdict.reversal is Reversal.READS,
        Risk.WRITE_INSIDE: verdict.reversal in _INSIDE and not hidden and _names_its_files(judged.step),
        Risk.NETWORK: not files,
    }
    return risk if fits[risk] else None


def _names_its_files(step: ProposedStep) -> bool:
    """:returns: whether no file comes along in a directory, or out of an archive."""
    if step.kind is not StepKind.COMMAND:
        return True
    found = (each for command in read_command(step.command).commands for each in effects(command))
    return not any(each.writes and (each.wholes or each.fills or each.reads_trees) for each in found)


def _obeys_files(step: ProposedStep) -> bool:
    """
    :returns: whether it uses git, which runs programs that a repository's settings name even for "git status", and
        takes a directory for a repository if four plain names are in it.
    """
    if step.kind is not StepKind.COMMAND:
        return False
    levels = (words for command in read_command(step.command).commands for words in command.levels)
    return any(words[0].text.rpartition("/")[2] == "git" for words in levels)
