"""Change one member of a JSON file that a person wrote; everything else stays as it is, comments too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.json_comments import plain_json, without_comments
from ironcurtain.home.lines import Place
from ironcurtain.home.parsing import parse_json

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_INDENT = re.compile(r"\n([ \t]*)\Z")
STEP = "  "
"""The indentation of a file in which no line is indented."""


class _Object(msgspec.Struct):
    """
    Where an object is in a text.

    :param start: of its brace.
    :param end: of its closing brace.
    :param members: name, start and end of each member.
    """

    start: int
    end: int = -1
    members: list[tuple[str, int, int]] = msgspec.field(default_factory=list)


def with_member(source: str, text: str, place: Place, name: str, value: Any) -> str:
    """
    Add a member at the end of an object.

    :param source: the file's name, for messages.
    :param text: JSON, also with comments and commas after the last member.
    :param place: the path of the object.
    :param name: a name that no member has.
    :raises ConfigurationError: the text is not JSON, or the file cannot be changed.
    """
    plain, found = _object(source, text, place)
    last = found.members[-1][2] if found.members else found.start + 1
    comma = "," if found.members and _comma(source, text, last) is None else ""
    if found.members and "\n" not in text[found.start : found.end]:
        added = f"{comma} {json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        at = last if comma else (_comma(source, text, last) or last) + 1
        return _checked(source, text, f"{text[:at]}{added}{text[at:]}", place, name, value)
    outer = _indent(plain, found.start)
    inner = _indent(plain, found.members[0][1]) if found.members else outer + STEP
    written = json.dumps(value, ensure_ascii=False, indent=inner.removeprefix(outer) or STEP)
    member = f"{inner}{json.dumps(name, ensure_ascii=False)}: {written}".replace("\n", f"\n{inner}")
    at = text.rfind("\n", 0, found.end) + 1
    if text[at : found.end].strip() or at <= last:
        at, member = found.end, f"\n{member}\n{outer}"
    else:
        member += "\n"
    return _checked(source, text, f"{text[:last]}{comma}{text[last:at]}{member}{text[at:]}", place, name, value)


def without_member(source: str, text: str, place: Place, name: str) -> str:
    """
    Remove a member of an object, which exists.

    The parameters are those of :func:`with_member`.

    :raises ConfigurationError: the text is not JSON, or the file cannot be changed.
    """
    found = _object(source, text, place)[1]
    index = next(number for number, (each, _, _) in enumerate(found.members) if each == name)
    _, start, end = found.members[index]
    kept = text[:start]
    if (comma := _comma(source, text, end)) is not None:
        end = comma + 1
    elif index and (comma := _comma(source, text, found.members[index - 1][2])) is not None:
        kept = f"{text[:comma]}{text[comma + 1 : start]}"
    if (gap := _INDENT.search(kept)) is not None:
        kept = kept[: gap.start()]
    return _checked(source, text, kept + text[end:], place, name)


def _object(source: str, text: str, place: Place) -> tuple[str, _Object]:
    """:returns: the text without comments and last commas, and where the object at a place is in both."""
    plain = plain_json(source, text)
    parse_json(source, plain)
    found = dict(_objects(plain)).get(place)
    if found is None:
        raise ConfigurationError(
            source, "is no object with members: change it by hand", field=".".join(map(str, place))
        )
    return plain, found


def _comma(source: str, text: str, after: int) -> int | None:
    """
    :param after: the end of a member.
    :returns: the position of the comma after it, also of one before a closing brace.
    """
    found = re.compile(r"\s*,").match(without_comments(source, text), after)
    return None if found is None else found.end() - 1


def _objects(plain: str) -> Iterator[tuple[Place, _Object]]:
    """:returns: each object of a JSON text, by its place."""
    place: list[str | int] = []
    around: list[_Object | None] = []
    begins, name = True, ""
    for found in _TOKEN.finditer(plain):
        token = found[0]
        if around and (inside := around[-1]) is not None and begins and token.startswith('"'):
            name = json.loads(token)
            inside.members.append((name, found.start(), found.end()))
            place[-1], begins = name, False
            continue
        if token in ("{", "["):
            around.append(_Object(found.start()) if token == "{" else None)
            place.append("" if token == "{" else 0)
            begins = token == "{"
            continue
        if token in ("}", "]"):
            closed = around.pop()
            place.pop()
            if closed is not None:
                closed.end = found.start()
                yield tuple(place), closed
        elif token == ",":
            begins = bool(around) and around[-1] is not None
            if place and isinstance(place[-1], int):
                place[-1] += 1
        if token not in (",", ":") and around and (inside := around[-1]) is not None and inside.members:
            last, start, _ = inside.members[-1]
            inside.members[-1] = (last, start, found.end())


def _indent(plain: str, at: int) -> str:
    """:returns: the white space at the beginning of the line that a position is in."""
    line = plain[plain.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _checked(source: str, old: str, new: str, place: Place, name: str, value: Any = None) -> str:
    """:raises ConfigurationError: the new text differs from the old one in more than the member."""
    before, after = (parse_json(source, plain_json(source, text)) for text in (old, new))
    table = before
    for key in place:
        table = table[key]
    table.pop(name, None)
    if value is not None:
        table[name] = value
    if before != after:
        raise ConfigurationError(source, f"cannot be changed: write {json.dumps(name)} by hand")
    return new
