"""
An interpreter process that keeps variables between programs. Its coroutines run in asyncio.

The process pauses a program at each operation that the host has to do: a call, an import, a sleep. It resumes with the
host's answer. The program's time limit does not count pauses.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from pydantic_monty import (
    AsyncFunctionSnapshot,
    AsyncFutureSnapshot,
    AsyncMontySession,
    AsyncNameLookupSnapshot,
    AsyncSnapshot,
    ExternalModule,
    MontyComplete,
    MontyError,
    MontyRuntimeError,
    MontySyntaxError,
    MontyTypingError,
)
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from ironcurtain.codemode import diagnostics, prelude
from ironcurtain.codemode.bounded import Bounded, bounded, kept, shown
from ironcurtain.codemode.calls import Calls
from ironcurtain.codemode.functions import Module
from ironcurtain.codemode.model import CodeLimits
from ironcurtain.codemode.pool import shared
from ironcurtain.codemode.prelude import declarations
from ironcurtain.errors import Unavailable
from ironcurtain.sandbox import cgroups
from ironcurtain.sandbox.spec import Sandbox
from ironcurtain.services.asyncio_bridge import to_asyncio

_IMPORTS = {"import", "import_stubs"}
_SLEEPS = {"system.sleep", "system.async_sleep"}
_CALLS_USED_UP = "suspension limit"
"""Beginning of the library's message when a session exceeds its number of calls."""


class Ran(msgspec.Struct, frozen=True):
    """
    The result of a program.

    :param broken: whether the process must not be used again, because it exceeded a limit or died.
    :param left_out: number of bytes cut from value and error.
    """

    value: str | None = None
    error: str | None = None
    broken: bool = False
    left_out: int = 0

    @classmethod
    def failed(cls, error: str, limit: int, *, broken: bool = False) -> Ran:
        """:returns: the result of a program that failed, with at most ``limit`` bytes of the error."""
        some = kept(error, limit)
        return cls(error=some.text(), broken=broken, left_out=some.missing)


class Guest:
    """
    :param session: a new session of the pool.
    :param calls: answers the programs' calls.
    :param clock: for programs that sleep.
    """

    def __init__(
        self,
        session: AsyncMontySession,
        modules: Sequence[Module],
        calls: Calls,
        clock: IReactorTime,
        limits: CodeLimits,
    ) -> None:
        self._session, self._modules, self._calls = session, modules, calls
        self._clock, self._limits = clock, limits
        self._uncertain: set[str] = set()

    @classmethod
    async def start(
        cls,
        modules: Sequence[Module],
        calls: Calls,
        clock: IReactorTime,
        limits: CodeLimits,
        around: Sandbox,
    ) -> Guest:
        """
        Start a process and import all modules in it.

        :param around: the sandbox of the process.
        :raises Unavailable: it cannot be started.
        """
        guest = cls(await shared.checkout(_external(modules), limits, around), modules, calls, clock, limits)
        names = [*(module.identifier for module in modules), *prelude.STUBS]
        ran = await guest.run(f"import {', '.join(names)}\nfrom tools import show", Bounded(0))
        if ran.error is not None:
            await guest.close()
            raise Unavailable(f"the interpreter cannot import the tools: {ran.error}")
        return guest

    async def close(self) -> None:
        """End the process, even if it is busy."""
        await self._session.__aexit__(None, None, None)
        cgroups.sweep()

    async def run(self, code: str, output: Bounded) -> Ran:
        """
        Run one program. After a cancel the guest is broken.

        :param output: called with what the program prints.
        """
        try:
            return await self._checked(code, output)
        except (MontySyntaxError, MontyRuntimeError) as e:
            self._uncertain |= diagnostics.names_in(code)
            return Ran.failed(e.display(), self._limits.result_bytes, broken=_at_a_limit(e))
        except (MontyError, RuntimeError) as e:
            return Ran(error=f"the interpreter process was lost: {bounded(str(e), 1000)}", broken=True)

    async def _checked(self, code: str, output: Bounded) -> Ran:
        try:
            return await self._drive(code, output, unchecked=False)
        except MontyTypingError as e:
            reasons = diagnostics.fatal(e.display(), self._modules, self._uncertain)
        if reasons is not None:
            return Ran.failed(reasons, self._limits.result_bytes)
        # The checker learns names only from accepted programs, so it will not know this program's.
        self._uncertain |= diagnostics.names_in(code)
        return await self._drive(code, output, unchecked=True)

    async def _drive(self, code: str, output: Bounded, *, unchecked: bool) -> Ran:
        snapshot = await self._session.feed_start(
            code, print_callback=lambda _stream, text: output.write(text), skip_type_check=unchecked
        )
        while not isinstance(snapshot, MontyComplete):
            snapshot = await self._step(snapshot)
        value = shown(snapshot.output, self._limits.result_bytes)
        return Ran() if value is None else Ran(value.text(), left_out=value.missing)

    async def _step(
        self, snapshot: AsyncFunctionSnapshot | AsyncNameLookupSnapshot | AsyncFutureSnapshot
    ) -> AsyncSnapshot:
        if isinstance(snapshot, AsyncNameLookupSnapshot):
            return await snapshot.resume()
        if isinstance(snapshot, AsyncFutureSnapshot):
            return await snapshot.resume_auto()
        if not snapshot.is_os_function:
            return await snapshot.resume(
                await self._calls.answer(str(snapshot.function_name), snapshot.args, snapshot.kwargs)
            )
        if snapshot.function_name in _IMPORTS:
            return await snapshot.resume_auto()
        if snapshot.function_name in _SLEEPS:
            await to_asyncio(deferLater(self._clock, max(0.0, float(snapshot.args[0]))))
            return await snapshot.resume({"return_value": None})
        return await snapshot.resume_not_handled()


def _at_a_limit(error: MontySyntaxError | MontyRuntimeError) -> bool:
    inner = error.exception()
    return isinstance(inner, MemoryError | TimeoutError) or str(inner).startswith(_CALLS_USED_UP)


def _external(modules: Sequence[Module]) -> dict[str, ExternalModule]:
    made = {
        module.identifier: ExternalModule(
            {each.identifier: _answered_by_the_loop for each in module.functions}, stubs=declarations(module)
        )
        for module in modules
    }
    named = prelude.functions(modules)
    for name, stubs in prelude.STUBS.items():
        attributes = {each.partition(".")[2]: _answered_by_the_loop for each in named if each.startswith(f"{name}.")}
        made[name] = ExternalModule(attributes, stubs=stubs)
    return made


def _answered_by_the_loop() -> None:
    """Placeholder for each function: the library requires one, but passes calls to ``Guest._step`` as snapshots."""
    raise AssertionError("calls are answered by Guest._step")
