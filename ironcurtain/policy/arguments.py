"""
Validate a call's arguments against the tool's input schema.

This module implements the part of JSON Schema (2020-12) that constrains names, types and combinations of schemas.
Keywords that constrain length, size or format are left to the server. A keyword that is not understood makes the check
fail if ignoring it could accept more. Unlike in JSON Schema, arguments that the schema does not declare are refused
unless it has ``additionalProperties``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironcurtain.policy.scalars import equal
from ironcurtain.text.nesting import is_nested_deeper

DEPTH_LIMIT = 64
"""Maximum nesting of schemas (references may be circular), and of arguments, so that records show them whole."""

WORK_LIMIT = 100_000
"""Maximum number of values that are validated in one call (a list of a hundred paths takes a hundred)."""

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}

_COMBINING = frozenset(("$ref", "allOf", "anyOf", "oneOf", "not"))


def problem(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """
    Validate a call's arguments.

    :param schema: the tool's ``inputSchema``.
    :returns: a message that describes the first problem, ``None`` if the arguments are valid.
    """
    if is_nested_deeper(arguments, DEPTH_LIMIT):
        return "the arguments are nested too deeply"
    checker = _Checker(schema)
    try:
        return checker.members(arguments, schema, "", further=False) or checker.combined(dict(arguments), schema, "", 0)
    # A server wrote the schema: it can be anything.
    except (AttributeError, TypeError, ValueError, LookupError, RecursionError):
        return "the tool's input schema is malformed"


class _Checker:
    """
    Validates values against parts of one schema.

    :param whole: the whole schema, in which references are resolved.
    """

    __slots__ = ("_left", "_whole")

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole
        self._left = WORK_LIMIT

    def members(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], place: str, *, further: Any, depth: int = 0
    ) -> str | None:
        """:param further: the schema for undeclared members if ``schema`` has no ``additionalProperties``."""
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", further)
        for name in schema.get("required", ()):
            if name not in value:
                return f"{place}{name} is missing"
        for name, member in value.items():
            if name not in properties and others is False:
                known = ", ".join(sorted(properties)) or "none"
                return f"{place}{name} is not an argument of this tool; its arguments are: {known}"
            if found := self.value(member, properties.get(name, others), f"{place}{name}", depth + 1):
                return found
        return None

    def value(self, value: Any, schema: Any, place: str, depth: int) -> str | None:
        """:param place: the value's name in messages."""
        if schema is True:
            return None
        self._left -= 1
        if not isinstance(schema, dict) or depth > DEPTH_LIMIT or self._left < 0:
            return f"{place} has a schema that cannot be checked"
        wanted = schema.get("type")
        if wanted is not None and not _is_type(value, wanted):
            return f"{place} must be {wanted if isinstance(wanted, str) else ' or '.join(map(str, wanted))}"
        if "enum" in schema and not any(equal(value, allowed) for allowed in schema["enum"]):
            return f"{place} is not one of the allowed values"
        if "const" in schema and not equal(value, schema["const"]):
            return f"{place} is not the allowed value"
        if isinstance(value, dict | list) and (found := self._inside(value, schema, place, depth)):
            return found
        return self.combined(value, schema, place, depth)

    def _inside(self, value: dict[str, Any] | list[Any], schema: dict[str, Any], place: str, depth: int) -> str | None:
        if isinstance(value, dict):
            return self.members(value, schema, f"{place}.", further=True, depth=depth)
        first = schema.get("prefixItems", [])
        rest = schema.get("items", True)
        if isinstance(rest, list):  # drafts before 2020-12 wrote prefixItems this way
            first, rest = rest, schema.get("additionalItems", True)
        if first == [] and rest in (True, {}):
            return None
        for index, item in enumerate(value):
            expected = first[index] if index < len(first) else rest
            if found := self.value(item, expected, f"{place}[{index}]", depth + 1):
                return found
        return None

    def combined(self, value: Any, schema: Mapping[str, Any], place: str, depth: int) -> str | None:
        """Check the keywords that refer to other schemas."""
        if _COMBINING.isdisjoint(schema):
            return None
        if "$ref" in schema and (found := self.value(value, self._referred(schema["$ref"]), place, depth + 1)):
            return found
        for each in schema.get("allOf", ()):
            if found := self.value(value, each, place, depth + 1):
                return found
        for word, most in (("anyOf", None), ("oneOf", 1)):
            if word in schema:
                problems = [self.value(value, each, place, depth + 1) for each in schema[word]]
                fitting = problems.count(None)
                if fitting == 0 or (most is not None and fitting > most):
                    return next(filter(None, problems), f"{place} matches more than one of the alternatives")
        if "not" in schema and self.value(value, schema["not"], place, depth + 1) is None:
            return f"{place} is a value that is not allowed"
        return None

    def _referred(self, reference: Any) -> Any:
        """:returns: the schema that a reference within the document points to, ``None`` if it does not exist."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found: Any = self._whole
        for part in reference[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        return found


def _is_type(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return wanted in _TYPES and _TYPES[wanted](value)
    return any(name in _TYPES and _TYPES[name](value) for name in wanted)
