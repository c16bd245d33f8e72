"""How many examples a property gets that needs another number of them than usual."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""How many hypothesis tries of a property where nothing is said."""


def examples(wanted: int) -> int:
    """:returns: that number, or the same part of it as the profile in force has of the usual one."""
    return wanted * settings().max_examples // USUAL
