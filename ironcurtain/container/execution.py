"""Run a program in a running container, and end it with all processes that it started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList, TimeoutError
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.container.engine import KILLED, ContainerState, Engine
from ironcurtain.container.errors import ContainerDied, EngineError, EngineUnavailable
from ironcurtain.container.streams import STDOUT, Demultiplexer, EngineStream
from ironcurtain.process.bounded import Kept

T = TypeVar("T")

GRACE_SECONDS = 5
"""Seconds between SIGTERM and SIGKILL (real agents took up to 2 s)."""

END_SECONDS = 10.0
"""Time limit in seconds for ending programs, beyond the grace period; then the container itself is killed."""

POLL_SECONDS = 0.05
"""Seconds between questions to the Engine whether a program whose streams are closed has ended (usually it has)."""

SETTLE_POLLS = 100
"""Number of such questions before the Engine counts as broken."""

CANNOT_RUN = 126
"""The exit status of a program that the Engine could not run, also because its container was about to end."""

DYING_SECONDS = 1.0
"""Seconds to wait for the container's end after a program ended with the status that this end would cause."""

SAID_LIMIT = 2000
"""Most bytes that are kept of what the program that ends others says."""

Sink = Callable[[bytes], Deferred[None] | None]
"""Called with output as it arrives. If it returns a Deferred, the program has to wait until that fires."""

_log = Logger()


async def run(
    engine: Engine,
    container: str,
    argv: Sequence[str],
    *,
    stdin: bytes,
    stdout: Sink,
    stderr: Sink,
    environment: Mapping[str, str],
) -> int:
    """
    Run a program until it ends.

    If this is cancelled, everything that was started in the container after its main program is ended (see
    :func:`end`) before the cancellation takes effect.

    :param container: id of a running one.
    :param argv: an absolute path, or a name that is looked up in the image's ``PATH``.
    :param stdin: all of its input; empty: it has none.
    :param environment: besides what the container has.
    :returns: its exit status; 126 or 127 if it cannot be run, with the reason on one of the sinks.
    :raises ContainerDied: the container ended meanwhile.
    """
    try:
        return await _run(engine, container, argv, stdin, (stdout, stderr), environment)
    except ContainerDied:
        raise
    except Exception:  # a cancellation among them
        await shielded(Deferred.fromCoroutine(end(engine, container, GRACE_SECONDS)))
        raise


async def start(
    engine: Engine,
    container: str,
    argv: Sequence[str],
    *,
    has_input: bool,
    stdout: Sink,
    stderr: Sink,
    environment: Mapping[str, str],
) -> RunningProgram:
    """
    Start a program, without waiting for its end. The parameters are those of :func:`run`.

    :param has_input: whether its input is open.
    :raises ContainerDied: the container ended meanwhile.
    """
    try:
        name = await engine.create_exec(container, argv, environment, has_input)
        return RunningProgram(engine, container, name, await engine.start_exec(name, _receiver((stdout, stderr))))
    except EngineError:
        await _check_alive(engine, container)
        raise


class RunningProgram:
    """
    A program in a container.

    :ivar status: fires with its exit status, after the last output; fails with :class:`ContainerDied` if its container
        ends. Cancelling this leaves the program alone and hears no more of it.
    """

    def __init__(self, engine: Engine, container: str, name: str, stream: EngineStream) -> None:
        self._engine, self._container, self._name, self._stream = engine, container, name, stream
        self.status = Deferred.fromCoroutine(self._watch())

    def write(self, data: bytes) -> None:
        """Give it input. Nothing happens if it has ended."""
        self._stream.write(data)

    def close_input(self) -> None:
        """End its input, after what was written."""
        self._stream.end_input()

    async def end(self) -> None:
        """End it, with everything else that was started in the container: see :func:`end`."""
        await end(self._engine, self._container, GRACE_SECONDS)

    async def _watch(self) -> int:
        try:
            try:
                await self._stream.ended
            finally:
                self._stream.abort()
            return await _exit_status(self._engine, self._container, self._name)
        except EngineError:  # whatever the status: the Engine also answers 500 for a container that is just ending
            await _check_alive(self._engine, self._container)
            raise


