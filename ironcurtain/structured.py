"""Read files that people write, TOML or JSON, into typed values, with messages that name file, line and field. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ironcurtain.errors import ConfigurationError

T = TypeVar("T")

_AT = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]+)`")
_PARTS = re.compile(r"\.([^.\[\]]+)|\[([0-9]+|\.\.\.)\]")
_TOML_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*=")


def parse_toml(source: str, text: str) -> dict[str, Any]:
    """
    :param source: the file's name, for messages.
    :raises ConfigurationError: the text is no TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        place = _TOML_PLACE.search(str(e))
        line = int(place.group(1)) if place else None
        raise ConfigurationError(source, _TOML_PLACE.sub("", str(e)), line=line) from None


def parse_json(source: str, data: bytes) -> Any:
    """
    :param source: the file's name, for messages.
    :raises ConfigurationError: the bytes are no JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise ConfigurationError(source, f"not JSON: {e}") from None


def convert(source: str, value: Any, type_: type[T], text: str = "") -> T:
    """
    Check a parsed value and give it its type.

    :param text: the TOML it was parsed from, to find the line of what is wrong.
    :raises ConfigurationError: it does not fit the type.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as e:
        message = str(e)
        at = _AT.search(message)
        path = [key or index for key, index in _PARTS.findall(at.group("path"))] if at else []
        message = _AT.sub("", message)
        if unknown := _UNKNOWN.search(message):
            path, message = [*path, unknown.group("field")], "there is no such setting"
        path = _named(value, type_, path)
        raise ConfigurationError(source, message, field=".".join(path), line=line_of(text, path)) from None


def _named(value: Any, type_: type[T], path: list[str]) -> list[str]:
    # The library says "..." for a key that the type leaves free: the key is the one whose entry alone fails as well.
    for depth, part in enumerate(path):
        if part == "...":
            table = value
            for step in path[:depth]:
                table = table[int(step)] if isinstance(table, list) else table[step]
            path[depth] = next((key for key in table if _fails(_only(value, [*path[:depth], key]), type_)), part)
    return path


def _only(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return value
    if isinstance(value, list):
        return [_only(value[int(path[0])], path[1:])]
    return {path[0]: _only(value[path[0]], path[1:])}


def _fails(value: Any, type_: type[T]) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return True
    return False


def check_version(source: str, value: Any, newest: int) -> None:
    """
    :param value: the parsed file; its ``version`` may be missing, which means 1.
    :raises ConfigurationError: the file's format is newer than we know.
    """
    version = value.get("version", 1) if isinstance(value, dict) else 1
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= newest:
        raise ConfigurationError(source, f"format {version!r}; this program reads up to {newest}", field="version")


def line_of(text: str, path: Sequence[str]) -> int | None:
    """
    Find a setting in TOML.

    :param path: its keys; positions in arrays of tables as digits.
    :returns: the line, from 1, of the deepest part of the path that stands in the text by name; ``None`` if none does.
    """
    best: tuple[int, int] | None = None
    table: list[str] = []
    arrays: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _enter(_keys(header.group(2)), header.group(1) == "[[", arrays)
            here = table
        elif key := _KEY.match(line):
            here = table + _keys(key.group(1))
        else:
            continue
        if list(path[: len(here)]) == here and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def _enter(keys: list[str], is_array: bool, arrays: dict[tuple[str, ...], int]) -> list[str]:
    table: list[str] = []
    for depth, key in enumerate(keys, 1):
        table.append(key)
        name = tuple(table)
        if is_array and depth == len(keys):
            arrays[name] = arrays.get(name, -1) + 1
        if name in arrays:
            table.append(str(arrays[name]))
    return table


def _keys(dotted: str) -> list[str]:
    return [key.strip("\"'") for key in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", dotted)]
