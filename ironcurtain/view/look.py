"""How lines look on a terminal: the signs and colours that it has, and text that is safe to show there."""

from __future__ import annotations

import codecs
from collections.abc import Mapping

import msgspec

from ironcurtain.text.columns import Line, Style
from ironcurtain.text.display import paragraphs, shorten

PROMPT = "> "
"""Stands before what a person types, and typed."""


class Signs(msgspec.Struct, frozen=True):
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
    return UNICODE if _is_unicode(encoding) else ASCII


def _is_unicode(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name == "utf-8"  # what we write is in no other
    except LookupError:
        return False


def representable(text: str, encoding: str) -> str:
    """:returns: the text with escapes for characters that an encoding lacks, so that nothing disappears."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("…", "...")
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


TICK_SECONDS = 1.0
"""Seconds between redraws, for the times on a screen."""

TAB = "    "
"""Stands for a tab, whose width would depend on where it is."""

COLORED: dict[Style, str] = {
    "dim": "2",
    "bold": "1",
    "code": "36",
    "title": "1",
    "chosen": "1",
    "key": "1;36",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "old": "31",
    "new": "32",
}
"""The codes of styles, as in the escape sequence that selects them."""

_COLORLESS: dict[Style, str] = {"dim": "2", "bold": "1", "title": "1", "chosen": "1", "key": "1", "bad": "1"}


class Look(msgspec.Struct, frozen=True):
    """
    What a terminal can show.

    :param unicode: whether it shows more than ASCII; else signs have other forms and characters are escaped.
    :param color: whether colours may be used; bold and dim text is used all the same.
    :param dumb: it has no escape sequences at all: what was printed stays.
    """

    unicode: bool = True
    color: bool = True
    dumb: bool = False

    @property
    def signs(self) -> Signs:
        """The signs that it has."""
        return UNICODE if self.unicode else ASCII

    def text(self, text: str) -> str:
        """:returns: text that keeps its line ends, safe to show."""
        return self._representable(paragraphs(text).replace("\t", TAB))

    def brief(self, text: str, limit: int) -> str:
        """:returns: text on one line, of at most ``limit`` characters before any are escaped, safe to show."""
        return self._representable(shorten(text, limit))

    def paint(self, line: Line) -> str:
        """:returns: a line with the escape sequences of its styles."""
        if self.dumb:
            return "".join(span.text for span in line)
        styles = COLORED if self.color else _COLORLESS
        return "".join(
            f"\x1b[{styles[span.style]}m{span.text}\x1b[0m" if span.style in styles else span.text for span in line
        )

    def _representable(self, text: str) -> str:
        return representable(text, "utf-8" if self.unicode else "ascii")


def look_for(environ: Mapping[str, str]) -> Look:
    """:param environ: ``TERM``, ``NO_COLOR`` and the locale of whoever sits at the terminal."""
    term = environ.get("TERM", "")
    dumb = term in ("", "dumb", "unknown")
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or "C"
    encoding = locale.partition("@")[0].rpartition(".")[2]
    return Look(_is_unicode(encoding), not (dumb or environ.get("NO_COLOR") or term.endswith("-m")), dumb)
