"""Escape text from agents and servers for a terminal."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from ironcurtain.text.lookalikes import lookalikes

_HARMFUL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that move the cursor, reorder or hide text, or have no glyph (Unicode 15, section 4.5)."""

_INVISIBLE = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters of harmless categories that are nevertheless invisible."""


def _is_harmful(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    if character in _INVISIBLE or "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef":
        return True
    return unicodedata.category(character) in _HARMFUL


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """:returns: each character, and whether it must be escaped."""
    marked = lookalikes(text)
    return ((c, _is_harmful(c) or number in marked) for number, c in enumerate(text))


def _escape(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def one_line(text: str, limit: int | None = None) -> str:
    """
    Escape text to one line.

    :param text: anything.
    :param limit: maximum number of characters shown; the number of the others follows.
    """
    if _is_plain(text) and "\\" not in text:
        return _cut(text, limit)
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}
    pieces = (named.get(c) or (_escape(c) if harmful else c) for c, harmful in _characters(text))
    return _within(limit, pieces, len(text))


def json_line(value: Any, limit: int | None = None) -> str:
    """
    Format a JSON value on one line, escaped.

    :param limit: maximum number of characters shown; the number of the others follows.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _is_plain(text):
        return _cut(text, limit)
    return _within(limit, (_escape(c) if harmful else c for c, harmful in _characters(text)), len(text))


def _is_plain(text: str) -> bool:
    """Whether nothing in a text has to be escaped. Most texts are plain, and this takes a fiftieth of the time."""
    return text.isascii() and text.isprintable()


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else f"{text[:limit]}… (+{len(text) - limit} characters)"


def _within(limit: int | None, pieces: Iterable[str], count: int) -> str:
    """:param count: number of pieces."""
    shown: list[str] = []
    size = 0
    for piece in pieces:
        if limit is not None and size + len(piece) > limit:
            return f"{''.join(shown)}… (+{count - len(shown)} characters)"
        shown.append(piece)
        size += len(piece)
    return "".join(shown)


def paragraphs(text: str) -> str:
    """Escape text, keeping line ends and tabs."""
    if _is_plain(text.replace("\n", "").replace("\t", "")):
        return text
    text = text.replace("\r\n", "\n")
    return "".join(_escape(c) if c not in "\n\t" and harmful else c for c, harmful in _characters(text))


def visible(text: str) -> str:
    """
    Escape part of a text whose rest is not known yet, keeping line ends and tabs.

    Unlike :func:`paragraphs`, this leaves letters that look like others: whether they do depends on the whole text.
    """
    if _is_plain(text.replace("\n", "").replace("\t", "")):
        return text
    return "".join(map(_visible, text))


@lru_cache(4096)
def _visible(character: str) -> str:
    return _escape(character) if character not in "\n\t" and _is_harmful(character) else character


def has_hidden_text(text: str) -> bool:
    """Whether a text has invisible characters, other than line ends and tabs, or letters that look like others."""
    return any(c not in "\n\r\t" and harmful for c, harmful in _characters(text))


def without_breaks(text: str) -> str:
    """:returns: the text on one line: its ends of lines are escaped, and nothing else is."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


def shown_only(text: str) -> str:
    """:returns: the text without invisible characters."""
    return text if text.isascii() and text.isprintable() else "".join(c for c in text if not _is_harmful(c))


def shorten(text: str, limit: int) -> str:
    """:returns: the text on one line, cut to at most ``limit`` characters."""
    flat = " ".join("".join(" " if _is_harmful(c) else c for c in text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def ago(seconds: float) -> str:
    """:returns: a time span in its largest fitting unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def time_of_day(seconds: float) -> str:
    """
    :param seconds: since the epoch.
    :returns: the time of day here.
    """
    return f"{datetime.fromtimestamp(seconds):%H:%M:%S}"


def left(seconds: float) -> str:
    """:returns: a remaining time, as ``4:59``."""
    whole = max(int(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


def took(milliseconds: float) -> str:
    """:returns: a duration as ``3 ms``, ``2.5 s`` or ``3:12 min``."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 60_000 else f"{left(milliseconds / 1000)} min"


def elapsed(seconds: float) -> str:
    """:returns: an elapsed time as ``12 s`` or ``3:12``."""
    return f"{max(int(seconds), 0)} s" if seconds < 60 else left(seconds)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """:returns: rows in columns, as lines; the last column has any width."""
    every = [header, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(header) - 1)]
    padded = ([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]] for row in every)
    return ["  ".join(row).rstrip() for row in padded]


def readable_path(path: str) -> str:
    """:returns: a path of the file system whose bytes that are not UTF-8 are escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
