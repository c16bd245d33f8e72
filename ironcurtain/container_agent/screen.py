"""
An agent program with its own screen in a terminal: it is the container's main program, and the container ends with it.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec
from msgspec.structs import replace
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.agents.adapter import Adapter, Facts
from ironcurtain.approver.trusted_input import InputSource
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container.terminal import TerminalOwner
from ironcurtain.container_agent.leftovers import removed
from ironcurtain.container_agent.proxies import Proxies, Traffic
from ironcurtain.container_agent.sandbox_life import record_start
from ironcurtain.errors import SessionError, UsageError
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.session.terminal import open_recording
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import InputPiece
from ironcurtain.terminal.model import ProgramExit, ProgramStream, ScreenModel, sane_size
from ironcurtain.terminal.sequences import SEQUENCE
from ironcurtain.terminal.typed_text import TypedText
from ironcurtain.text.display import one_line

BUDGET_SECONDS = 1.0
"""Seconds between checks of the time budget."""

TASK_LIMIT = 100_000
"""
Maximum size in bytes of a task: the program gets it as one argument, which Linux limits to 131071 bytes (execve(2)).
"""

STOPPED = 128 + signal.SIGTERM
"""Exit status of a program that IronCurtain ended: the same for all agents."""

BLANK_SECONDS = 1.0
"""Seconds of a blank screen after which a notice says that the agent is starting."""

TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
"""The terminal type for the program."""


OnEnd = Callable[[ProgramExit], None]
"""Called once with a program's end."""


class OwnedStream(ProgramStream, Protocol):
    """A program's terminal, for a hub. Whoever gets its output is set before the program starts."""

    owner: TerminalOwner


class ScreenedSandbox(Protocol):
    """A sandbox whose main program is the agent's program, in a terminal."""

    @property
    def id(self) -> str:
        """What it is called in records, once it is created."""

    @property
    def name(self) -> str:
        """What it is called by those who look for it."""

    @property
    def terminal(self) -> OwnedStream:
        """The program's terminal."""

    async def start(self) -> tuple[ProbeFinding, ...]:
        """Create, start and probe it, and then start the program. If that fails, nothing is left of it."""

    async def stop(self) -> None:
        """End it with everything in it, and remove it. Can be called if it has ended or is gone."""


class ScreenMaking(msgspec.Struct, frozen=True):
    """
    Functions that an agent in a terminal needs, which work once the session's other parts are up.

    :param sandbox: creates the sandbox without starting it; takes the command, its environment, and the function to
        call once with the program's end.
    :param place: writes the agent's files.
    :param orient: returns the orientation for the agent, once its tools are known.
    :param screen: creates a screen model of a size in columns and rows.
    """

    sandbox: Callable[[tuple[str, ...], Mapping[str, str], OnEnd], Awaitable[ScreenedSandbox]]
    place: Callable[[Facts], None]
    orient: Callable[[], Awaitable[str]]
    screen: Callable[[int, int], ScreenModel]


class StartNotice:
    """
    Passes a program's output on. While the screen is blank, it shows a notice that the program is starting.

    :param hub: hub of the terminal.
    """

    def __init__(self, hub: Hub, clock: IReactorTime, name: str) -> None:
        self._hub, self._clock = hub, clock
        self._line = f"\x1b7\x1b[2m{one_line(name, 60)} is starting ...\x1b[0m".encode()
        self._timer: IDelayedCall | None = clock.callLater(BLANK_SECONDS, self._say)

    def received(self, data: bytes) -> None:
        """For the terminal: the program's output."""
        if self._timer is not None:
            self.close()
            if not SEQUENCE.sub(b"", data).strip():
                self._timer = self._clock.callLater(BLANK_SECONDS, self._say)
        self._hub.received(data)

    def input_full(self, full: bool) -> None:
        """For the terminal."""
        self._hub.input_full(full)

    def close(self) -> None:
        """Remove the notice. Can be called twice."""
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
        elif timer is not None:
            self._hub.received(b"\x1b8\x1b[K")

    def _say(self) -> None:
        self._hub.received(self._line)


