"""What runs programs, as the rest of IronCurtain sees it; :mod:`ironcurtain.codemode.monty` is the one we ship."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from ironcurtain.codemode.model import RunResult, Tool, ToolReply

Call = Callable[[str, str, dict[str, Any]], Deferred[ToolReply]]
"""Calls a tool of a server with arguments. Cancelling the Deferred withdraws the call."""


class Interpreter(Protocol):
    """Runs the programs of one session, one at a time; variables stay from one to the next."""

    async def run(self, code: str) -> RunResult:
        """
        Run one program.

        Cancelling ends the program, and withdraws a call that it waits for; its variables are lost then.

        :raises SessionError: the interpreter is closed.
        :raises Unavailable: no interpreter process could be started.
        """

    async def close(self) -> None:
        """End a program that runs, and give everything back. Harmless if repeated."""


class InterpreterFactory(Protocol):
    """Makes the interpreter of a session."""

    def __call__(self, tools: Sequence[Tool], call: Call) -> Awaitable[Interpreter]:
        """
        Make an interpreter.

        :param tools: what its programs can call.
        :param call: carries out a call.
        :raises Unavailable: interpreters cannot be started here.
        """
