"""In which of three ways an iteration runs. Pure."""

from __future__ import annotations

from enum import StrEnum

from ironcurtain.errors import UsageError


class Mode(StrEnum):
    """How the agent is run."""

    HEADLESS = "headless"
    """With pipes: the prompt on its standard input, its output as it comes."""

    INTERACTIVE = "interactive"
    """In a terminal, with the keys of the person who looks at it."""

    OBSERVE = "observe"
    """In a terminal that only shows: the agent's input is at its end."""


def choose(
    pty_mode: bool, pty_interactive: bool, *, pty: bool = False, observe: bool = False, no_pty: bool = False
) -> Mode:
    """
    :param pty_mode: the setting, as is ``pty_interactive``.
    :param pty: the flag ``--pty``; so are ``observe``, which implies it, and ``no_pty``.
    :raises UsageError: the flags contradict each other.
    """
    if no_pty and (pty or observe):
        raise UsageError(f"give either --no-pty or {'--observe' if observe else '--pty'}")
    if no_pty or not (pty or observe or pty_mode):
        return Mode.HEADLESS
    return Mode.OBSERVE if observe or not (pty or pty_interactive) else Mode.INTERACTIVE
