"""Answer the calls of a program: of tools, through the policy, and of the prelude. Runs in asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pydantic_monty import ExternalResult
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ironcurtain.codemode import prelude
from ironcurtain.codemode.bounded import bounded
from ironcurtain.codemode.functions import Function, Module, Parameter
from ironcurtain.codemode.interpreter import Call
from ironcurtain.codemode.model import CodeLimits, ToolReply
from ironcurtain.codemode.pictures import Pictures
from ironcurtain.errors import IronCurtainError
from ironcurtain.services.asyncio_bridge import to_asyncio

DEPTH = 64
"""Maximum nesting of an argument (JSON parsers fail at about a thousand)."""


def bind(function: Function, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """
    Map each value to the tool's name of the parameter.

    ``None`` for an argument that is not required and cannot be null means that it is omitted.

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


class Calls:
    """
    :param modules: the tools.
    :param call: makes a tool call.
    :ivar pictures: those that tools returned.
    """

    log = Logger()

    def __init__(self, modules: Sequence[Module], call: Call, limits: CodeLimits) -> None:
        self._call, self._limits = call, limits
        self._tools = {
            f"{module.identifier}.{each.identifier}": each for module in modules for each in module.functions
        }
        self.pictures = Pictures()
        self._prelude = prelude.functions(modules, self.pictures.show)

    async def answer(self, name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> ExternalResult:
        """
        Answer one call.

        :param name: of module and function, such as ``filesystem.read_file``.
        :returns: a value for the program, or an exception to raise in it.
        """
        try:
            if (tool := self._tools.get(name)) is not None:
                return self._result(await self._reply(tool, bind(tool, positional, named)))
            if (function := self._prelude.get(name)) is not None:
                return {"return_value": await asyncio.to_thread(function, *positional, **named)}
        except (TypeError, ValueError) as e:
            return {"exception": type(e)(bounded(str(e), self._limits.result_bytes))}
        return {"exception": NameError(f"there is no function {name!r}")}

    async def _reply(self, tool: Function, arguments: dict[str, Any]) -> ToolReply:
        try:
            return await to_asyncio(self._call(tool.server, tool.tool, arguments))
        except CancelledError:
            return ToolReply(None, "the call was withdrawn")
        except IronCurtainError as e:
            return ToolReply(None, str(e))
        except Exception:
            self.log.failure("a call of {tool} of {server} failed", tool=tool.tool, server=tool.server)
            return ToolReply(None, "the call failed inside IronCurtain; see its log")

    def _result(self, reply: ToolReply) -> ExternalResult:
        if reply.error is not None:
            kind = PermissionError if reply.denied else RuntimeError
            return {"exception": kind(bounded(reply.error, self._limits.result_bytes))}
        value = self.pictures.handles(reply.value)
        if (size := _size(value)) > (most := self._limits.tool_result_bytes):
            return {"exception": RuntimeError(f"the result has {size} bytes, over the limit of {most}; ask for a part")}
        return {"return_value": value}


def _size(value: Any) -> int:
    return len(value.encode(errors="replace")) if isinstance(value, str) else len(msgspec.json.encode(value))
