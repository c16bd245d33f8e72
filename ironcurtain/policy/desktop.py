"""
What no rule can allow on the desktop: input to a terminal emulator is asked, since a shell in it does what it is told.

The server refuses such input unless the call says ``terminal``, so that the question and the act agree.
"""

from __future__ import annotations

from typing import Final

from ironcurtain.policy.judgement import Judgement, Ruling, combined
from ironcurtain.policy.scalars import truthy
from ironcurtain.policy.verdict import Automatic, Decision

SERVER: Final = "desktop"
"""The name under which policies know IronCurtain's server for the desktop."""

TERMINAL: Final = "terminal"
"""The argument that says that an application runs commands."""

TERMINAL_RULE: Final = "structural-terminal-input"
"""Asks about input to an application that runs commands."""


def decide(judgement: Judgement, ruling: Ruling) -> Ruling:
    """:returns: the ruling of the rules about a call of this server, or the question that precedes it."""
    if not truthy(judgement.arguments.get(TERMINAL)) or ruling.decision is Decision.DENY:
        return ruling
    reason = f"{judgement.arguments.get('app')} runs commands, and no rule for commands would judge what is typed there"
    judgement.note(TERMINAL_RULE, "escalate", reason)
    judgement.asking.append(TERMINAL_RULE)
    judgement.automatic = Automatic.NEVER
    return combined(ruling, Ruling(Decision.ESCALATE, TERMINAL_RULE, reason))
