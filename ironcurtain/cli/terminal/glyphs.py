"""The signs that a terminal can show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs that a terminal may lack."""

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
    """:returns: the signs that an encoding has."""
    try:
        "".join(getattr(UNICODE, name) for name in UNICODE.__slots__).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def representable(text: str, encoding: str) -> str:
    """:returns: the text with escapes in place of what an encoding lacks, so that nothing is lost unseen."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("…", "...")
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text
