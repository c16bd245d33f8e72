"""An agent in a container as a backend: each iteration has a container of its own."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import AccountLimitReached, IronCurtainError, SessionError
from ironcurtain.files.removal import remove
from ironcurtain.loop.backend import IterationTask, OutputHandler, RunningProgram
from ironcurtain.loop.model import IterationMode
from ironcurtain.session.manager import Slot
from ironcurtain.session.parts import Core, SessionAgent, SessionKind
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.model import Mode as ViewerMode
from ironcurtain.terminal.model import ProgramExit

LONGEST_WAIT = 30.0
"""Seconds that an agent itself may wait for a limit of its account, in a loop that waits for longer ones."""


class ContainerBackend:
    """
    :param name: name of the agent.
    :param kind: creates it.
    :param tools: tools of the session, started.
    :param waits: whether an iteration without a terminal ends when a limit of its account is reached.
    """

    where = "in a container, under policy and recorded"

    def __init__(self, core: Core, name: str, kind: SessionKind[Any], tools: Any, waits: bool = False) -> None:
        self._core, self._kind, self._tools, self._waits = core, kind, tools, waits
        self._slot = Slot(core.services.home.slots, core.id)
        self._running: _InContainer | None = None
        self.name = name

    def shown(self, mode: IterationMode) -> tuple[str, ...]:
        """:returns: its name; the command in the container is recorded separately."""
        return (self.name,)

    async def start(self) -> None:
        """:raises TooMany: the maximum number of sessions with containers is running."""
        self._slot.take(self._core.services.settings.limits.max_concurrent_sessions)

    async def stop(self) -> None:
        """Release the slot."""
        self._slot.release()

    async def run(self, task: IterationTask, owner: OutputHandler) -> RunningProgram:
        """Start a container, and the agent in it."""
        self._running = None
        await self._core.services.in_thread(self._forget)
        self._running = (
            _OnScreen(self._agent(task), task, owner, self._core.services.clock)
            if task.in_terminal
            else self._answering(task, owner)
        )
        await self._running.start()
        return self._running

    def cost(self) -> float | None:
        """:returns: the cost of the last one in US dollars, as far as its requests show it."""
        return self._running.cost if self._running is not None else None

    def limit_ends(self) -> float | None:
        """See :class:`~ironcurtain.loop.backend.LoopBackend`."""
        return self._running.limit if self._waits and self._running is not None else None

    def _answering(self, task: IterationTask, owner: OutputHandler) -> _InContainer:
        return _Answering(self._agent(task), task, owner, self._core.services.clock)

    def _agent(self, task: IterationTask) -> SessionAgent:
        services = self._core.services
        # The loop's own terminal is already recorded.
        silent = msgspec.structs.replace(services.settings.terminal, record=False)
        settings = msgspec.structs.replace(services.settings, terminal=silent)
        if self._waits and not task.in_terminal and settings.agents.longest_wait_seconds is None:
            agents = msgspec.structs.replace(settings.agents, longest_wait_seconds=LONGEST_WAIT)
            settings = msgspec.structs.replace(settings, agents=agents)
        size = task.size if task.in_terminal else None
        core = replace(
            self._core,
            request=replace(self._core.request, task=task.prompt, terminal=size),
            resumed=False,
            services=replace(services, settings=settings),
            end=lambda reason: None,
        )
        return self._kind.make_agent(core, self._tools)

    def _forget(self) -> None:
        """Remove the agent's own files, so that the next iteration starts without them; the workspace is kept."""
        remove(self._core.paths.agent_home)


class _InContainer:
    """An agent at work; its container is removed before :attr:`done` fires."""

    log = Logger()

    def __init__(self, agent: SessionAgent, task: IterationTask, owner: OutputHandler, clock: IReactorTime) -> None:
        self._agent, self._task, self._owner, self._clock = agent, task, owner, clock
        self.done: Deferred[ProgramExit] = Deferred()
        self._over = False
        self.cost: float | None = None
        self.limit: float | None = None
        """When the limit of the account ends that ended it, in seconds on the clock."""

    async def start(self) -> None:
        """Start it."""
        await self._agent.start()

    def stop(self) -> None:
        """End it, with its container."""
        Deferred.fromCoroutine(self._agent.stop()).addErrback(self._unclean)

    def kill(self) -> None:
        """End it, too: the end of a container has a time limit."""
        self.stop()

    def _ended(self, ended: ProgramExit) -> None:
        if not self._over:
            self._over = True
            Deferred.fromCoroutine(self._finish(ended)).addErrback(self._unclean)

    async def _finish(self, ended: ProgramExit) -> None:
        self.cost = self._agent.usage().cost
        try:
            await self._agent.stop()
        finally:
            self.done.callback(ended)

    def _unclean(self, failure: Failure) -> None:
        self.log.failure("a container did not end cleanly", failure)


class _Answering(_InContainer):
    """An agent that processes a message, and answers."""

    _work: Deferred[Any] | None = None

    async def start(self) -> None:
        await super().start()
        self._work = Deferred.fromCoroutine(self._answer())
        self._work.addBoth(self._answered)

    def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()

    async def _answer(self) -> None:
        reply = await self._agent.respond(self._task.prompt)
        self._owner.received(reply.text.encode("utf-8", "replace") + b"\n")

    def _answered(self, result: Any) -> None:
        if not isinstance(result, Failure):
            self._ended(ProgramExit(0))
        elif result.check(CancelledError):
            self._ended(ProgramExit(None, "it was cancelled"))
        elif result.check(IronCurtainError):
            if isinstance(result.value, AccountLimitReached):
                self.limit = self._clock.seconds() + result.value.seconds
            self._ended(ProgramExit(1, str(result.value)))
        else:
            self._unclean(result)
            self._ended(ProgramExit(1, f"internal error: {type(result.value).__name__}"))


class _OnScreen(_InContainer):
    """An agent with its own screen: this views its terminal, and acts as the program in the loop's terminal."""

    _attachment: Attachment | None = None
    _paused = False

    async def start(self) -> None:
        self._task.stream.begin(self, self)
        await super().start()
        if self._agent.terminal is None:
            raise SessionError("SESSION_INIT_FAILED", "this agent has no interactive interface: use --no-pty")
        self._attachment = self._agent.terminal.attach(self, ViewerMode.DRIVE, *self._task.size)

    def write(self, data: bytes) -> None:
        if self._attachment is not None:
            self._attachment.typed(data)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        if self._attachment is not None:
            self._attachment.drained()

    def resize(self, columns: int, rows: int) -> None:
        if self._attachment is not None:
            self._attachment.resized(columns, rows)

    def close(self) -> None:
        self.stop()

    def draw(self, data: bytes) -> bool:
        self._owner.received(data)
        return not self._paused

    def hold(self, full: bool) -> None:
        self._owner.input_full(full)

    def ended(self, reason: str, status: int | None) -> None:
        self._attachment = None
        self._ended(ProgramExit(status, reason))
