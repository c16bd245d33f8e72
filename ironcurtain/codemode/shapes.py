"""Say in Python's terms what a JSON schema admits. Schemas come from servers and may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEPTH = 4
"""How deep a shape is spelled out; below it stands ``Any``."""

LENGTH = 300
"""Most characters of a shape."""

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_CHECKED = {**_SCALARS, "array": "list[Any] | tuple[Any, ...]", "object": "dict[Any, Any]"}


def types(schema: object, root: Mapping[str, Any]) -> frozenset[str] | None:
    """
    The JSON types that a schema admits.

    :param root: the whole schema, for references inside it.
    :returns: ``None`` if that is not clear, so anything may be right.
    """
    return _types(schema, root, DEPTH)


def _types(schema: object, root: Mapping[str, Any], depth: int) -> frozenset[str] | None:
    if not isinstance(schema, Mapping) or depth == 0:
        return None
    if "$ref" in schema:
        return _types(_referred(schema["$ref"], root), root, depth - 1)
    for word in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(word), list):
            each = [_types(choice, root, depth - 1) for choice in choices]
            return None if not each or None in each else frozenset().union(*(one for one in each if one))
    named = schema.get("type")
    names = [name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)]
    return frozenset(names) if names and all(name in _CHECKED for name in names) else None


def _referred(reference: object, root: Mapping[str, Any]) -> object:
    found: object = root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def checked(admitted: frozenset[str] | None) -> str:
    """
    The type that a program is checked against before it runs.

    Wider than the schema on purpose: Python's checker compares what lists hold more strictly than is useful here, and a
    right program must never be refused.
    """
    if admitted is None or not admitted:
        return "Any"
    return " | ".join(_CHECKED[name] for name in sorted(admitted))


def shape(schema: object, root: Mapping[str, Any]) -> str:
    """What the model reads: types, allowed values and the members of objects, within :data:`LENGTH`."""
    text = _shape(schema, root, DEPTH)
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"


def _shape(schema: object, root: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping) or depth == 0:
        return "Any"
    if "$ref" in schema:
        return _shape(_referred(schema["$ref"], root), root, depth - 1)
    for word in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(word), list) and choices:
            return " | ".join(dict.fromkeys(_shape(choice, root, depth - 1) for choice in choices[:20]))
    if isinstance(values := schema.get("enum"), list) and values:
        return " | ".join(repr(value) for value in values[:20])
    if "const" in schema:
        return repr(schema["const"])
    named = schema.get("type")
    if isinstance(named, list):
        return " | ".join(_named(name, schema, root, depth) for name in named[:10]) or "Any"
    return _named(named, schema, root, depth)


def _named(name: object, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if name == "array":
        return f"list[{_shape(schema.get('items'), root, depth - 1)}]"
    if name == "object":
        return _object(schema, root, depth)
    return _SCALARS.get(name, "Any") if isinstance(name, str) else "Any"


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not properties:
        return "dict[str, Any]"
    needed = required if isinstance(required, list) else []
    members = [
        f"{str(name)!r}{'' if name in needed else '?'}: {_shape(each, root, depth - 1)}"
        for name, each in list(properties.items())[:20]
    ]
    return "{" + ", ".join(members) + "}"
