"""
The implementation of the interpreter: pydantic-monty, with a process for each session.

Internal coroutines run in asyncio; the public methods are for Twisted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime

from ironcurtain.codemode import pool, prelude
from ironcurtain.codemode.bounded import Bounded
from ironcurtain.codemode.calls import Calls
from ironcurtain.codemode.functions import Module, modules
from ironcurtain.codemode.guest import Guest
from ironcurtain.codemode.interpreter import Call
from ironcurtain.codemode.model import CodeLimits, RunResult, Tool
from ironcurtain.errors import SessionError
from ironcurtain.sandbox.spec import Sandbox
from ironcurtain.services.asyncio_bridge import from_asyncio


class MontyInterpreters:
    """
    Creates interpreters; the default factory.

    :param clock: for programs that sleep.
    :param limits: limits of each session's programs.
    :param around: the sandbox of their processes; ``None``: :func:`ironcurtain.codemode.pool.sandbox`.
    """

    def __init__(self, clock: IReactorTime, limits: CodeLimits | None = None, around: Sandbox | None = None) -> None:
        self._clock, self._limits, self._around = clock, limits or CodeLimits(), around or pool.sandbox()

    def prepare(self) -> None:
        """Begin to start a process for the first interpreter, which need not wait for it then, and has its errors."""
        from_asyncio(pool.shared.open(self._around)).addErrback(lambda _: None)

    async def __call__(self, tools: Sequence[Tool], call: Call) -> MontyInterpreter:
        """
        Create an interpreter, and start its process.

        :raises Unavailable: it cannot be started here.
        """
        interpreter = MontyInterpreter(offered(tools), call, self._clock, self._limits, self._around)
        await interpreter.open()
        return interpreter


def offered(tools: Sequence[Tool]) -> tuple[Module, ...]:
    """:returns: the modules for these tools, for the description in the prompt."""
    return modules(tools, prelude.STUBS)


class MontyInterpreter:
    """
    Runs the programs of one session, one at a time. See :class:`ironcurtain.codemode.interpreter.Interpreter`.

    :param modules: the tools as programs see them.
    :param call: makes a tool call.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        call: Call,
        clock: IReactorTime,
        limits: CodeLimits,
        around: Sandbox,
    ) -> None:
        self._modules, self._clock, self._limits, self._around = modules, clock, limits, around
        self._calls = Calls(modules, call, limits)
        self._turn = asyncio.Lock()
        self._guest: Guest | None = None
        self._running: asyncio.Task[Any] | None = None
        self._lost = self._closed = False

    async def open(self) -> None:
        """
        Start the process now, not with the first program.

        :raises Unavailable: it cannot be started.
        """
        await from_asyncio(self._ready())

    async def run(self, code: str) -> RunResult:
        """
        Run one program; cancelling ends it.

        :raises SessionError: the interpreter is closed, or was closed meanwhile.
        :raises Unavailable: no process could be started.
        """
        try:
            return await from_asyncio(self._run(code))
        except CancelledError:
            if self._closed:
                raise SessionError("SESSION_CLOSED", "the interpreter was closed") from None
            raise

    async def close(self) -> None:
        """End the current program, and its process."""
        await from_asyncio(self._close())

    async def _run(self, code: str) -> RunResult:
        async with self._turn:
            if self._closed:
                raise SessionError("SESSION_CLOSED", "the interpreter is closed")
            self._running = asyncio.current_task()
            try:
                return await self._result(code)
            except BaseException:
                await self._discard()
                self._lost = True
                raise
            finally:
                self._running = None

    async def _result(self, code: str) -> RunResult:
        limits = self._limits
        if len(code) > limits.code_characters:
            reason = f"the program has {len(code)} characters, over the limit of {limits.code_characters}; split it"
            return RunResult("", None, reason, False)
        guest, output = await self._ready(), Bounded(limits.result_bytes)
        ran = await guest.run(code, output)
        lost, self._lost = self._lost or ran.broken, False
        if ran.broken:
            await self._discard()
        shown = self._calls.pictures.take()
        return RunResult(output.text(), ran.value, ran.error, lost, output.missing + ran.left_out, shown)

    async def _ready(self) -> Guest:
        if self._guest is None:
            self._guest = await Guest.start(self._modules, self._calls, self._clock, self._limits, self._around)
        return self._guest

    async def _discard(self) -> None:
        guest, self._guest = self._guest, None
        if guest is not None:
            await guest.close()

    async def _close(self) -> None:
        self._closed = True
        if self._running is not None:
            self._running.cancel()
        async with self._turn:
            await self._discard()
