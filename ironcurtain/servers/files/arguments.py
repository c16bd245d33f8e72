"""
Check a call's arguments against the JSON schema of its tool.

It supports only the part of JSON Schema that IronCurtain's schemas use. Unknown arguments are refused, so that a
misspelt one is not ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironcurtain.servers.files.failures import FileError

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


def check(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """
    Check arguments and fill in defaults.

    :param schema: a schema of type ``object``.
    :returns: all properties that were given or have a default.
    :raises FileError: an argument is missing, unknown, or has a wrong type or value.
    """
    _check_object(schema, arguments, "")
    defaults = {name: each["default"] for name, each in schema["properties"].items() if "default" in each}
    return {**defaults, **arguments}


def _check_object(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> None:
    properties: Mapping[str, Any] = schema["properties"]
    for name in value:
        if name not in properties:
            known = ", ".join(properties) or "none"
            raise FileError(f"unknown argument {where}{name!r}; known: {known}")
    for name in schema.get("required", ()):
        if name not in value:
            raise FileError(f"argument {where + name!r} is missing")
    for name, each in value.items():
        _check(properties[name], each, f"{where}{name}")


def _check(schema: Mapping[str, Any], value: Any, where: str) -> None:
    kind = schema["type"]
    fits = isinstance(value, _TYPES[kind])
    if not fits or (kind == "number" and isinstance(value, bool)):
        raise FileError(f"argument {where!r} must be of type {kind}")
    if "enum" in schema and value not in schema["enum"]:
        raise FileError(f"argument {where!r} must be one of {', '.join(schema['enum'])}")
    if kind == "object":
        _check_object(schema, value, f"{where}.")
    elif kind == "array":
        if len(value) < schema.get("minItems", 0):
            raise FileError(f"argument {where!r} is empty")
        for index, item in enumerate(value):
            _check(schema["items"], item, f"{where}[{index}]")
