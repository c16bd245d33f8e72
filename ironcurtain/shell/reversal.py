"""Whether the effects of a command can be undone, as far as its text shows them."""

from __future__ import annotations

from collections.abc import Iterable

from ironcurtain.command_rules import Places, Risk
from ironcurtain.command_rules.classification import is_harmless, is_inside, is_network_file
from ironcurtain.command_rules.directories import moves_unknown
from ironcurtain.command_rules.effect import Effects
from ironcurtain.commandline import CommandLine, SimpleCommand, Word
from ironcurtain.policy.reversal import is_lasting
from ironcurtain.policy.verdict import Reversal
from ironcurtain.shell.messages import ProposedStep


def reversal_of(
    line: CommandLine, found: Iterable[tuple[SimpleCommand, tuple[Effects, ...]]], places: Places, workspace: str
) -> Reversal:
    """
    :param found: the effects of each command of the line.
    :param places: the directories of the line.
    :param workspace: absolute path of the directory whose files snapshots have.
    :returns: the answer, provided that there is a snapshot.
    """
    effects = [(command.name, each) for command, several in found for each in several]
    words = [word for _, each in effects for word in (*each.reads, *each.writes)] + [*line.reads, *line.writes]
    if any(each.addresses or each.risk is Risk.NETWORK for _, each in effects) or any(map(is_network_file, words)):
        return Reversal.REMOTE
    if line.doubts or moves_unknown(line) or any(_is_unknown(name, each) for name, each in effects):
        return Reversal.UNKNOWN
    writes = [word for _, each in effects for word in each.writes] + [*line.writes]
    writes = [word for word in writes if not is_harmless(word)]
    if not all(word.known for word in writes):
        return Reversal.UNKNOWN
    roots = places.forms(Word.literal(workspace))
    within = all(is_inside(word, places, roots) for word in writes)
    return Reversal.READS if not writes else Reversal.SNAPSHOT if within else Reversal.OUTSIDE


def needs_own_decision(step: ProposedStep) -> bool:
    """:returns: whether a step is asked about whose harm could not be undone: to approve its plan is not enough."""
    harmful = step.risk in (Risk.DESTRUCTIVE, Risk.PRIVILEGE) and step.undo in (Reversal.UNKNOWN, Reversal.NO_SNAPSHOT)
    return step.decision == "escalate" and (harmful or is_lasting(step.undo))


def _is_unknown(name: str, each: Effects) -> bool:
    """git can run hooks, and its repository can begin above the directory that it is used in."""
    changes_repository = name == "git" and bool(each.writes)
    destroys_more = each.risk is Risk.DESTRUCTIVE and not each.writes
    return each.risk in (Risk.UNKNOWN, Risk.PRIVILEGE) or each.strays or changes_repository or destroys_more
