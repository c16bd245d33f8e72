"""
Header fields of HTTP/1.1, read strictly (RFC 9112, section 5).

Whatever two programs could understand differently is refused: folded lines, bare line ends, spaces before the colon,
control characters, names that are no tokens.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ironcurtain.errors import ProtocolViolation

FIELD_LIMIT = 100
"""Most header fields of one message (model APIs and their clients use about thirty)."""

LINES_KEPT: Final = 1024
"""How many lines are remembered with what they say: most lines of a head are those of the one before."""

KEPT_LIMIT: Final = 8192
"""Most bytes of header fields, all together, whose lines are remembered."""

# A tab may stand inside a value, not before it: programs differ in whether they see it there. No part can give back
# what it took, since what follows it could not begin with that: so much quicker is it to match.
_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]++): *+((?:[^\x00-\x20\x7f][^\x00-\x08\x0a-\x1f\x7f]*+)?+)")

Fields = tuple[tuple[str, str], ...]
"""Names in lower case and values, both one character a byte (latin-1), in the order in which they came."""


def read_fields(lines: bytes) -> Fields:
    """
    :param lines: all of a head but its first line and the blank line at its end.
    :raises ProtocolViolation: a line is no header field, or there are too many.
    """
    if not lines:
        return ()
    found = lines.split(b"\r\n")
    if len(found) > FIELD_LIMIT:
        raise ProtocolViolation("http", f"more than {FIELD_LIMIT} header fields")
    return tuple(map(_remembered if len(lines) <= KEPT_LIMIT else _read, found))


def pick(fields: Fields, names: frozenset[str]) -> dict[str, list[str]]:
    """:returns: the values of those fields that are there; names are in lower case."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        if name in names:
            found.setdefault(name, []).append(value)
    return found


def words(values: list[str]) -> list[str]:
    """:returns: the words of a header that holds a comma-separated list, in lower case."""
    return [word.strip(" ").lower() for value in values for word in value.split(",")] if values else values


def _read(line: bytes) -> tuple[str, str]:
    if (field := _FIELD.fullmatch(line.decode("latin-1"))) is None:
        raise ProtocolViolation("http", "a line in the head is no header field")
    return field[1].lower(), field[2].rstrip(" ")


_remembered = lru_cache(LINES_KEPT)(_read)
