"""Run a command without a terminal: input and output are pipes, and it is ended together with what it started."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.interfaces import IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.errors import Unavailable
from ironcurtain.process.bounded import Kept
from ironcurtain.process.directory import in_directory
from ironcurtain.process.search_path import host_program, required_program
from ironcurtain.process.termination import Termination, signal_group

Ended = TypeVar("Ended")

ERRORS_KEPT = 2000
"""Most bytes of error output that are kept for a message; the last ones say what was wrong."""


class CommandReactor(IReactorProcess, IReactorTime):
    """The parts of a reactor that a command needs."""


class PipedCommand(Generic[Ended]):
    """
    One run of a command.

    :param clock: has the same time as the reactor; the reactor itself outside of tests.
    :param ended: makes the value of ``done`` of what Twisted says about the end; see :func:`exit_status`.
    :param received: gets its output.
    :param complained: gets its error output; without it, the command has our standard error.
    :ivar done: fires when it ended, and all that it wrote was received.
    """

    def __init__(
        self,
        reactor: IReactorProcess,
        clock: IReactorTime,
        ended: Callable[[Failure], Ended],
        received: Callable[[bytes], None],
        complained: Callable[[bytes], None] | None = None,
    ) -> None:
        self._reactor, self._ended = reactor, ended
        self._process: Any = None
        self._ending = Termination(clock)
        self.received, self.complained = received, complained
        self.pid = 0
        self.done: Deferred[Ended] = Deferred()

    def spawn(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        directory: str | None = None,
        stdin: bytes = b"",
        descriptors: Mapping[int, int] = {},
        open_input: bool = False,
    ) -> None:
        """
        Start it, as the leader of a session and a process group of its own. Where the program setpriv is there, it gets
        SIGTERM should this process be killed.

        :param argv: a path, or a name that is looked up in the ``PATH`` of ``environ``; a program that does not exist
            ends with status 127.
        :param directory: where it runs; ``None`` for ours.
        :param stdin: what it reads; then its input is at its end.
        :param descriptors: further ones that it inherits, by their numbers there.
        :param open_input: whether more is written to it, until :meth:`close_input`.
        :raises Unavailable: it cannot be started.
        """
        setsid, setpriv = required_program("setsid"), host_program("setpriv")
        until_we_die = (setpriv, "--pdeathsig", "TERM") if setpriv is not None else ()
        pipes: dict[int, int | str] = {0: "w", 1: "r", 2: 2 if self.complained is None else "r", **descriptors}
        line = [setsid, *until_we_die, *argv]
        if directory is not None:
            line, directory = in_directory(directory, line)
        protocol = _Protocol(self, stdin, open_input)
        try:
            self._reactor.spawnProcess(protocol, line[0], line, dict(environ), directory, childFDs=pipes)
        except OSError as e:
            raise Unavailable(f"the command cannot be started: {e.strerror}") from e

    def write(self, data: bytes) -> None:
        """Write more to its input, if it still runs."""
        if not self._ending.exited:
            self._process.write(data)

    def close_input(self) -> None:
        """Nothing more is written to it."""
        if not self._ending.exited:
            self._process.closeStdin()

    def pause(self) -> None:
        """Give no more output for now; once the command has ended, the rest comes all the same."""
        if not self._ending.exited:
            self._process.pauseProducing()

    def resume(self) -> None:
        """Give output again."""
        self._process.resumeProducing()

    def stop(self) -> None:
        """SIGTERM; after :data:`~ironcurtain.process.termination.GRACE_SECONDS` SIGKILL. Harmless once it is ending."""
        self._ending.stop()

    def kill(self) -> None:
        """SIGKILL."""
        self._ending.kill()

    def drop(self) -> None:
        """SIGKILL, also to what outlived it in its group; what it still writes is not wanted."""
        self.received = lambda data: None
        self._ending.kill()
        signal_group(self.pid, signal.SIGKILL)

    def started(self, process: Any) -> None:
        """For the process: it runs, if it has not ended already."""
        self._process, self.pid = process, int(process.pid)
        self._ending.began(process)

    def exited(self) -> None:
        """For the process: it ended. What it started may still have its pipes."""
        self._ending.exit(self._process.loseConnection)
        self._process.resumeProducing()

    def over(self, reason: Failure) -> None:
        """For the process: it ended, and its pipes are closed."""
        self._ending.over()
        self.done.callback(self._ended(reason))


class _Protocol(ProcessProtocol):
    transport: Any

    def __init__(self, command: PipedCommand[Any], stdin: bytes, open_input: bool) -> None:
        self._command, self._stdin, self._open_input = command, stdin, open_input

    def connectionMade(self) -> None:
        self._command.started(self.transport)
        self.transport.write(self._stdin)
        if not self._open_input:
            self.transport.closeStdin()

    def outReceived(self, data: bytes) -> None:
        self._command.received(data)

    def errReceived(self, data: bytes) -> None:
        if self._command.complained is not None:
            self._command.complained(data)

    def processExited(self, reason: Failure) -> None:
        self._command.exited()

    def processEnded(self, reason: Failure) -> None:
        self._command.over(reason)


def exit_status(reason: Failure) -> int | None:
    """:returns: the exit status; ``None`` after a signal."""
    status: int | None = getattr(reason.value, "exitCode", None)
    return status


class CommandOutput(msgspec.Struct, frozen=True):
    """
    What a command left.

    :param status: ``None`` after a signal.
    :param output: the end of its output.
    :param errors: the end of its error output, if that was kept.
    """

    status: int | None
    output: bytes
    errors: bytes


async def command_output(
    reactor: CommandReactor,
    argv: Sequence[str],
    environ: Mapping[str, str],
    shown: str,
    *,
    seconds: float,
    limit: int,
    stdin: bytes = b"",
    directory: str | None = None,
    descriptors: Mapping[int, int] = {},
    whole: bool = True,
    keep_errors: bool = False,
    tell: Callable[[bytes], None] | None = None,
    end_group: bool = False,
) -> CommandOutput:
    """
    Run a command to its end. Its whole group is killed when it takes too long, writes too much, or is cancelled.
    Programs outside of coroutines: :func:`ironcurtain.process.bounded.run`.

    :param shown: how people know the command.
    :param seconds: how long it may take.
    :param limit: most bytes of its output that are kept.
    :param descriptors: further ones that it inherits, by their numbers there.
    :param whole: whether a command that prints more than that is killed; else the beginning is dropped.
    :param keep_errors: whether the end of its error output is kept; else it has our standard error.
    :param tell: gets the kept error output as it comes, all of it.
    :param end_group: whether what it leaves running in its group is killed, too.
    :raises Unavailable: it could not be started, took too long, or printed too much.
    """
    collected, errors = Kept(limit), Kept(ERRORS_KEPT)
    enough: Deferred[int | None] = Deferred()

    def received(data: bytes) -> None:
        collected.feed(data)
        if whole and collected.dropped and not enough.called:
            enough.callback(None)

    def complained(data: bytes) -> None:
        errors.feed(data)
        if tell is not None:
            tell(data)

    def ended(status: int | None) -> None:
        if not enough.called:
            enough.callback(status)

    command = PipedCommand(reactor, reactor, exit_status, received, complained if keep_errors else None)
    command.done.addCallback(ended)
    command.spawn(argv, environ, directory, stdin, descriptors)
    try:
        status = await enough.addTimeout(seconds, reactor)
        if whole and collected.dropped:
            raise Unavailable(f"{shown} printed more than {limit // 1024} KiB")
    except Late:
        await _dropped(command)
        raise Unavailable(f"{shown} took more than {seconds:g} s") from None
    except BaseException:
        await _dropped(command)
        raise
    if end_group:
        command.drop()
    return CommandOutput(status, collected.content, errors.content)


async def _dropped(command: PipedCommand[int | None]) -> None:
    command.drop()
    await command.done
