"""Find the line of a field in a TOML or JSON file, for messages, since parsers do not report it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_TOKEN = re.compile(r'\n|"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')

Place = tuple[str | int, ...]
"""The path of a field: names of tables and keys, and indexes of arrays."""


def line_of(text: str, place: Sequence[str | int]) -> int | None:
    """
    Find a field's line.

    :param text: text of a JSON file, which begins with ``{``, or of a TOML file.
    :param place: the path of the field.
    :returns: the line of the field or of the innermost enclosing thing that has a line of its own, counted from 1.
    """
    wanted = tuple(place)
    best, found = 0, None
    for number, here in json_places(text) if text.lstrip().startswith("{") else _toml_places(text):
        shared = _shared(here, wanted)
        if shared > best and (shared == len(here) or shared == len(wanted)):
            best, found = shared, number
    return found


def _shared(left: Place, right: Place) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def json_places(text: str) -> Iterator[tuple[int, Place]]:
    """
    :param text: JSON; text after an error is ignored.
    :returns: the line of each key and of each array element, with its path, in the order of the file.
    """
    number, place, before = 1, list[str | int](), ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token == "\n":
            number += 1
            continue
        if before == "[" and token != "]":
            yield number, tuple(place)
        if token in ("{", "["):
            place.append(0 if token == "[" else "")
        elif token in ("}", "]") and place:
            place.pop()
        elif token == "," and place and isinstance(place[-1], int):
            place[-1] += 1
        elif token.startswith('"') and place and isinstance(place[-1], str) and before in ("{", ","):
            try:
                place[-1] = json.loads(token)
            except ValueError:
                return
            yield number, tuple(place)
        before = "[" if token == "," and place and isinstance(place[-1], int) else token


def _toml_places(text: str) -> list[tuple[int, Place]]:
    """:returns: the line of each table's header and of each key, with its path."""
    counts: dict[Place, int] = {}
    table: Place = ()
    found: list[tuple[int, Place]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _enter(_names(header[2]), header[1] == "[[", counts)
            found.append((number, table))
        elif key := _KEY.match(line):
            found.append((number, table + _names(key[1])))
    return found


def _enter(names: Place, is_array: bool, counts: dict[Place, int]) -> Place:
    """:param counts: number of elements so far of each array of tables."""
    place: Place = ()
    for index, name in enumerate(names):
        place += (name,)
        if is_array and index == len(names) - 1:
            counts[place] = counts.get(place, 0) + 1
        if place in counts:
            place += (counts[place] - 1,)
    return place


def _names(dotted: str) -> Place:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))
