"""
Header fields of HTTP/1.1, parsed strictly (RFC 9112, section 5).

Ambiguous input is refused: folded lines, bare line ends, spaces before the colon, control characters, names that are
not tokens.
"""

from __future__ import annotations

import re
from typing import Final

from ironcurtain.errors import ProtocolViolation

FIELD_LIMIT = 100
"""Maximum number of header fields of one message (model APIs and their clients use about thirty)."""

LINES_KEPT: Final = 1024
"""Size of the cache of parsed lines: most lines of a head equal those of the previous one."""

KEPT_LIMIT: Final = 8192
"""Maximum total size in bytes of header fields whose lines are cached."""

# A tab is allowed inside a value, not before it, since programs differ in treating it. No part of the pattern
# backtracks, because what follows it cannot begin with the same characters; that makes matching fast.
_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]++): *+((?:[^\x00-\x20\x7f][^\x00-\x08\x0a-\x1f\x7f]*+)?+)")

Fields = tuple[tuple[str, str], ...]
"""Names in lower case with values, one character per byte (latin-1), in their original order."""


def read_fields(lines: bytes) -> Fields:
    """
    :param lines: a head without its first line and the blank line at its end.
    :raises ProtocolViolation: a line is not a header field, or there are too many.
    """
    if not lines:
        return ()
    found = lines.split(b"\r\n")
    if len(found) > FIELD_LIMIT:
        raise ProtocolViolation("http", f"more than {FIELD_LIMIT} header fields")
    return tuple(map(_remembered.__getitem__ if len(lines) <= KEPT_LIMIT else _read, found))


def pick(fields: Fields, names: frozenset[str]) -> dict[str, list[str]]:
    """:returns: the values of the existing fields with these names, which are in lower case."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        if name in names:
            found.setdefault(name, []).append(value)
    return found


def words(values: list[str]) -> list[str]:
    """:returns: the words of a header with a comma-separated list, in lower case."""
    return [word.strip(" ").lower() for value in values for word in value.split(",")] if values else values


def _read(line: bytes) -> tuple[str, str]:
    if (field := _FIELD.fullmatch(line.decode("latin-1"))) is None:
        raise ProtocolViolation("http", "a line in the head is not a header field")
    return field[1].lower(), field[2].rstrip(" ")


class _ReadLines(dict[bytes, tuple[str, str]]):
    """Remembers parsed lines. A lookup takes less time than one in an ``lru_cache``."""

    def __missing__(self, line: bytes) -> tuple[str, str]:
        field = _read(line)
        if len(self) >= LINES_KEPT:
            self.clear()
        self[line] = field
        return field


_remembered: Final = _ReadLines()
