"""
Derive from a tool's schema which values of an argument a kept approval covers.

An argument has a bound only if this module understands its schema completely: text, a number in a range, and lists and
objects of these. Any other schema has none, above all one that selects between values (such as ``enum``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

DEPTH_LIMIT = 16
"""Maximum nesting of schemas (references may be circular)."""

_METADATA = frozenset(("title", "description", "default", "examples", "$comment", "deprecated"))
"""Keywords that do not constrain values (JSON Schema 2020-12, validation, section 9)."""

_KNOWN: Mapping[str, frozenset[str]] = {
    "string": frozenset(("type", "minLength", "maxLength")),
    "integer": frozenset(("type", "minimum", "maximum")),
    "number": frozenset(("type", "minimum", "maximum")),
    "array": frozenset(("type", "items", "minItems", "maxItems")),
    "object": frozenset(("type", "properties", "required", "additionalProperties")),
}
"""The keywords that this module understands, by type. Any other keyword could select between values."""

_KNOWN_AT_ROOT = _KNOWN["object"] | {"$schema", "$defs", "definitions"}


def bounds(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, str]:
    """
    :param schema: the tool's input schema. A server wrote it, so it can be anything.
    :returns: a mapping of argument name to a description of its bound. Arguments without a bound are not in it.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not _keywords(schema) <= _KNOWN_AT_ROOT:
        return {}
    found = ((name, _bound(value, properties.get(name), schema, 0)) for name, value in arguments.items())
    return {name: words for name, words in found if words is not None}


def named(name: str) -> str:
    """:returns: the name of an argument for display. A name that is not an identifier is quoted as JSON."""
    return name if name.replace("-", "_").isidentifier() else json.dumps(name, ensure_ascii=False)


def _bound(value: Any, schema: Any, whole: Mapping[str, Any], depth: int) -> str | None:
    if not isinstance(schema, Mapping) or depth > DEPTH_LIMIT:
        return None
    keywords = _keywords(schema)
    if len(keywords) == 1 and (other := _only_form(schema, min(keywords), whole)) is not None:
        return _bound(value, other, whole, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):  # such as ["string", "null"]; two types other than null would select between values
        kinds = [each for each in kind if each != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if not isinstance(kind, str) or not keywords <= _KNOWN.get(kind, frozenset()):
        return None
    match kind, value:
        case "string", str():
            return _text(value, schema.get("maxLength"))
        case (("integer" | "number"), (int() | float())) if not isinstance(value, bool):
            return _number(kind, value, schema.get("minimum"), schema.get("maximum"))
        case "array", list():
            return _list([_bound(item, schema.get("items"), whole, depth + 1) for item in value])
        case "object", dict() if isinstance(schema.get("properties"), Mapping):
            members = schema["properties"]
            return _object({name: _bound(each, members.get(name), whole, depth + 1) for name, each in value.items()})
    return None


def _keywords(schema: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(schema) - _METADATA


def _only_form(schema: Mapping[str, Any], keyword: str, whole: Mapping[str, Any]) -> Any:
    """:returns: the only schema that ``keyword`` refers to; ``None`` if it refers to none or several."""
    if keyword == "$ref":
        return _referred(schema["$ref"], whole)
    if keyword in ("anyOf", "oneOf", "allOf") and isinstance(forms := schema[keyword], list):
        forms = [form for form in forms if form != {"type": "null"}]
        return forms[0] if len(forms) == 1 else None
    return None


def _referred(reference: Any, whole: Mapping[str, Any]) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = whole
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _text(value: str, most: Any) -> str | None:
    if most is None:
        return "any text"
    fits = isinstance(most, int) and len(value) <= most
    return f"any text of at most {most} characters" if fits else None


def _number(kind: str, value: float, least: Any, most: Any) -> str | None:
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in (least, most)):
        return None
    what = "a whole number" if kind == "integer" else "a number"
    return f"{what} from {least} to {most}" if least <= value <= most else None


def _list(items: list[str | None]) -> str | None:
    if not items or None in items:
        return None
    return f"a list of: {' or '.join(sorted(set(_known(items))))}"


def _object(members: Mapping[str, str | None]) -> str | None:
    if not members or None in members.values():
        return None
    return f"{{{', '.join(f'{named(name)}: {members[name]}' for name in sorted(members))}}}"


def _known(items: list[str | None]) -> Iterator[str]:
    return (item for item in items if item is not None)
