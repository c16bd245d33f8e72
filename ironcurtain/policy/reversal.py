"""Whether a call can be undone, in words: the same at every prompt."""

from __future__ import annotations

from collections.abc import Mapping

from ironcurtain.policy.verdict import Reversal

_WORDS: Mapping[str, str] = {
    Reversal.SNAPSHOT: "can be undone with 'ironcurtain undo'",
    Reversal.READS: "changes nothing: the agent knows what it has read",
    Reversal.NO_SNAPSHOT: "cannot be undone: there is no snapshot of the workspace",
    Reversal.OUTSIDE: "cannot be undone: changes files outside the workspace",
    Reversal.REMOTE: "cannot be undone: leaves this machine",
    Reversal.DESKTOP: "cannot be undone: operates an application",
    Reversal.UNKNOWN: "cannot be undone: its effects are not known",
}

_LASTING = frozenset((Reversal.OUTSIDE, Reversal.REMOTE, Reversal.DESKTOP))


def is_lasting(undo: str) -> bool:
    """
    :param undo: as for :func:`undo_words`.
    :returns: whether it is known to change what no snapshot could have.
    """
    return undo in _LASTING


def undo_words(undo: str) -> str:
    """
    :param undo: value of a :class:`~ironcurtain.policy.verdict.Reversal`; one of a newer version means unknown effects.
    :returns: whether a call or a command can be undone.
    """
    return _WORDS.get(undo, _WORDS[Reversal.UNKNOWN])
