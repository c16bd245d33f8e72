"""The interface of the interpreter for programs; :mod:`ironcurtain.codemode.monty` implements it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from ironcurtain.codemode.model import RunResult, Tool, ToolReply

Call = Callable[[str, str, dict[str, Any]], Deferred[ToolReply]]
"""Calls a tool of a server with arguments. Cancelling the Deferred withdraws the call."""


class Interpreter(Protocol):
    """Runs the programs of one session, one at a time; variables are kept between programs."""

    async def run(self, code: str) -> RunResult:
        """
        Run one program.

        Cancelling ends the program, and withdraws its current call; its variables are lost.

        :raises SessionError: the interpreter is closed.
        :raises Unavailable: no interpreter process could be started.
        """

    async def close(self) -> None:
        """End the current program, and release everything. Can be called again."""


class InterpreterFactory(Protocol):
    """Creates the interpreter of a session."""

    def __call__(self, tools: Sequence[Tool], call: Call) -> Awaitable[Interpreter]:
        """
        Create an interpreter.

        :param tools: the tools that its programs can call.
        :param call: makes a tool call.
        :raises Unavailable: interpreters cannot be started here.
        """
