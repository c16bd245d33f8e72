"""Find the line of a field in a TOML file, for messages: the parser of the standard library does not tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PART = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")

Place = tuple[str | int, ...]
"""The way to a field: names of tables and keys, and indexes of arrays."""


def line_of(text: str, place: Sequence[str | int]) -> int | None:
    """
    Find where a field is written.

    :param place: the way to the field.
    :returns: the first line of the nearest thing around it that has a line of its own, counted from 1.
    """
    wanted = tuple(place)
    best, found = 0, None
    for number, here in _places(text):
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


def _places(text: str) -> list[tuple[int, Place]]:
    """:returns: the line of each table's head and of each key, with its place."""
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
    """:param counts: how many elements each array of tables has so far."""
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
