"""
What is wrong with a value of a configuration file, in words. It is imported where something is wrong: a person who
starts a shell waits for what is imported otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.inspect import CollectionType, DictType, EnumType, LiteralType, StructType, Type, UnionType, type_info

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.lines import Place, line_of

_AT = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_FIELD = re.compile(r"(?P<kind>unknown|required) field `(?P<field>[^`]+)`")
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]+)`(?:, got `(?P<got>\w+)`| (?P<bound>[<>]=?) (?P<limit>\S+))")
_LENGTH = re.compile(r"Expected `str` of length (?P<bound>[<>]=?) (?P<limit>\d+)")
_BOUNDS = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}
_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table of named values",
    "null": "null",
}
"""What the library calls the types of values, in words."""

_PARTS = re.compile(r"\.([^.\[\]]+)|\[([0-9]+|\.\.\.)\]")


def wrong(source: str, detail: str, text: str, place: Place) -> ConfigurationError:
    """:returns: an error that names the file, the field and, if the file's text is given, the line."""
    line = line_of(text, place) if text else None
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    return ConfigurationError(source, detail, field=field, line=line)


def refused(source: str, value: Any, type_: Any, text: str, place: Place, message: str) -> ConfigurationError:
    """
    :param value: what does not match a type.
    :param message: what the library says about it.
    :returns: the error for people, as :func:`wrong` has it.
    """
    at = _AT.search(message)
    path: list[str | int] = [int(i) if i.isdigit() else key or i for key, i in _PARTS.findall(at["path"] if at else "")]
    message = _AT.sub("", message)
    if message.startswith("Invalid enum value"):
        allowed = _choices(type_info(type_), path)
        message = f"must be {'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)}" if allowed else message
    if field := _FIELD.search(message):
        path.append(field["field"])
        message = "there is no such setting" if field["kind"] == "unknown" else "is missing"
    elif length := _LENGTH.fullmatch(message):
        message = f"must have {_BOUNDS[length['bound']]} {int(length['limit']):,} characters"
    elif expected := _EXPECTED.fullmatch(message):
        message = _in_words(**expected.groupdict())
    return wrong(source, message, text, (*place, *_named(value, type_, path)))


def _in_words(types: str, got: str | None, bound: str | None, limit: str | None) -> str:
    """:returns: what the library says about a value of a wrong type, or beyond a limit, in words of the field."""
    if bound is not None:
        return f"must be {_BOUNDS[bound]} {float(limit or 0):.15g}"
    wanted = " or ".join(_TYPES.get(name, name) for name in types.split(" | ") if name != "null")
    return f"must be {wanted}, not {_TYPES.get(got or '', got)}"


def _choices(info: Type, path: Sequence[str | int]) -> list[str]:
    """:returns: the allowed values of an enumeration within a type, in words."""
    found: list[str] = []
    for kind in info.types if isinstance(info, UnionType) else (info,):
        if isinstance(kind, LiteralType) and not path:
            found += map(json.dumps, kind.values)
        elif isinstance(kind, EnumType) and not path:
            found += (json.dumps(each.value) for each in kind.cls)
        elif isinstance(kind, StructType) and not path:
            found.append(_TYPES["object"])
        elif isinstance(kind, StructType) and path:
            for field in kind.fields:
                if field.encode_name == path[0]:
                    found += _choices(field.type, path[1:])
        elif isinstance(kind, DictType) and path:
            found += _choices(kind.value_type, path[1:])
        elif isinstance(kind, CollectionType) and path:
            found += _choices(kind.item_type, path[1:])
    return found


def _named(value: Any, type_: Any, path: list[str | int]) -> list[str | int]:
    # The library reports "..." for a key that the type leaves open: it is the key whose entry alone fails, too.
    for depth, part in enumerate(path):
        if part == "...":
            table: Any = value
            for step in path[:depth]:
                table = table[step]
            path[depth] = next((key for key in table if _fails(_only(value, [*path[:depth], key]), type_)), part)
    return path


def _only(value: Any, path: Sequence[Any]) -> Any:
    if not path:
        return value
    if isinstance(value, list):
        return [_only(value[path[0]], path[1:])]
    return {path[0]: _only(value[path[0]], path[1:])}


def _fails(value: Any, type_: Any) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return True
    return False
