"""The shell fish with a home that is new."""

from __future__ import annotations

from pathlib import Path


def without_manuals(home: Path) -> None:
    """
    Keep fish from reading manual pages.

    An interactive fish that finds no completions in its home makes some from all manual pages of the machine: in the
    background, for minutes, and beyond the end of a test.
    """
    (home / ".local/share/fish/generated_completions").mkdir(parents=True)
