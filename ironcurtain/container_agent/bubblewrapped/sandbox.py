"""The sandbox of bubblewrap in which an agent's programs run, for as long as the session lasts."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.container.container import CROWDED, ProgramEnded, last_words
from ironcurtain.container.errors import ContainerDied
from ironcurtain.container.execution import GRACE_SECONDS, Sink, shielded
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container_agent.bubblewrapped.channel import Channel, Order, PipedProgram
from ironcurtain.container_agent.bubblewrapped.probe import probe
from ironcurtain.errors import Unavailable
from ironcurtain.process.bounded import Kept
from ironcurtain.process.directory import in_directory
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.awaited_sockets import awaited_sockets
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.bubblewrap_options import FILES_DESCRIPTOR, HANDOVER_DESCRIPTOR
from ironcurtain.sandbox.cgroups import sweep
from ironcurtain.sandbox.handover import Handover, Sockets
from ironcurtain.sandbox.spec import Sandbox

START_SECONDS = 10.0
"""Time limit in seconds for a sandbox to start (some 80 ms on an idle machine of two processors)."""

COUNT_SECONDS = 10.0
"""
Time limit in seconds for counting processes (it takes milliseconds): the agent can stop the first program, and nothing
else limits how long a message would wait then.
"""

END_SECONDS = 10.0
"""Time limit in seconds for ending programs, beyond the grace period; then the sandbox itself is killed."""

SAID_LIMIT = 4000
"""Most bytes that are kept of what the sandbox itself says, to explain its end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """
    A sandbox of an agent.

    :param name: for people.
    :param sandbox: has one listener, the MITM proxy's.
    :param first_program: the command that starts its first program; the number of a descriptor is appended.
    :param environment: the complete environment of its programs, besides what each gets.
    :param directory: where programs start.
    """

    name: str
    sandbox: Sandbox
    first_program: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    directory: str


