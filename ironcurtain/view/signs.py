"""The signs that a terminal can show."""

from __future__ import annotations

from dataclasses import dataclass

PROMPT = "> "
"""Stands before what a person types, and typed."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs that a terminal may lack."""

    top: str = "╭ "
    side: str = "│ "
    joint: str = "├ "
    bottom: str = "╰ "
    chosen: str = "▸ "
    done: str = "✓"
    failed: str = "✗"
    left_out: str = "○"
    """Also for a session that waits for its person."""

    working: str = "●"
    dot: str = " · "
    rest: str = "…"
    continued: str = "↵"
    """Stands at the end of a row of a command that goes on in the next row without a line end."""

    arrows: str = "↑↓"
    item: str = "• "
    """Before an item of a list."""


UNICODE = Signs()
ASCII = Signs("+ ", "| ", "+ ", "+ ", "> ", "ok", "x", "-", "*", ", ", "...", "\\", "j/k", "- ")


def signs_for(encoding: str) -> Signs:
    """:returns: the signs that an encoding has."""
    try:
        "".join(getattr(UNICODE, name) for name in UNICODE.__slots__).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def representable(text: str, encoding: str) -> str:
    """:returns: the text with escapes for characters that an encoding lacks, so that nothing disappears."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("…", "...")
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text