class ScreenAgent:
    """
    :param size: initial columns and rows of the terminal.
    :param first: whether there is no conversation to continue.
    """

    log = Logger()

    def __init__(
        self,
        core: Core,
        proxies: Proxies,
        adapter: Adapter,
        facts: Facts,
        making: ScreenMaking,
        size: tuple[int, int],
        first: bool,
    ) -> None:
        self._core, self._proxies, self._adapter, self._facts = core, proxies, adapter, facts
        self._making, self._first, self._size = making, first, sane_size(*size)
        self._sandbox: ScreenedSandbox | None = None
        self._stopping = False
        self._notice: StartNotice | None = None
        self._began = 0.0
        self._looking = LoopingCall(self._traffic.look)
        self._looking.clock = core.services.clock
        self.terminal: Hub | None = None

    async def start(self) -> None:
        """
        Start the container, and the program once the probe has succeeded.

        :raises UsageError: the task is too long.
        :raises SessionError: the budget was used up before a resume.
        :raises NotReady: it took too long.
        """
        task = self._core.request.task
        if len(task.encode()) > TASK_LIMIT:
            raise UsageError(
                f"a task has at most {TASK_LIMIT} bytes: put it into a file in the workspace, and name that file"
            )
        command = self._adapter.screen(self._facts, self._first, task)
        environment = {**self._adapter.environment(self._facts), **TERMINAL}
        self._traffic.begin()
        sandbox = await self._making.sandbox(command, environment, self._ended)
        self._making.place(replace(self._facts, orientation=await self._making.orient()))
        self.terminal = hub = self._hub(sandbox.terminal)
        notice = StartNotice(hub, self._core.services.clock, self._adapter.display_name)
        self._notice = sandbox.terminal.owner = notice
        self._sandbox = sandbox
        try:
            findings = await sandbox.start()
        except BaseException:
            notice.close()
            hub.ended(ProgramExit(None, "it did not start"))
            raise
        record_start(self._core, sandbox.id, findings)
        self._core.audit.append("run", command=list(command))
        self._began = self._core.services.clock.seconds()
        self._looking.start(BUDGET_SECONDS, now=False)

    async def respond(self, message: str) -> Reply:
        """:raises SessionError: always, since messages are typed in the terminal."""
        raise SessionError("MESSAGE_FAILED", "this agent does not accept messages: attach to its terminal")

    async def stop(self) -> None:
        """End the program, and remove its container."""
        self._stopping = True
        if self._sandbox is not None:
            await removed(self._sandbox, self._core)

    def usage(self) -> Usage:
        """:returns: its usage so far."""
        return self._traffic.usage()

    @property
    def model(self) -> str:
        """The name of the model that was chosen when it started; empty: the default of its program."""
        return self._facts.model

    @property
    def _traffic(self) -> Traffic:
        return self._proxies.traffic

    def _hub(self, stream: OwnedStream) -> Hub:
        core, size = self._core, self._size
        recording = open_recording(core.paths, core.services, size, self._adapter.display_name)
        screen, typed = self._making.screen(*size), TypedText()

        def record(pieces: list[InputPiece]) -> None:
            for line in typed.feed(pieces):
                core.trusted_input.add(line.typed, InputSource.TERMINAL, line.text)

        return Hub(stream, core.services.clock, screen, size, recording=recording, typed=record)

    def _ended(self, ended: ProgramExit) -> None:
        if self._looking.running:
            self._looking.stop()
        took = round((self._core.services.clock.seconds() - self._began) * 1000, 1)
        self._core.audit.append("run-end", status=ended.status, durationMs=took, reason=ended.reason)
        why = "the session was ended" if self._stopping else _reason(ended)
        if self.terminal is not None and self._notice is not None:
            self._notice.close()
            self.terminal.ended(ProgramExit(STOPPED if self._stopping else ended.status, why))
        if not self._stopping:
            self._core.end(why)


def _reason(ended: ProgramExit) -> str:
    if ended.status is None:
        return ended.reason
    return f"the agent ended: {ended.reason}" if ended.status else "the agent ended"