class BubblewrapSandbox:
    """
    One sandbox. See :class:`~ironcurtain.container_agent.agent_sandbox.AgentSandbox`, also for its methods.

    :param reactor: must run in the main thread: the kernel ends the sandbox with the thread that started it.
    :param accept: takes the listening socket of its network, on which the agent's requests to models come.
    :param on_death: called once with the reason if it ends without :meth:`stop`.
    """

    def __init__(
        self,
        reactor: Any,
        plan: Plan,
        accept: Callable[[socket.socket], Awaitable[asyncio.Server]],
        on_death: Callable[[ContainerDied], None],
    ) -> None:
        self._reactor, self._plan, self._accept, self._on_death = reactor, plan, accept, on_death
        self._channel = Channel(reactor)
        self._process: Any = None
        self._said = Kept(SAID_LIMIT)
        self._over: Deferred[None] = Deferred()
        self._server: asyncio.Server | None = None
        self._up = False
        self.id = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self._plan.name

    @property
    def most_processes(self) -> int:
        """Maximum number of its processes and threads."""
        return self._plan.sandbox.limits.processes

    async def start(self) -> tuple[ProbeFinding, ...]:
        """
        Start and probe it.

        :raises Unavailable: no sandbox can be made.
        """
        starting = Deferred.fromCoroutine(self._begin())
        try:
            await starting.addTimeout(START_SECONDS, self._reactor)
            findings = await probe(self, self._plan.sandbox)
        except BaseException as e:
            await shielded(Deferred.fromCoroutine(self.stop()))
            if isinstance(e, Late):
                said = last_words(self._words())
                raise Unavailable(f"the sandbox did not start within {START_SECONDS:g} s{said}") from None
            raise
        self._up = True
        return findings

    async def run(
        self, argv: Sequence[str], *, stdin: bytes, stdout: Sink, stderr: Sink, environment: Mapping[str, str]
    ) -> ProgramEnded:
        """Run a program until it ends."""
        program = self._started(argv, bool(stdin), stdout, stderr, environment)
        if stdin:
            program.write(stdin)
            program.close_input()
        try:
            return await self._judged(await program.status)
        except CancelledError:
            await shielded(Deferred.fromCoroutine(self.end_programs()))
            raise

    async def open(
        self, argv: Sequence[str], *, stdout: Sink, stderr: Sink, environment: Mapping[str, str]
    ) -> OpenProgram:
        """Start a program whose input is open."""
        return OpenProgram(self, self._started(argv, True, stdout, stderr, environment), self._judged)

    def start_in_terminal(self, argv: Sequence[str], environment: Mapping[str, str], slave: int) -> Deferred[int]:
        """
        Start a program in a terminal.

        :param slave: descriptor of the terminal's slave side, which stays open here.
        :returns: fires with its exit status; fails with :class:`ContainerDied` if the sandbox ends.
        """
        return self._channel.start(self._order(argv, environment), (slave, slave, slave), terminal=True)

    async def crowded(self) -> bool:
        """:returns: whether its number of processes and threads is close to the limit; ends it if it does not say."""
        try:
            count = await self._channel.count().addTimeout(COUNT_SECONDS, self._reactor)
        except ContainerDied:  # which is reported elsewhere
            return False
        except Late:
            self._kill()
            return False
        return count >= self.most_processes * CROWDED

    async def end_programs(self) -> bool:
        """End everything in it except its first program; end the sandbox if that takes too long."""
        try:
            await self._channel.end(GRACE_SECONDS).addTimeout(GRACE_SECONDS + END_SECONDS, self._reactor)
        except ContainerDied:
            return False
        except Late:
            self._kill()
            return False
        return True

    async def stop(self) -> None:
        """End it with everything in it."""
        self._up = False
        if self._process is not None and not self._over.called:
            if self._channel.takes_requests:
                await self.end_programs()
            self._kill()
            await shielded(self._over)
        self._close(ContainerDied("the sandbox was ended"))

    async def _begin(self) -> None:
        plan = self._plan
        handover = Handover(plan.sandbox.listeners)
        coming = awaited_sockets(handover, self._reactor)
        try:
            self._spawn(handover)
        except BaseException:
            coming.addErrback(lambda _: None).cancel()
            raise
        try:
            sockets: Sockets = await coming
        except Unavailable as e:
            with suppress(Late):
                await shielded(self._over).addTimeout(1.0, self._reactor)
            raise Unavailable(f"no sandbox can be made for the agent: {self._words() or e}") from None
        (listening,) = sockets.values()
        self._server = await self._accept(listening)
        await self._channel.ready

    def _spawn(self, handover: Handover) -> None:
        plan = self._plan
        with (
            handover.theirs,
            self._channel.theirs,
            open(os.devnull, "rb") as nothing,
            opened(programs.inputs(plan.sandbox)) as inputs,
        ):
            number = FILES_DESCRIPTOR + len(plan.sandbox.files)
            given = {**inputs, HANDOVER_DESCRIPTOR: handover.theirs.fileno(), number: self._channel.theirs.fileno()}
            line, place = in_directory("/", programs.command(plan.sandbox, (*plan.first_program, str(number))))
            self._process = self._reactor.spawnProcess(
                _Outermost(self._said, self._ended), line[0], line, dict(plan.environment), place,
                childFDs={0: nothing.fileno(), 1: "r", 2: "r", **given},
            )  # fmt: skip
        self.id = f"{self._process.pid}"

    def _order(self, argv: Sequence[str], environment: Mapping[str, str]) -> Order:
        return Order(argv, {**self._plan.environment, **environment}, self._plan.directory)

    def _started(
        self, argv: Sequence[str], has_input: bool, stdout: Sink, stderr: Sink, environment: Mapping[str, str]
    ) -> PipedProgram:
        return PipedProgram(self._reactor, self._channel, self._order(argv, environment), has_input, stdout, stderr)

    async def _judged(self, status: int) -> ProgramEnded:
        return ProgramEnded(status, False, bool(status) and await self.crowded())

    def _kill(self) -> None:
        with suppress(ProcessExitedAlready):
            self._process.signalProcess("KILL")

    def _ended(self, why: str) -> None:
        died = ContainerDied(f"the sandbox ended: {why}{last_words(self._words())}")
        was_up, self._up = self._up, False
        self._over.callback(None)
        self._close(died)
        sweep()
        if was_up:
            self._on_death(died)

    def _close(self, why: ContainerDied) -> None:
        self._channel.close(why)
        self._channel.ready.addErrback(lambda _: None)
        if self._server is not None:
            self._server.close()

    def _words(self) -> str:
        return self._said.content.decode("utf-8", "replace").strip()


class OpenProgram:
    """See :class:`~ironcurtain.container_agent.agent_sandbox.Program`."""

    def __init__(
        self,
        sandbox: BubblewrapSandbox,
        running: PipedProgram,
        judge: Callable[[int], Awaitable[ProgramEnded]],
    ) -> None:
        self._sandbox, self._running, self._judge = sandbox, running, judge
        self.ended = Deferred.fromCoroutine(self._watch())

    def write(self, data: bytes) -> None:
        """Give it input. Nothing happens if it has ended."""
        self._running.write(data)

    def close_input(self) -> None:
        """End its input, after what was written."""
        self._running.close_input()

    async def end(self) -> None:
        """End it, with everything else that was started in the sandbox: SIGTERM, grace, SIGKILL."""
        await self._sandbox.end_programs()

    async def _watch(self) -> ProgramEnded:
        return await self._judge(await self._running.status)


class _Outermost(ProcessProtocol):
    """The process of bubblewrap, outside."""

    def __init__(self, said: Kept, ended: Callable[[str], None]) -> None:
        self._said, self._ended_with = said, ended

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        self._said.feed(data)

    def processExited(self, reason: Failure) -> None:
        self.transport.loseConnection()  # type: ignore[union-attr]

    def processEnded(self, reason: Failure) -> None:
        number, status = getattr(reason.value, "signal", None), getattr(reason.value, "exitCode", None)
        self._ended_with(f"it was ended by signal {number}" if number is not None else f"exit status {status}")
