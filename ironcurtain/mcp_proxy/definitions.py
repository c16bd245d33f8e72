"""
Mend the definitions in a server's lists.

Official clients refuse a whole list for one wrong definition in it, and with it the definitions of all other servers.
What is wrong is mended if its meaning is plain, else left out, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ironcurtain.mcp_proxy import schemas, shapes
from ironcurtain.text.nesting import is_nested_deeper
from ironcurtain.text.quantities import noun

LEVELS = 200
"""Most lists and objects inside each other in a definition: a schema that is kept whole has two for each in it."""

NAMED = 3
"""Maximum number of parts that one fault names."""


class Listed(NamedTuple):
    """
    A definition.

    :param sent: as the server sent it.
    :param shown: as agents see it.
    """

    sent: Mapping[str, Any]
    shown: Mapping[str, Any]


class _Unusable(Exception):
    """A definition has to be left out. The text says why."""


Tell = Callable[[str], None]


def mended(member: str, definitions: Iterable[Any]) -> tuple[list[Listed], list[str]]:
    """
    :param member: the member of the result that has the list, such as ``tools``.
    :param definitions: JSON values.
    :returns: the usable definitions, and sentences about what was wrong.
    """
    identity, mend = _KINDS[member]
    usable: list[Listed] = []
    faults: dict[str, list[str]] = {}
    for index, sent in enumerate(definitions):
        name = sent.get(identity) if isinstance(sent, dict) else None
        said: list[str] = []
        try:
            if not isinstance(sent, dict):
                raise _Unusable("must be an object")
            if not isinstance(name, str):
                raise _Unusable(f"{identity} must be a string")
            if is_nested_deeper(sent, LEVELS):
                raise _Unusable("nested too deeply")
            shown = mend(sent, said.append)
            usable.append(Listed(sent, sent if not said else shown))
        except _Unusable as e:
            said = [f"{e}; left out"]
        for fault in said:
            faults.setdefault(fault, []).append(name if isinstance(name, str) else f"number {index + 1}")
    return usable, [f"{_some(member, names)}: {fault}" for fault, names in faults.items()]


def once(listed: Iterable[Listed], identity: str, member: str) -> tuple[list[Listed], list[str]]:
    """
    :param identity: the member by which definitions are told apart.
    :param member: as for :func:`mended`.
    :returns: the first definition of each identity, and a sentence about the others.
    """
    first: dict[str, Listed] = {}
    twice: dict[str, None] = {}
    for each in listed:
        name = each.sent[identity]
        if first.setdefault(name, each) is not each:
            twice[name] = None
    said = [f"{_some(member, list(twice))}: listed more than once; the first is used"] if twice else []
    return list(first.values()), said


def _some(member: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{noun(len(names), _NOUNS[member])} {', '.join(names[:NAMED])}{more}"


def _tool(sent: dict[str, Any], tell: Tell) -> dict[str, Any]:
    shown = _checked(sent, shapes.TOOL, tell)
    shown["inputSchema"] = _input_schema(sent, tell)
    if "outputSchema" in shown:
        schema = shown.pop("outputSchema")
        if isinstance(schema, dict) and (schema.get("type") == "object" or _has_members(schema)):
            shown["outputSchema"] = _object_schema(schema, "outputSchema", tell)
        else:
            tell("outputSchema must be the schema of an object; it is left out")
    return shown


def _prompt(sent: dict[str, Any], tell: Tell) -> dict[str, Any]:
    shown = _checked(sent, shapes.PROMPT, tell)
    arguments = shown.pop("arguments", [])
    if not isinstance(arguments, list):
        tell("arguments must be a list; they are left out")
    elif "arguments" in sent:
        shown["arguments"] = [_argument(argument, tell) for argument in arguments if _has_name(argument, tell)]
    return shown


def _resource(sent: dict[str, Any], tell: Tell) -> dict[str, Any]:
    return _named(_checked(sent, shapes.RESOURCE, tell), "uri", tell)


def _template(sent: dict[str, Any], tell: Tell) -> dict[str, Any]:
    return _named(_checked(sent, shapes.TEMPLATE, tell), "uriTemplate", tell)


_KINDS: Mapping[str, tuple[str, Callable[[dict[str, Any], Tell], dict[str, Any]]]] = {
    "tools": ("name", _tool),
    "prompts": ("name", _prompt),
    "resources": ("uri", _resource),
    "resourceTemplates": ("uriTemplate", _template),
}

_NOUNS = {"tools": "tool", "prompts": "prompt", "resources": "resource", "resourceTemplates": "resource template"}


def _checked(sent: Mapping[str, Any], members: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    """:returns: a definition without wrong members that may be missing."""
    shown = dict(sent)
    for name, shape in members.items():
        if name in shown and (why := shapes.wrong(shown[name], shape)):
            del shown[name]
            tell(f"{name} is wrong ({why}); it is left out")
    return shown


def _named(shown: dict[str, Any], identity: str, tell: Tell) -> dict[str, Any]:
    if not isinstance(shown.get("name"), str):
        tell(f"name must be a string; the {identity} is used")
        shown["name"] = shown[identity]
    return shown


def _has_name(argument: Any, tell: Tell) -> bool:
    if isinstance(argument, dict) and isinstance(argument.get("name"), str):
        return True
    tell("an argument has no name; it is left out")
    return False


def _argument(argument: dict[str, Any], tell: Tell) -> dict[str, Any]:
    shown = dict(argument)
    for name in ("title", "description", "required"):
        if name in shown and shapes.wrong({"name": "", name: shown[name]}, shapes.Argument):
            del shown[name]
            tell(f"{name} of an argument is wrong; it is left out")
    return shown


def _input_schema(sent: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
    schema = sent.get("inputSchema", None)
    if schema is None or schema is True:
        tell("inputSchema is missing; one that allows any arguments is used")
        return {"type": "object"}
    if not isinstance(schema, dict):
        raise _Unusable("inputSchema must be an object")
    return _object_schema(schema, "inputSchema", tell)


def _object_schema(schema: Mapping[str, Any], where: str, tell: Tell) -> dict[str, Any]:
    """
    :returns: the schema of an object, as clients require it at the top.
    :raises _Unusable: it is not the schema of an object.
    """
    shown = dict(schema)
    kind = shown.get("type")
    if kind != "object":
        if not (kind is None or _is_object(kind) or (isinstance(kind, list) and any(map(_is_object, kind)))):
            raise _Unusable(f"the type of {where} must be object")
        tell(f"the type of {where} must be object; it is taken as that")
        shown["type"] = "object"
    properties = shown.get("properties", {})
    if not isinstance(properties, dict):
        tell(f"properties of {where} must be an object; they are left out")
        del shown["properties"]
    elif not all(isinstance(each, dict) for each in properties.values()):
        shown["properties"] = {name: _property(name, each, where, tell) for name, each in properties.items()}
    if "required" in shown and shapes.wrong(shown["required"], list[str]):
        tell(f"required of {where} must be a list of strings; it is left out")
        del shown["required"]
    if "$schema" in shown and not isinstance(shown["$schema"], str):
        tell(f"$schema of {where} must be a string; it is left out")
        del shown["$schema"]
    return dict(schemas.mended(shown, lambda what: tell(f"{where}: {what}")))


def _property(name: str, schema: Any, where: str, tell: Tell) -> Any:
    if isinstance(schema, dict):
        return schema
    if isinstance(schema, bool):  # valid JSON Schema, but refused by some clients
        tell(f"the property {name} of {where} is {str(schema).lower()}; the same schema as an object is used")
        return {} if schema else {"not": {}}
    tell(f"the property {name} of {where} must be an object; any value is allowed")
    return {}


def _is_object(kind: Any) -> bool:
    return isinstance(kind, str) and kind.lower() == "object"


def _has_members(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") is None and isinstance(schema.get("properties"), dict)
