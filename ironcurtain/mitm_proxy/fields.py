"""
Header fields of HTTP/1.1, read strictly (RFC 9112, section 5). Pure.

Whatever two programs could understand differently is refused: folded lines, bare line ends, spaces before the colon,
control characters, names that are no tokens.
"""

from __future__ import annotations

import re

from ironcurtain.errors import ProtocolViolation

FIELD_LIMIT = 100
"""Most header fields of one message (our choice; model APIs and their clients use about thirty)."""

# A tab may stand inside a value, not before it: programs differ in whether they see it there. No part can give back
# what it took, since what follows it could not begin with that: so much quicker is it to match.
_FIELD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++: *+(?:[^\x00-\x20\x7f][^\x00-\x08\x0a-\x1f\x7f]*+)?+(?:\r\n|\Z)"
_ALL = re.compile(f"(?:{_FIELD})++")

Fields = tuple[tuple[str, str], ...]
"""Names in lower case and values, both one character a byte (latin-1), in the order in which they came."""


def read_fields(lines: bytes) -> Fields:
    """
    :param lines: all of a head but its first line and the blank line at its end.
    :raises ProtocolViolation: a line is no header field, or there are too many.
    """
    if not lines:
        return ()
    text = lines.decode("latin-1")
    if _ALL.fullmatch(text) is None or text.endswith("\n"):
        raise ProtocolViolation("http", "a line in the head is no header field")
    found = [line.partition(":") for line in text.split("\r\n")]
    if len(found) > FIELD_LIMIT:
        raise ProtocolViolation("http", f"more than {FIELD_LIMIT} header fields")
    return tuple([(name.lower(), value.strip(" ")) for name, _, value in found])


def pick(fields: Fields, names: frozenset[str]) -> dict[str, list[str]]:
    """:returns: the values of those fields that are there; names are in lower case."""
    found: dict[str, list[str]] = {}
    for name, value in fields:
        if name in names:
            found.setdefault(name, []).append(value)
    return found


def words(values: list[str]) -> list[str]:
    """:returns: the words of a header that holds a comma-separated list, in lower case."""
    return [word.strip(" ").lower() for value in values for word in value.split(",")]
