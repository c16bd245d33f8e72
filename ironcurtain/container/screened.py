"""A container whose main program is the agent itself, in a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from twisted.internet.defer import CancelledError, Deferred, TimeoutError

from ironcurtain.container.container import STOP_SECONDS, Container, last_words
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import ContainerDied, EngineError, EngineUnavailable, NotReady
from ironcurtain.container.findings import Finding
from ironcurtain.container.shielding import shielded
from ironcurtain.container.spec import ContainerSpec
from ironcurtain.container.state import State
from ironcurtain.container.terminal import ContainerTerminal
from ironcurtain.terminal.model import ProgramExit

READY_SECONDS = 30.0
"""How long it may take from the container's start until its program may start: with the look at it, 0.5 s on an idle
machine."""


class ScreenedContainer(Container):
    """
    One container, which ends with the agent's program.

    :param spec: with a terminal, and a command of :func:`~ironcurtain.container.terminal.waiting`.
    :param on_end: told once how it ended, after the last output, also after :meth:`stop`; not if it did not start.
    """

    def __init__(
        self, engine: Engine, spec: ContainerSpec, terminal: ContainerTerminal, on_end: Callable[[ProgramExit], None]
    ) -> None:
        super().__init__(engine, spec, lambda why: None)
        self._terminal, self._on_end = terminal, on_end

    async def stop(self) -> None:
        """End the program and all else in it, and remove it; harmless if it has ended or is gone."""
        await shielded(Deferred.fromCoroutine(self._end()))

    async def _begin(self) -> tuple[Finding, ...]:
        try:
            return await self._opened()
        except BaseException:
            self._terminal.close()
            raise

    async def _opened(self) -> tuple[Finding, ...]:
        await self._terminal.open(self.id)
        try:
            ready = Deferred.fromCoroutine(self._get_ready())
            return await ready.addTimeout(READY_SECONDS, self._engine.clock)
        except TimeoutError:
            raise NotReady(READY_SECONDS, last_words(self._terminal.said)) from None
        except ContainerDied:
            raise await self._death() from None

    async def _get_ready(self) -> tuple[Finding, ...]:
        await self._engine.start(self.id)
        findings = await self._probe()
        await self._terminal.go()
        return findings

    async def _watch(self) -> None:
        try:
            ended = await self._how()
            await self._terminal.drained()
        except CancelledError:
            return
        self._on_end(ended)

    async def _how(self) -> ProgramExit:
        try:
            with suppress(EngineError):  # it is gone already
                await self._engine.wait(self.id)
            state = State.of(await self._engine.inspect(self.id))
        except EngineUnavailable as e:
            return ProgramExit(None, f"the container is out of sight: {e}")
        except EngineError as e:
            return ProgramExit(None, f"the container was removed by somebody else ({e.message})")
        return ProgramExit(state.exit_status, state.reason)

    async def _end(self) -> None:
        self._terminal.flow()
        try:
            with suppress(EngineError):  # whatever it is, removing ends it
                await self._engine.stop(self.id, STOP_SECONDS)
            if self._watching is not None:
                await self._watching
        finally:
            self._terminal.close()
        await self._remove()

    async def _said(self) -> str:
        return self._terminal.said
