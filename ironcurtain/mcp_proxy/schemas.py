"""
Mend the JSON Schemas of tools.

Clients compile the schemas that servers send, and model APIs check them: one keyword with a wrong value makes a client
refuse the whole list of tools, or an API every request with them. Such a keyword is mended if its meaning is plain,
else left out, which allows more values. Schemas are of draft 2020-12, unless they name an older one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from ironcurtain.mcp_proxy.expressions import is_portable

NEWEST = "2020-12"

DEPTH = 64
"""Maximum number of schemas inside one another; what is deeper is replaced by a schema that allows any value."""

PLACE = 80
"""Maximum number of characters shown of the path of a keyword."""

Tell = Callable[[str], None]

_ANY: Mapping[str, Any] = {}

_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_MEANT = {
    "any": "",
    "bool": "boolean",
    "date": "string",
    "datetime": "string",
    "dict": "object",
    "double": "number",
    "enum": "string",
    "float": "number",
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "list": "array",
    "long": "integer",
    "map": "object",
    "none": "null",
    "str": "string",
    "text": "string",
}
"""Names of types in programming languages, and those of JSON Schema; empty for any type."""

_SCHEMAS = frozenset(
    (
        "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
        "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
    )
)  # fmt: skip
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_TABLES = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))
_STRINGS = frozenset(
    ("$anchor", "$comment", "$dynamicAnchor", "$id", "$schema", "contentEncoding", "contentMediaType", "description",
     "format", "id", "title")
)  # fmt: skip
_NUMBERS = frozenset(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"))
_COUNTS = frozenset(
    ("maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties")
)
_TRUTHS = frozenset(("deprecated", "nullable", "readOnly", "uniqueItems", "writeOnly"))
_REFERENCES = frozenset(("$dynamicRef", "$ref"))
_ANCHORS = ("$anchor", "$dynamicAnchor")


def mended(schema: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """
    :param schema: of an object, as the server sent it.
    :param tell: called with what is wrong, in words.
    :returns: the same schema if nothing is wrong with it.
    """
    mending = _Mending(schema, tell)
    result = mending.schema(schema, "", 0)
    return result if mending.said else schema


class _Mending:
    def __init__(self, root: Mapping[str, Any], tell: Tell) -> None:
        self._root, self._tell, self._ids = root, tell, set[str]()
        self._anchors: frozenset[str] | None = None
        self._is_newest = NEWEST in str(root.get("$schema", NEWEST))
        self.said = False

    def schema(self, schema: Mapping[str, Any], place: str, depth: int) -> dict[str, Any]:
        """:returns: a right schema."""
        shown = dict[str, Any]()
        if self._is_newest and isinstance(items := schema.get("items"), list) and items and "prefixItems" not in schema:
            self._say(f"{place}/items", "is a list, as in older drafts; it is taken for prefixItems")
            rest = {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
            older = ("items", "additionalItems")
            schema = {name: each for name, each in schema.items() if name not in older} | {"prefixItems": items} | rest
        for keyword, value in schema.items():
            for name, right in self._keyword(schema, keyword, value, f"{place}/{keyword}", depth):
                shown[name] = right
        return shown

    def _keyword(
        self, schema: Mapping[str, Any], keyword: str, value: Any, place: str, depth: int
    ) -> Iterator[tuple[str, Any]]:
        """:returns: a keyword and its value; nothing for one that is left out."""
        if keyword in _LISTS or (keyword == "items" and isinstance(value, list) and not self._is_newest):
            if not isinstance(value, list) or not value:
                self._say(place, "must be a list of schemas; it is left out")
            else:
                yield keyword, [self._subschema(each, f"{place}/{i}", depth) for i, each in enumerate(value)]
        elif keyword in _SCHEMAS:
            if isinstance(value, dict | bool):
                yield keyword, self._subschema(value, place, depth)
            else:
                self._say(place, "must be a schema; it is left out")
        elif keyword in _TABLES or keyword == "dependencies":
            if isinstance(value, dict):
                yield keyword, dict(self._table(keyword, value, place, depth))
            else:
                self._say(place, "must be an object of schemas; it is left out")
        elif keyword == "type":
            yield from self._type(value, place)
        elif (why := self._fault(schema, keyword, value)) is None:
            yield keyword, value
        else:
            self._say(place, f"{why}; it is left out")

    def _table(self, keyword: str, table: Mapping[str, Any], place: str, depth: int) -> Iterator[tuple[str, Any]]:
        for name, each in table.items():
            where = f"{place}/{name}"
            if keyword == "patternProperties" and not is_portable(name):
                self._say(where, "is no regular expression that all clients understand; it is left out")
            elif keyword == "dependencies" and _are_names(each):
                yield name, each
            else:
                yield name, self._subschema(each, where, depth)

    def _subschema(self, schema: Any, place: str, depth: int) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            self._say(place, "must be a schema; any value is allowed")
        elif depth >= DEPTH:
            self._say(place, "is nested too deeply; any value is allowed")
        else:
            return self.schema(schema, place, depth + 1)
        return _ANY

    def _type(self, value: Any, place: str) -> Iterator[tuple[str, Any]]:
        kinds = value if isinstance(value, list) else [value]
        known = [_MEANT.get(kind.lower(), kind.lower()) if isinstance(kind, str) else "" for kind in kinds]
        different = list(dict.fromkeys(known))
        if not different or not _TYPES.issuperset(different):
            self._say(place, "is no type of JSON Schema; any type is allowed")
        elif different == kinds:
            yield "type", value
        else:
            self._say(place, f"must be {' or '.join(different)}; it is taken as that")
            yield "type", different if isinstance(value, list) else different[0]

    def _fault(self, schema: Mapping[str, Any], keyword: str, value: Any) -> str | None:
        """:returns: why a keyword without subschemas is wrong."""
        if keyword in _STRINGS:
            if not isinstance(value, str):
                return "must be a string"
            if keyword == "$id":
                if value in self._ids:
                    return "occurs twice"
                self._ids.add(value)
        elif keyword == "pattern":
            if not isinstance(value, str) or not is_portable(value):
                return "is no regular expression that all clients understand"
        elif keyword == "required":
            if not _are_names(value):
                return "must be a list of different strings"
        elif keyword == "dependentRequired":
            if not isinstance(value, dict) or not all(map(_are_names, value.values())):
                return "must be an object of lists of different strings"
        elif keyword == "enum":
            if not isinstance(value, list) or not value:
                return "must be a list with a value"
        elif keyword in _NUMBERS:
            if not _is_number(value) or (keyword == "multipleOf" and value <= 0):
                return "must be a number"
        elif keyword in _COUNTS:
            if not _is_number(value) or value < 0 or value % 1 != 0:
                return "must be a whole number"
        elif keyword in _TRUTHS:
            if not isinstance(value, bool):
                return "must be true or false"
            if keyword == "nullable" and "type" not in schema:
                return "needs a type"
        elif keyword in _REFERENCES:
            return self._unresolved(schema, keyword, value)
        elif keyword == "examples" and not isinstance(value, list):
            return "must be a list"
        return None

    def _unresolved(self, schema: Mapping[str, Any], keyword: str, reference: Any) -> str | None:
        """:returns: why a reference leads nowhere."""
        if not isinstance(reference, str):
            return "must be a string"
        seen = [id(schema)]
        while isinstance(reference, str):
            target = self._target(reference)
            if target is None:
                return f"refers to {reference!r}, which is not in the schema"
            if id(target) in seen:
                return "refers to itself"
            seen.append(id(target))
            reference = target.get("$ref") if isinstance(target, dict) else None
        return None

    def _target(self, reference: str) -> Any:
        """:returns: what a reference refers to; ``None`` if it is not in the schema."""
        if reference.partition("#")[0]:
            return self._root if reference in self._names() else None
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return {} if f"#{pointer}" in self._names() else None
        target: Any = self._root
        for part in pointer.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and part.isdecimal() and int(part) < len(target):
                target = target[int(part)]
            elif isinstance(target, dict) and part in target:
                target = target[part]
            else:
                return None
        return target if isinstance(target, dict | bool) else None

    def _names(self) -> frozenset[str]:
        """:returns: the references by which parts of the schema have named themselves."""
        if self._anchors is None:
            self._anchors = frozenset(_names(self._root, 0))
        return self._anchors

    def _say(self, place: str, what: str) -> None:
        self.said = True
        shown = place[1:]
        self._tell(f"{shown if len(shown) <= PLACE else f'{shown[:PLACE]}...'} {what}")


def _names(schema: Any, depth: int) -> Iterator[str]:
    if depth > 2 * DEPTH:
        return
    if isinstance(schema, list):
        for each in schema:
            yield from _names(each, depth + 1)
    elif isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword in _ANCHORS and isinstance(value, str):
                yield f"#{value}"
            elif keyword == "$id" and isinstance(value, str):
                yield value
            else:
                yield from _names(value, depth + 1)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