async def end(engine: Engine, container: str, grace: int) -> bool:
    """
    End everything in a container but its main program and that one's own children.

    SIGTERM, ``grace`` seconds, SIGKILL; also for programs that left their session or their parents. If it is not
    certain that all is gone (they multiply too fast, or no further process fits in), the container is killed.

    :returns: whether the container goes on.
    """
    said = Kept(SAID_LIMIT)  # the agent can write to it, too
    script = resources.files("ironcurtain.container").joinpath("data/end.sh").read_text()
    line = ("/bin/sh", "-c", script, "end", str(grace))
    ending = Deferred.fromCoroutine(_run(engine, container, line, b"", (said.feed, said.feed), {}))
    try:
        status = await ending.addTimeout(grace + END_SECONDS, engine.clock)
        if status == 0:
            return True
        problem = said.content.decode("utf-8", "replace").strip() or f"status {status}"
    except ContainerDied:
        return False
    except (EngineError, EngineUnavailable, TimeoutError) as e:
        problem = str(e)
    _log.warn("{container} is killed, since not all in it ended: {problem}", container=container, problem=problem)
    await kill(engine, container)
    return False


async def kill(engine: Engine, container: str) -> None:
    """Kill a container with everything in it. Can be called if it has ended or is gone."""
    try:
        await engine.kill(container)
    except EngineError as e:
        if e.status not in (404, 409):
            raise


async def _run(
    engine: Engine,
    container: str,
    argv: Sequence[str],
    stdin: bytes,
    sinks: tuple[Sink, Sink],
    environment: Mapping[str, str],
) -> int:
    stdout, stderr = sinks
    program = await start(
        engine, container, argv, has_input=bool(stdin), stdout=stdout, stderr=stderr, environment=environment
    )
    if stdin:
        program.write(stdin)
        program.close_input()
    return await program.status


def _receiver(sinks: tuple[Sink, Sink]) -> Callable[[bytes], Deferred[None] | None]:
    frames = Demultiplexer()

    def receive(data: bytes) -> Deferred[None] | None:
        waits = [sinks[stream != STDOUT](piece) for stream, piece in frames.feed(data)]
        pending = [wait for wait in waits if wait is not None]
        return DeferredList(pending).addCallback(lambda _: None) if pending else None

    return receive


async def _exit_status(engine: Engine, container: str, name: str) -> int:
    for _ in range(SETTLE_POLLS):
        answer = await engine.inspect_exec(name)
        if not answer["Running"]:
            break
        await _check_alive(engine, container)
        await deferLater(engine.clock, POLL_SECONDS)
    else:
        raise EngineUnavailable(engine.address, "it does not say how a program ended")
    if answer["ExitCode"] in (KILLED, CANNOT_RUN):
        with suppress(EngineError, TimeoutError):
            await Deferred.fromCoroutine(engine.wait(container)).addTimeout(DYING_SECONDS, engine.clock)
        await _check_alive(engine, container)
    return int(answer["ExitCode"])


async def _check_alive(engine: Engine, container: str) -> None:
    """:raises ContainerDied: the container has ended, or is gone."""
    try:
        state = ContainerState.of(await engine.inspect(container))
    except EngineError as e:
        if e.status != 404:
            raise
        raise ContainerDied("another program removed the container") from None
    if not state.running:
        raise ContainerDied(f"the container ended: {state.reason}")


def shielded(work: Deferred[T]) -> Deferred[T]:
    """
    Make work uncancellable, and wait for it.

    :param work: its result is consumed; it can still be awaited, and then gives ``None``.
    :returns: fires with its result. Cancelling this only ends the wait; if the work fails afterwards, the failure is
        logged.
    """
    waiting: Deferred[T] = Deferred()

    def ended(result: Any) -> None:
        if not waiting.called:
            waiting.callback(result)  # a Deferred that gets a Failure fails
        elif isinstance(result, Failure):
            _log.failure("work that continued after a cancellation failed", result)

    work.addBoth(ended)
    return waiting
