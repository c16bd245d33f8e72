"""Turn the arguments of a function call into the arguments of a tool. Pure; the values come from a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ironcurtain.codemode.functions import Function, Parameter

DEPTH = 64
"""How deep an argument may be nested (our choice; JSON parsers give up at about a thousand)."""


def bind(function: Function, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """
    Give each value the name that the tool has for it.

    ``None`` for an argument that is not required and cannot be null means that it is left out.

    :returns: a JSON object.
    :raises TypeError: too many, unknown, missing or repeated arguments, or one that JSON cannot express.
    """
    parameters = {parameter.identifier: parameter for parameter in function.parameters}
    if len(positional) > len(parameters):
        raise TypeError(f"{function.identifier}() takes {len(parameters)} positional arguments, not {len(positional)}")
    given = dict(zip(parameters, positional, strict=False))
    for name, value in named.items():
        if name in given:
            raise TypeError(f"{function.identifier}() got argument {name!r} twice")
        if name not in parameters and not function.open:
            known = ", ".join(parameters) or "none"
            raise TypeError(f"{function.identifier}() has no argument {name!r}; it has: {known}")
        given[name] = value
    missing = [name for name, parameter in parameters.items() if parameter.required and name not in given]
    if missing:
        raise TypeError(f"{function.identifier}() lacks {', '.join(map(repr, missing))}")
    return {
        parameters[name].name if name in parameters else name: _json(value, name, DEPTH)
        for name, value in given.items()
        if not _left_out(parameters.get(name), value)
    }


def _left_out(parameter: Parameter | None, value: Any) -> bool:
    return value is None and parameter is not None and not parameter.required and not parameter.nullable


def _json(value: Any, where: str, depth: int) -> Any:
    if depth == 0:
        raise TypeError(f"argument {where!r} is nested over {DEPTH} deep")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return _within_64_bits(value, where)
    if isinstance(value, float):
        if value - value != 0:
            raise TypeError(f"argument {where!r} holds {value}, which JSON does not have")
        return value
    if isinstance(value, list | tuple):
        return [_json(item, where, depth - 1) for item in value]
    if isinstance(value, dict):
        return {_key(key, where): _json(item, where, depth - 1) for key, item in value.items()}
    raise TypeError(
        f"argument {where!r} holds a {type(value).__name__}; give str, int, float, bool, None, list or dict"
    )


def _within_64_bits(value: int, where: str) -> int:
    if not -(2**63) <= value < 2**64:
        raise TypeError(f"argument {where!r} holds an integer of over 64 bits; give it as a string")
    return value


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"argument {where!r} holds a dict whose keys are not all strings")
    return key
