"""The ids of agent programs, as lists show them, for what needs no more of agents: importing them all is slow."""

from __future__ import annotations

from collections.abc import Iterable

OWN_AGENTS = ("claude-code", "codex", "gemini", "goose", "opencode")
"""The agent programs of IronCurtain."""

UNTESTED = frozenset(("goose",))
"""Those that were never run with their real program."""

UNTESTED_MARK = "untested"
"""What every list says of these."""


def marked(agent: str, shown: str = "") -> str:
    """
    :param agent: an id.
    :param shown: what stands in the list, if not the id.
    :returns: the entry of a list of agents.
    """
    return f"{shown or agent} ({UNTESTED_MARK})" if agent in UNTESTED else shown or agent


def listed(agents: Iterable[str]) -> str:
    """:returns: a list of agents within a sentence."""
    return ", ".join(map(marked, agents))
