"""
The functions that programs see: the server and tool of each, and the names and types of its arguments.

Servers send the schemas, which can be anything.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ironcurtain.codemode.model import Tool
from ironcurtain.text.display import shorten

DEPTH = 4
"""Maximum depth of a described type; deeper ones are ``Any``."""

LENGTH = 300
"""Maximum length in characters of a described type."""

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_CHECKED = {**_SCALARS, "array": "list[Any] | tuple[Any, ...]", "object": "dict[Any, Any]"}


def types(schema: object, root: Mapping[str, Any]) -> frozenset[str] | None:
    """
    Find the JSON types that a schema admits.

    :param root: the complete schema, for references inside it.
    :returns: ``None`` if unclear, so any type may be right.
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
    :returns: the type that a program is checked against before it runs.

    It is intentionally wider than the schema: Python's checker compares element types of lists too strictly, and a
    correct program must never be refused.
    """
    if admitted is None or not admitted:
        return "Any"
    return " | ".join(_CHECKED[name] for name in sorted(admitted))


def shape(schema: object, root: Mapping[str, Any]) -> str:
    """:returns: the type for the model: types, allowed values and members of objects, within :data:`LENGTH`."""
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


NAME_LIMIT = 64
"""Maximum length in characters of a generated name, before its distinguishing suffix."""

STANDARD_MODULES = frozenset(
    [
        "asyncio",
        "base64",
        "binascii",
        "bisect",
        "builtins",
        "collections",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "functools",
        "hashlib",
        "itertools",
        "json",
        "math",
        "os",
        "pathlib",
        "posixpath",
        "random",
        "re",
        "sys",
        "time",
        "tomllib",
        "types",
        "typing",
        "unicodedata",
    ]
)
"""Modules of the interpreter (pydantic-monty 1.4), which a server must not hide."""

KEYWORDS = frozenset([*keyword.kwlist, *keyword.softkwlist])

MODULE_NAMES = KEYWORDS | STANDARD_MODULES | frozenset(dir(builtins))
"""Names that a server must not have."""

FUNCTION_NAMES = KEYWORDS | frozenset({"Any", "bool", "dict", "float", "int", "list", "str", "tuple"})
"""Names that a tool must not have, since the declarations use them for types."""


def identifiers(names: Iterable[str], taken: frozenset[str], word: str, suffix: str = "_") -> dict[str, str]:
    """
    Generate one identifier for each name.

    The result does not depend on the order of the names, so that the same tools always have the same names.

    :param taken: identifiers that must not be used.
    :param word: prefix of a name that begins with a digit, and replacement of a name without usable characters.
    :param suffix: appended to a name that is taken.
    :returns: the identifier of each name; all are different, and none begins with an underscore.
    """
    made: dict[str, str] = {}
    used = set(taken)
    for name in sorted(set(names), key=lambda each: (each != _plain(each, word), each)):
        wanted = identifier = _plain(name, word)
        if identifier in taken:
            wanted = identifier = f"{identifier}{suffix}"
        number = 2
        while identifier in used:
            identifier, number = f"{wanted}_{number}", number + 1
        used.add(identifier)
        made[name] = identifier
    return made


def _plain(name: str, word: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:NAME_LIMIT]
    return f"{word}_{plain}".rstrip("_") if not plain or plain[0].isdigit() else plain


PARAMETER_LIMIT = 100
"""Maximum number of named parameters of a function; a tool with more takes them all as ``**extra``."""


class Parameter(msgspec.Struct, frozen=True):
    """
    One argument of a tool.

    :param name: the tool's name for it.
    :param identifier: the programs' name for it.
    :param checked: the type that programs are checked against.
    :param shape: the type for the model.
    :param note: the server's description, on one line.
    :param nullable: ``None`` can be a value; otherwise it means that the argument is omitted.
    """

    name: str
    identifier: str
    required: bool
    nullable: bool
    checked: str
    shape: str
    note: str


class Function(msgspec.Struct, frozen=True):
    """
    One tool as a function.

    :param open: whether arguments that the schema does not name are forwarded.
    """

    server: str
    tool: str
    identifier: str
    description: str
    parameters: tuple[Parameter, ...]
    open: bool


class Module(msgspec.Struct, frozen=True):
    """The functions of one server, with the module's name in programs."""

    server: str
    identifier: str
    functions: tuple[Function, ...]


def modules(tools: Sequence[Tool], taken: Iterable[str] = ()) -> tuple[Module, ...]:
    """
    Create the modules of a set of tools.

    :param taken: names that modules must not have, besides Python's.
    """
    reserved = MODULE_NAMES | frozenset(taken)
    servers = identifiers((tool.server for tool in tools), reserved, "server", "_mcp")
    return tuple(
        Module(server, identifier, _functions([tool for tool in tools if tool.server == server]))
        for server, identifier in sorted(servers.items(), key=lambda pair: pair[1])
    )


def _functions(tools: Sequence[Tool]) -> tuple[Function, ...]:
    by_name = {tool.name: tool for tool in tools}
    made = identifiers(by_name, FUNCTION_NAMES, "tool")
    return tuple(_function(by_name[name], made[name]) for name in by_name)


def _function(tool: Tool, identifier: str) -> Function:
    properties = tool.schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    extra = tool.schema.get("additionalProperties")
    unnamed = len(known) > PARAMETER_LIMIT
    is_open = unnamed or extra is True or (isinstance(extra, Mapping) and extra != {"not": {}})
    parameters = () if unnamed else _parameters(known, tool.schema)
    return Function(tool.server, tool.name, identifier, tool.description, parameters, is_open)


def _parameters(properties: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    made = identifiers(map(str, properties), KEYWORDS, "argument")
    found = [_parameter(str(name), made[str(name)], each, name in needed, schema) for name, each in properties.items()]
    return tuple(sorted(found, key=lambda parameter: not parameter.required))


def _parameter(name: str, identifier: str, schema: object, required: bool, root: Mapping[str, Any]) -> Parameter:
    admitted = types(schema, root)
    note = schema.get("description") if isinstance(schema, Mapping) else None
    return Parameter(
        name=name,
        identifier=identifier,
        required=required,
        nullable=admitted is not None and "null" in admitted,
        checked=checked(admitted),
        shape=shorten(shape(schema, root), LENGTH),
        note=shorten(note, 200) if isinstance(note, str) else "",
    )
