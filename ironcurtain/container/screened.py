"""A container whose main program is an agent's program, in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late

from ironcurtain.container.container import STOP_SECONDS, Container, last_words
from ironcurtain.container.engine import ContainerState, Engine
from ironcurtain.container.errors import ContainerDied, EngineError, EngineUnavailable, NotReady
from ironcurtain.container.execution import shielded
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container.proxy_listener import ProxyListener
from ironcurtain.container.sidecar import Sidecar
from ironcurtain.container.spec import ContainerSpec
from ironcurtain.container.terminal import ContainerTerminal
from ironcurtain.terminal.model import ProgramExit

READY_SECONDS = 30.0
"""
Time limit in seconds from the container's start until its program may start: including the probe, 0.5 s on an idle
machine.
"""


class ScreenedContainer(Container):
    """
    A container whose main program is the agent's program.

    :param spec: has a terminal, and a command of :func:`~ironcurtain.container.terminal.waiting`.
    :param on_end: called once with the program's end, after the last output, also after :meth:`stop`; not if it did not
        start.
    :param sidecar: see :class:`Container`, with ``listener``.
    :ivar terminal: the program's terminal.
    """

    def __init__(
        self,
        engine: Engine,
        spec: ContainerSpec,
        terminal: ContainerTerminal,
        on_end: Callable[[ProgramExit], None],
        sidecar: Sidecar | None = None,
        listener: ProxyListener | None = None,
    ) -> None:
        super().__init__(engine, spec, lambda why: None, sidecar, listener)
        self.terminal, self._on_end = terminal, on_end

    async def stop(self) -> None:
        """End the program and everything else in it, and remove it. Can be called if it has ended or is gone."""
        await shielded(Deferred.fromCoroutine(self._end()))

    async def _begin(self) -> tuple[ProbeFinding, ...]:
        try:
            return await self._opened()
        except BaseException:
            self.terminal.close()
            raise

    async def _opened(self) -> tuple[ProbeFinding, ...]:
        await self.terminal.open(self.id)
        try:
            ready = Deferred.fromCoroutine(self._get_ready())
            return await ready.addTimeout(READY_SECONDS, self._engine.clock)
        except Late:
            raise NotReady(READY_SECONDS, last_words(self.terminal.said)) from None
        except ContainerDied:
            raise await self._death() from None

    async def _get_ready(self) -> tuple[ProbeFinding, ...]:
        findings = await super()._begin()
        await self.terminal.go()
        return findings

    async def _watch(self) -> None:
        try:
            ended = await self._how()
            await self.terminal.drained()
        except CancelledError:
            return
        self._on_end(ended)

    async def _how(self) -> ProgramExit:
        try:
            with suppress(EngineError):  # it is already gone
                await self._engine.wait(self.id)
            state = ContainerState.of(await self._engine.inspect(self.id))
        except EngineUnavailable as e:
            return ProgramExit(None, f"the state of the container is unknown: {e}")
        except EngineError as e:
            return ProgramExit(None, f"another program removed the container ({e.message})")
        return ProgramExit(state.exit_status, self._reason(state))

    async def _end(self) -> None:
        self.terminal.flow()
        try:
            with suppress(EngineError):  # whatever the state, removing ends it
                await self._engine.stop(self.id, STOP_SECONDS)
            if self._watching is not None:
                await self._watching
        finally:
            self.terminal.close()
        await self._remove()

    async def _said(self) -> str:
        await self.terminal.drained()  # the Engine may tell the end before the last output has come
        return self.terminal.said
