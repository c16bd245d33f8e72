"""Answer the calls that a program makes: of tools, through the policy, and of the prelude. asyncio's world."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pydantic_monty import ExternalResult
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ironcurtain.codemode import prelude
from ironcurtain.codemode.binding import bind
from ironcurtain.codemode.bounded import bounded
from ironcurtain.codemode.functions import Function, Module
from ironcurtain.codemode.interpreter import Call
from ironcurtain.codemode.limits import Limits
from ironcurtain.codemode.model import ToolReply
from ironcurtain.errors import IronCurtainError
from ironcurtain.services.asyncio_bridge import to_asyncio


class Calls:
    """
    :param modules: the tools.
    :param call: carries out a call of one.
    """

    log = Logger()

    def __init__(self, modules: Sequence[Module], call: Call, limits: Limits) -> None:
        self._call, self._limits = call, limits
        self._tools = {
            f"{module.identifier}.{each.identifier}": each for module in modules for each in module.functions
        }
        self._prelude = prelude.functions(modules)

    async def answer(self, name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> ExternalResult:
        """
        Answer one call.

        :param name: of module and function, as ``filesystem.read_file``.
        :returns: a value for the program, or an exception that it sees raised there.
        """
        try:
            if (tool := self._tools.get(name)) is not None:
                return self._result(await self._reply(tool, bind(tool, positional, named)))
            if (function := self._prelude.get(name)) is not None:
                return {"return_value": await asyncio.to_thread(function, *positional, **named)}
        except (TypeError, ValueError) as e:
            return {"exception": type(e)(bounded(str(e), self._limits.result_bytes))}
        return {"exception": NameError(f"nothing is called {name!r}")}

    async def _reply(self, tool: Function, arguments: dict[str, Any]) -> ToolReply:
        try:
            return await to_asyncio(self._call(tool.server, tool.tool, arguments))
        except CancelledError:
            return ToolReply(None, "the call was withdrawn")
        except IronCurtainError as e:
            return ToolReply(None, str(e))
        except Exception:
            self.log.failure("a call of {tool} of {server} failed", tool=tool.tool, server=tool.server)
            return ToolReply(None, "the call failed inside IronCurtain; its log tells why")

    def _result(self, reply: ToolReply) -> ExternalResult:
        if reply.error is not None:
            kind = PermissionError if reply.denied else RuntimeError
            return {"exception": kind(bounded(reply.error, self._limits.result_bytes))}
        size = _size(reply.value)
        if size > self._limits.tool_result_bytes:
            most = self._limits.tool_result_bytes
            return {"exception": RuntimeError(f"the result has {size} bytes, over the limit of {most}; ask for a part")}
        return {"return_value": reply.value}


def _size(value: Any) -> int:
    return len(value.encode(errors="replace")) if isinstance(value, str) else len(msgspec.json.encode(value))
