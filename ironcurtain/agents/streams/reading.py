"""Read values of JSON that an untrusted program wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

from ironcurtain.jsonrpc.framing import INBOUND_LIMIT, Framer, TooLong
from ironcurtain.text.diffs import bounded
from ironcurtain.text.display import shorten

LINE_LIMIT = INBOUND_LIMIT
"""Maximum size in bytes of a line that is parsed; longer ones are skipped (lines of 3 MB are common: whole files)."""

ID_LIMIT = 200
"""Maximum length in characters of an id of a tool or a conversation; agents use up to 64."""

OPEN_LIMIT = 1000
"""Maximum number of tools that run at the same time; further ones are not kept in mind."""

WHAT_LIMIT = 300
"""Maximum length in characters of an argument or a result in one line."""

COUNT_LIMIT = 10**12
"""Larger token counts are invalid."""


class ObjectLines:
    """Splits a program's output into the JSON objects that stand alone on a line; others are skipped."""

    def __init__(self) -> None:
        self._framer = Framer(LINE_LIMIT)

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """:returns: the objects that these bytes complete."""
        for line in self._framer.feed(data):
            if not isinstance(line, TooLong) and (found := parsed(line)) is not None:
                yield found


class Collected:
    """A text that comes in pieces. Of a longer one than :data:`LINE_LIMIT` characters, only the beginning is kept."""

    def __init__(self) -> None:
        self._text, self._size = StringIO(), 0

    def __bool__(self) -> bool:
        return self._size > 0

    def __str__(self) -> str:
        return self._text.getvalue()

    def add(self, piece: str) -> None:
        """Add a piece at the end, in a time that does not depend on what was added before."""
        self._size += self._text.write(piece[: LINE_LIMIT - self._size])

    def clear(self) -> None:
        """Begin again with nothing."""
        self._text, self._size = StringIO(), 0


def parsed(line: bytes) -> dict[str, Any] | None:
    """:returns: the JSON object that a line is; ``None`` if it is none."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        # Not msgspec: a text that was cut within a character must not make the rest unusable.
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def dig(value: Any, *path: str) -> Any:
    """:returns: the member at the end of a path of objects, ``None`` if the path does not exist."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """:returns: the text at the end of a path, empty if there is none; lone surrogates become question marks."""
    found = dig(value, *path)
    return found.encode("utf-8", "replace").decode() if isinstance(found, str) else ""


def id_at(value: Any, *path: str) -> str:
    """:returns: the id at the end of a path, empty if there is none, or one longer than :data:`ID_LIMIT`."""
    found = text_at(value, *path)
    return found if len(found) <= ID_LIMIT else ""


def list_at(value: Any, *path: str) -> list[Any]:
    """:returns: the list at the end of a path, empty if there is none."""
    found = dig(value, *path)
    return found if isinstance(found, list) else []


def count_at(value: Any, *path: str) -> int:
    """:returns: the count at the end of a path, 0 if there is no valid one."""
    found = dig(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= COUNT_LIMIT else 0


def status_at(value: Any, *path: str) -> int | None:
    """:returns: the HTTP status at the end of a path."""
    found = count_at(value, *path)
    return found if 100 <= found <= 599 else None


def first_text(content: Any) -> str:
    """:returns: the texts of a message's content, which is a text or a list of blocks."""
    if isinstance(content, list):
        return "\n".join(text for block in content if (text := text_at(block, "text")))
    return text_at({"": content}, "")


ARGUMENTS = ("command", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt")
"""Names of arguments that tell the most about a call, in this order."""


def argument_line(arguments: Any) -> str:
    """:returns: what distinguishes a call from others of the tool, in one line."""
    if not isinstance(arguments, dict):
        return brief(text_at({"": arguments}, ""))
    for name in ARGUMENTS:
        if text := text_at(arguments, name).strip():
            return brief(text)
    try:
        return brief(json.dumps(arguments, ensure_ascii=False)[: 10 * WHAT_LIMIT]) if arguments else ""
    except (ValueError, RecursionError):
        return ""


def brief(text: str) -> str:
    """:returns: a text in one line of at most :data:`WHAT_LIMIT` characters."""
    return shorten(text[: 10 * WHAT_LIMIT].encode("utf-8", "replace").decode(), WHAT_LIMIT)


def last_line(text: str) -> str:
    """:returns: the last line with text of an output, for a line that says how it ended."""
    lines = text[-10 * WHAT_LIMIT :].strip().splitlines()
    return brief(lines[-1]) if lines else ""


def hunks(path: str, found: list[Any]) -> str:
    """:returns: a unified diff of hunks with ``oldStart``, ``newStart`` and ``lines``."""
    parts = []
    for hunk in found:
        lines = [text_at({"": line}, "") for line in list_at(hunk, "lines")]
        old, new = (f"{count_at(hunk, f'{side}Start')},{count_at(hunk, f'{side}Lines')}" for side in ("old", "new"))
        parts.append(f"@@ -{old} +{new} @@\n" + "".join(f"{line}\n" for line in lines))
    return bounded(f"--- {path}\n+++ {path}\n{''.join(parts)}") if parts else ""
