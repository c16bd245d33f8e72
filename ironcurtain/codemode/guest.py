"""
One interpreter process with the variables that programs left in it. asyncio's world.

A program is fed in, and the process stops at everything it cannot do itself: a call, an import, a sleep. It is answered
and goes on, until the program ends. While it is stopped its clock stands still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from ironcurtain.process.accounts import Account
from ironcurtain.services.asyncio_bridge import to_asyncio

_IMPORTS = {"import", "import_stubs"}
_SLEEPS = {"system.sleep", "system.async_sleep"}
_CALLS_USED_UP = "suspension limit"
"""How the library's message begins when a session has made all the calls it may."""


@dataclass(frozen=True, slots=True)
class Ran:
    """
    How a program ended.

    :param broken: the process is not to be used again: a limit stopped it in the middle, or it died.
    :param left_out: how many bytes of value and error were left out.
    """

    value: str | None = None
    error: str | None = None
    broken: bool = False
    left_out: int = 0

    @classmethod
    def failed(cls, error: str, limit: int, *, broken: bool = False) -> Ran:
        """:returns: the end of a program with an error, of which at most ``limit`` bytes are kept."""
        some = kept(error, limit)
        return cls(error=some.text(), broken=broken, left_out=some.missing)


class Guest:
    """
    :param session: a fresh session of the pool.
    :param calls: answers what programs call.
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
        account: Account | None = None,
    ) -> Guest:
        """
        Start a process, with all modules imported in it.

        :param account: as whom it runs, if not as we.
        :raises Unavailable: it cannot be started.
        """
        guest = cls(await shared.checkout(_external(modules), limits, account), modules, calls, clock, limits)
        names = [*(module.identifier for module in modules), *prelude.STUBS]
        ran = await guest.run(f"import {', '.join(names)}", Bounded(0))
        if ran.error is not None:
            await guest.close()
            raise Unavailable(f"the interpreter for programs does not take the tools: {ran.error}")
        return guest

    async def close(self) -> None:
        """End the process, whatever it does."""
        await self._session.__aexit__(None, None, None)

    async def run(self, code: str, output: Bounded) -> Ran:
        """
        Run one program. After a cancel the guest is broken.

        :param output: gets what the program prints.
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
        # The checker learns only from programs that it accepted, so it will not know this one's names.
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
    """Stands for each function: the library wants one, but calls come as snapshots to ``Guest._step``."""
    raise AssertionError("calls are answered by the loop that drives the program")
