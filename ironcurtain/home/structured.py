"""Parse TOML and JSON configuration into typed values, with errors that name file, line and field."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import CollectionType, DictType, LiteralType, StructType, Type, UnionType, type_info

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.lines import Place, json_places, line_of

T = TypeVar("T")

_AT = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_FIELD = re.compile(r"(?P<kind>unknown|required) field `(?P<field>[^`]+)`")
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]+)`(?:, got `(?P<got>\w+)`| (?P<bound>[<>]=?) (?P<limit>\S+))")
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
_TOML_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")
_TOML_END = " (at end of document)"


def parse_toml(source: str, text: str) -> dict[str, Any]:
    """
    :param source: the file's name, for messages.
    :raises ConfigurationError: the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        place = _TOML_PLACE.search(str(e))
        line = int(place.group(1)) if place else len(text.splitlines()) if str(e).endswith(_TOML_END) else None
        detail = _TOML_PLACE.sub("", str(e)).removesuffix(_TOML_END)
        raise ConfigurationError(source, f"not TOML: {detail}", line=line) from None


def parse_json(source: str, data: bytes) -> Any:
    """
    :param source: the file's name, for messages.
    :raises ConfigurationError: the bytes are not JSON, or an object has a key twice: parsers use either the first or
        the last, so that a reviewer may see the other one.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
            detail = f"{json.dumps(twice)} occurs twice in one object: remove one of them"
            raise ConfigurationError(source, detail, line=_line_of_second(data.decode(), twice))
        return found

    try:
        json.loads(data, object_pairs_hook=members)  # msgspec silently uses the last one
        return msgspec.json.decode(data)
    except json.JSONDecodeError as e:
        raise ConfigurationError(source, f"not JSON: {e.msg}", line=e.lineno) from None
    except (ValueError, msgspec.DecodeError, RecursionError) as e:
        raise ConfigurationError(source, f"not JSON: {e}") from None


def _line_of_second(text: str, key: str) -> int | None:
    seen: set[Place] = set()
    for number, place in json_places(text):
        if place[-1] == key and place in seen:
            return number
        seen.add(place)
    return None


def convert(
    source: str, value: Any, type_: type[T] | Any, text: str = "", place: Place = (), *, strict: bool = True
) -> T:
    """
    Check a parsed value and convert it to a type.

    :param text: the TOML or JSON source, to find the line of an error.
    :param place: path of the value in the file.
    :param strict: ``False`` for a text that may represent a number or a truth value.
    :raises ConfigurationError: it does not match the type.
    """
    try:
        converted: T = msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as e:
        message = str(e)
        at = _AT.search(message)
        path: list[str | int] = [
            int(i) if i.isdigit() else key or i for key, i in _PARTS.findall(at["path"] if at else "")
        ]
        message = _AT.sub("", message)
        if message.startswith("Invalid enum value"):
            allowed = _choices(type_info(type_), path)
            message = f"must be {'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)}" if allowed else message
        if field := _FIELD.search(message):
            path.append(field["field"])
            message = "there is no such setting" if field["kind"] == "unknown" else "is missing"
        elif expected := _EXPECTED.fullmatch(message):
            message = _in_words(**expected.groupdict())
        raise wrong(source, message, text, (*place, *_named(value, type_, path))) from None
    return converted


def _in_words(types: str, got: str | None, bound: str | None, limit: str | None) -> str:
    """:returns: what the library says about a value of a wrong type, or beyond a limit, in words of the field."""
    if bound is not None:
        return f"must be {_BOUNDS[bound]} {float(limit or 0):.15g}"
    wanted = " or ".join(_TYPES.get(name, name) for name in types.split(" | ") if name != "null")
    return f"must be {wanted}, not {_TYPES.get(got or '', got)}"


def wrong(source: str, detail: str, text: str, place: Place) -> ConfigurationError:
    """:returns: an error that names the file, the field and, if the file's text is given, the line."""
    line = line_of(text, place) if text else None
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    return ConfigurationError(source, detail, field=field, line=line)


def _choices(info: Type, path: Sequence[str | int]) -> list[str]:
    """:returns: the allowed values of an enumeration within a type, in words."""
    found: list[str] = []
    for kind in info.types if isinstance(info, UnionType) else (info,):
        if isinstance(kind, LiteralType) and not path:
            found += map(json.dumps, kind.values)
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


def check_version(source: str, value: Any, newest: int, text: str = "") -> None:
    """
    :param value: the parsed file; a missing ``version`` means 1.
    :param text: the TOML source.
    :raises ConfigurationError: the file's format version is too new.
    """
    version = value.get("version", 1) if isinstance(value, dict) else 1
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise wrong(source, f"must be a number from 1 to {newest}", text, ("version",))
    if version > newest:
        raise wrong(
            source, f"version {version} is newer than {newest}, the newest supported version", text, ("version",)
        )
