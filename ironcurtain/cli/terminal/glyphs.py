"""The symbols that a terminal can show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """Symbols that a terminal may lack."""

    done: str = "✓"
    failed: str = "✗"
    active: str = "●"
    idle: str = "○"
    prompt: str = "> "
    dot: str = " · "
    top: str = "╭ "
    side: str = "│ "
    bottom: str = "╰ "
    rest: str = "…"


UNICODE = Glyphs()
ASCII = Glyphs("ok", "x", "*", "-", "> ", ", ", "+ ", "| ", "+ ", "...")


def glyphs_for(encoding: str) -> Glyphs:
    """:returns: the symbols that an encoding has."""
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
