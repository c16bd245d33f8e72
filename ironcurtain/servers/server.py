"""
The protocol of IronCurtain's MCP servers: one line in, at most one line out; and their main program.

It supports the revisions of the Model Context Protocol that begin with ``initialize`` (2024-11-05 to 2025-11-25). It
never asks its client for roots and ignores offered ones: what a server may access is fixed at start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import ironcurtain
from ironcurtain.errors import IronCurtainError, UsageError
from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, Framer, TooLong

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Supported protocol revisions, oldest first."""


Part = dict[str, Any]
"""One content part of a tool result, as in the Model Context Protocol."""

Call = Callable[[str, dict[str, Any]], list[Part]]
"""Carries out a tool, given its name and arguments; raises :class:`IronCurtainError` with the text for the agent."""


class ToolServer:
    """
    Answers the messages of one client.

    :param name: the server's name.
    :param instructions: for the client's model.
    :param definitions: of the tools, as in the answer to ``tools/list``.
    """

    def __init__(self, name: str, instructions: str, definitions: Sequence[dict[str, Any]], call: Call) -> None:
        self._name, self._instructions, self._definitions, self._carry_out = name, instructions, definitions, call
        self._tools = {definition["name"] for definition in definitions}
        self._ready = False
        self._methods: dict[str, Callable[[Any], Any]] = {
            "initialize": self._initialize,
            "ping": lambda params: {},
            "tools/list": lambda params: {"tools": self._definitions},
            "tools/call": self._call,
        }

    def handle(self, line: bytes | TooLong) -> bytes | None:
        """
        Process one line.

        :param line: without its end.
        :returns: the answer, with its end; ``None`` if there is none.
        """
        if isinstance(line, TooLong):
            return codec.error(None, codec.INVALID_REQUEST, f"message larger than {OUTBOUND_LIMIT} bytes")
        try:
            message = codec.parse(line)
        except codec.InvalidMessage as e:
            return codec.error(e.id, e.code_number, e.detail)
        if not isinstance(message, codec.Request):
            return None
        try:
            return self._answer(message)
        except codec.InvalidMessage as e:
            return codec.error(message.id, e.code_number, e.detail)

    def _answer(self, request: codec.Request) -> bytes:
        method = self._methods.get(request.method)
        if method is None:
            raise codec.InvalidMessage(codec.METHOD_NOT_FOUND, f"no such method: {request.method[:100]}")
        if not self._ready and request.method not in ("initialize", "ping"):
            raise codec.InvalidMessage(codec.INVALID_REQUEST, "initialize first")
        params = {} if request.params is None else codec.decode(request.params)
        if not isinstance(params, dict):
            raise codec.InvalidMessage(codec.INVALID_PARAMS, "params must be an object")
        answer = codec.result(request.id, codec.encode(method(params)))
        if len(answer) > OUTBOUND_LIMIT:
            return codec.result(request.id, codec.encode(_failed("the answer is too large; ask for a part of it")))
        return answer

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self._ready:
            raise codec.InvalidMessage(codec.INVALID_REQUEST, "already initialized")
        self._ready = True
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self._name, "version": ironcurtain.__version__},
            "instructions": self._instructions,
        }

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            raise codec.InvalidMessage(codec.INVALID_PARAMS, "a call has a name and an object of arguments")
        if name not in self._tools:
            raise codec.InvalidMessage(codec.INVALID_PARAMS, f"unknown tool: {name[:100]}")
        try:
            return {"content": self._carry_out(name, arguments or {}), "isError": False}
        except IronCurtainError as e:
            return _failed(str(e))
        except OSError as e:
            return _failed(f"input/output error: {e.strerror}")


def _failed(reason: str) -> dict[str, Any]:
    content: list[Part] = [{"type": "text", "text": reason}]
    return {"content": content, "isError": True}


READ_SIZE = 256 * 1024


def account_of(arguments: Sequence[str]) -> tuple[tuple[int, int] | None, Sequence[str]]:
    """
    :returns: the uid and gid at the beginning of a command line, if any, and the rest of it.
    :raises UsageError: they are not two numbers.
    """
    if not arguments or not arguments[0].startswith("--account="):
        return None, arguments
    if (found := re.fullmatch(r"--account=([0-9]{1,10}):([0-9]{1,10})", arguments[0])) is None:
        raise UsageError(f"{arguments[0]} is not a uid and gid")
    return (int(found[1]), int(found[2])), arguments[1:]


def become(uid: int, gid: int, later: Iterable[str]) -> None:
    """
    Switch to another account permanently, with no other group than ``gid``.

    :param later: modules to import first, since the account may be unable to read them.
    :raises UsageError: this process is not root.
    """
    for module in later:
        import_module(module)
    try:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    except (OSError, OverflowError) as e:
        raise UsageError(f"cannot become {uid}:{gid}, which only root can: {e}") from None


def serve(server: ToolServer) -> None:
    """Answer requests from descriptor 0 on descriptor 1 until the input ends."""
    for descriptor in (0, 1):
        os.set_blocking(descriptor, True)
    framer = Framer(OUTBOUND_LIMIT)
    while data := os.read(0, READ_SIZE):
        for line in framer.feed(data):
            if (answer := server.handle(line)) is not None:
                _write(answer)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
