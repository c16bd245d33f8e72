"""The container of a session: starts and probes it, watches it, removes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.logger import Logger

from ironcurtain.container import execution
from ironcurtain.container.engine import ContainerState, Engine
from ironcurtain.container.errors import (
    ContainerDied,
    EngineError,
    EngineUnavailable,
    NetworkClosed,
    SidecarFailed,
    SocketsUnreachable,
)
from ironcurtain.container.execution import RunningProgram, Sink, shielded
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container.probe import probe
from ironcurtain.container.proxy_listener import ProxyListener
from ironcurtain.container.sidecar import Sidecar
from ironcurtain.container.spec import ContainerSpec
from ironcurtain.process.bounded import Kept

STOP_SECONDS = 5
"""Seconds between SIGTERM and SIGKILL for the main program (half of a lifecycle's time limit)."""

RECORD_SECONDS = 5.0
"""Time limit in seconds for the Engine to report a container's end (it takes milliseconds)."""

FROM_OUTSIDE = ProbeFinding("proxy's address made from outside")
"""For the record: nothing in the container bridges."""

LAST_LINES = 5
"""Number of lines of the main program's output in the explanation of a container's end."""

CROWDED = 0.9
"""The share of a container's maximum number of processes at which it counts as full."""

COUNT_LIMITS = """
for path in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control \\
    /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events; do
  [ ! -r "$path" ] || while read -r name value; do
    case $path:$name in *memory*:oom_kill | *pids.events:max) echo "$name $value" ;; esac
  done <"$path"
done
"""
"""
Prints how many processes the kernel killed for memory (the Engine reports this for the main program only), and how
often it refused a new process. The agent could falsify the output, so it is used for explanations only.
"""


class ProgramEnded(msgspec.Struct, frozen=True):
    """
    The end of a program in a container.

    :param status: its exit status.
    :param out_of_memory: whether a process in the container was killed because memory was used up.
    :param out_of_processes: whether a new process was refused because of the limit.
    """

    status: int
    out_of_memory: bool
    out_of_processes: bool = False


class ContainerProgram:
    """
    A program in a container, whose input is open.

    :param judge: finds out why a program ended with a status.
    :ivar ended: fires with its end, after the last output; fails with :class:`ContainerDied` if its container ends, and
        with :class:`EngineUnavailable` if the Engine is gone.
    """

    def __init__(self, running: RunningProgram, judge: Callable[[int], Awaitable[ProgramEnded]]) -> None:
        self._running, self._judge = running, judge
        self.ended = Deferred.fromCoroutine(self._watch())

    def write(self, data: bytes) -> None:
        """Give it input. Nothing happens if it has ended."""
        self._running.write(data)

    def close_input(self) -> None:
        """End its input, after what was written."""
        self._running.close_input()

    async def end(self) -> None:
        """End it, with everything else that was started in the container: SIGTERM, grace, SIGKILL."""
        await self._running.end()

    async def _watch(self) -> ProgramEnded:
        return await self._judge(await self._running.status)


class Container:
    """
    One container.

    :param on_death: called once with the reason if the container ends without :meth:`stop`.
    :param sidecar: connects it with the proxies where it cannot use the mounted sockets; ``None``: it must use them.
    :param listener: makes the MITM proxy's address in its network; ``None``: the image's entry point does.
    :ivar id: its full id, once it is created.
    """

    log = Logger()

    def __init__(
        self,
        engine: Engine,
        spec: ContainerSpec,
        on_death: Callable[[ContainerDied], None],
        sidecar: Sidecar | None = None,
        listener: ProxyListener | None = None,
    ) -> None:
        self._engine, self._spec, self._on_death = engine, spec, on_death
        self._sidecar, self._listener = sidecar, listener
        self._watching: Deferred[None] | None = None
        self._hits: dict[str, int] = {}
        self.id = ""

    @property
    def name(self) -> str:
        """Its name in the Engine."""
        return self._spec.name

    @property
    def most_processes(self) -> int:
        """Maximum number of its processes and threads."""
        return self._spec.pids

    async def start(self) -> tuple[ProbeFinding, ...]:
        """
        Create, start and probe it. If that fails or is cancelled, it is removed.

        :returns: the findings of the probe, for the record.
        :raises ProbeFailed: it is not confined as specified.
        :raises ContainerDied: it ended at once.
        :raises SocketsUnreachable: it cannot connect to the mounted sockets, and must not have a sidecar.
        :raises SidecarFailed: its sidecar cannot reach this machine.
        """
        sidecar = self._sidecar
        if sidecar is None or not sidecar.way.tcp:
            try:
                return await self._beside()
            except SocketsUnreachable:
                if sidecar is None or not sidecar.way.try_tcp():
                    raise
        self._spec = await sidecar.start(self._spec, self._without_sidecar)
        try:
            return await self._started()
        except SocketsUnreachable:
            raise SidecarFailed("a program in the container cannot connect to its sockets") from None
        finally:
            if self._watching is None:
                await shielded(Deferred.fromCoroutine(sidecar.stop()))

    async def _beside(self) -> tuple[ProbeFinding, ...]:
        """Start it on the kernel of this machine."""
        if self._listener is not None and self._listener.possible:
            bridged, self._spec = self._spec, replace(self._spec, bridge=False)
            try:
                return await self._started()
            except NetworkClosed as e:
                self.log.info("a program inside connects containers with the MITM proxy: {why}", why=str(e))
            finally:
                self._spec = bridged
        return await self._started()

    async def _started(self) -> tuple[ProbeFinding, ...]:
        creating = Deferred.fromCoroutine(self._create())
        try:
            await shielded(creating)
            findings = await self._begin()
        except Exception:  # including cancellation
            await shielded(Deferred.fromCoroutine(self._discard(creating)))
            raise
        self._watching = Deferred.fromCoroutine(self._watch())
        return findings

    async def run(
        self, argv: Sequence[str], *, stdin: bytes, stdout: Sink, stderr: Sink, environment: Mapping[str, str]
    ) -> ProgramEnded:
        """Run a program in it: see :func:`ironcurtain.container.execution.run`."""
        status = await execution.run(
            self._engine, self.id, argv, stdin=stdin, stdout=stdout, stderr=stderr, environment=environment
        )
        return await self._judged(status)

    async def open(
        self, argv: Sequence[str], *, stdout: Sink, stderr: Sink, environment: Mapping[str, str]
    ) -> ContainerProgram:
        """
        Start a program in it, whose input is open.

        :param argv: as for :meth:`run`, like the other parameters.
        :raises ContainerDied: it ended meanwhile.
        """
        running = await execution.start(
            self._engine, self.id, argv, has_input=True, stdout=stdout, stderr=stderr, environment=environment
        )
        return ContainerProgram(running, self._judged)

    async def _judged(self, status: int) -> ProgramEnded:
        if not status:
            return ProgramEnded(status, False)
        if await self.crowded():  # there is no room for another process
            return ProgramEnded(status, False, True)
        before, self._hits = self._hits, await self._count_limits()
        memory, processes = (self._hits.get(name, 0) > before.get(name, 0) for name in ("oom_kill", "max"))
        return ProgramEnded(status, memory, processes)

    async def crowded(self) -> bool:
        """:returns: whether its number of processes and threads is close to the limit."""
        try:
            return await self._engine.tasks(self.id) >= self.most_processes * CROWDED
        except EngineError:  # it is gone, which is reported elsewhere
            return False

    async def end_programs(self) -> bool:
        """
        End everything in it except its main program: see :func:`ironcurtain.container.execution.end`.

        :returns: whether the container is still running.
        """
        return await execution.end(self._engine, self.id, execution.GRACE_SECONDS)

    async def stop(self) -> None:
        """End it with everything in it, and remove it. Can be called if it has ended or is gone."""
        if self._watching is not None:
            self._watching.cancel()
        await shielded(Deferred.fromCoroutine(self._stop()))

    async def _without_sidecar(self) -> None:
        if self.id:
            await execution.kill(self._engine, self.id)

    async def _create(self) -> None:
        self.id = await self._engine.create(self._spec)

    async def _begin(self) -> tuple[ProbeFinding, ...]:
        """Start the main program, and check what it runs in."""
        await self._engine.start(self.id)
        listener = None if self._spec.bridge else self._listener
        try:
            if listener is not None:
                await listener.open(self.id)
            findings = await probe(self._engine, self.id, self._spec, self._sidecar)
            return findings if listener is None else (*findings, FROM_OUTSIDE)
        except ContainerDied:
            raise await self._death() from None

    async def _watch(self) -> None:
        try:
            with suppress(EngineError):  # it is already gone
                await self._engine.wait(self.id)
            self._on_death(await self._death())
        except EngineUnavailable as e:
            self._on_death(out_of_sight(e))
        except CancelledError:
            return

    async def _death(self) -> ContainerDied:
        """:returns: why it ended, with its last output if there is any."""
        try:
            with suppress(Late):  # its processes can be gone before the Engine has recorded the end
                await Deferred.fromCoroutine(self._engine.wait(self.id)).addTimeout(RECORD_SECONDS, self._engine.clock)
            state = ContainerState.of(await self._engine.inspect(self.id))
            said = await self._said()
        except EngineError as e:
            return ContainerDied(f"another program removed the container ({e.message})")
        return ContainerDied(f"the container ended: {self._reason(state)}{last_words(said)}")

    def _reason(self, state: ContainerState) -> str:
        return (self._sidecar and self._sidecar.problem) or state.reason

    async def _said(self) -> str:
        return await self._engine.output(self.id, LAST_LINES)

    async def _count_limits(self) -> dict[str, int]:
        said = Kept(execution.SAID_LIMIT)
        await execution.run(
            self._engine,
            self.id,
            ("/bin/sh", "-c", COUNT_LIMITS),
            stdin=b"",
            stdout=said.feed,
            stderr=lambda _: None,
            environment={},
        )
        words = said.content.decode("ascii", "replace").split()
        return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}

    async def _discard(self, creating: Deferred[None]) -> None:
        if not creating.called:  # on_death may have been called by start
            await creating
        if self.id:
            await self._remove()

    async def _stop(self) -> None:
        with suppress(EngineError):  # whatever the state, removing ends it
            await self._engine.stop(self.id, STOP_SECONDS)
        await self._remove()

    async def _remove(self) -> None:
        if self._listener is not None:
            self._listener.close()
        try:
            await self._engine.remove(self.id)
        except EngineError as e:
            if e.status not in (404, 409):  # it is gone, or being removed
                raise
        if self._sidecar is not None:
            await self._sidecar.stop()


def out_of_sight(why: EngineUnavailable) -> ContainerDied:
    """:returns: the end of a container whose Engine is gone, so that nothing is known about it."""
    return ContainerDied(f"the state of the container is unknown: {why}")


def last_words(said: str) -> str:
    """:returns: a program's last output, to append to the sentence on its end; empty if there is none."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f", saying: {' | '.join(lines[-LAST_LINES:])}" if lines else ""
