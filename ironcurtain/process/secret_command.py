"""Get a secret from a configured command, such as ``pass show api``."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.errors import Unavailable
from ironcurtain.secrets.redaction import Secret

COMMAND_SECONDS = 60.0
"""Time limit in seconds (a password store may first ask the user for a passphrase)."""

OUTPUT_LIMIT = 64 * 1024
"""Maximum bytes of output: more than any key or certificate."""


class CommandReactor(IReactorProcess, IReactorTime):
    """The parts of a reactor that a command needs."""


async def secret_from_command(
    reactor: CommandReactor, argv: Sequence[str], environ: Mapping[str, str], shown: str
) -> Secret:
    """
    Run a command without input, with this process's standard error, in a new session, which is killed if the command
    fails or is cancelled.

    :param shown: the command's name for people.
    :returns: its output, without trailing line ends.
    :raises Unavailable: it failed, took too long, or printed nothing or too much.
    """
    if (setsid := shutil.which("setsid")) is None:
        raise Unavailable("the program setsid is missing (Debian: apt-get install util-linux)")
    command = _Command()
    reactor.spawnProcess(command, setsid, [setsid, *argv], dict(environ), childFDs={0: "w", 1: "r", 2: 2})
    try:
        status = await command.finished.addTimeout(COMMAND_SECONDS, reactor)
        if len(command.output) > OUTPUT_LIMIT:
            raise Unavailable(f"the command {shown!r} printed more than {OUTPUT_LIMIT // 1024} KiB")
    except Late:
        await command.kill()
        raise Unavailable(f"the command {shown!r} took more than {COMMAND_SECONDS:.0f} s") from None
    except BaseException:
        await command.kill()
        raise
    value = command.output.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if status != 0 or not value:
        raise Unavailable(f"the command {shown!r} ended with status {status} and {'a' if value else 'no'} value")
    return Secret(value, f"command {shown}")


class _Command(ProcessProtocol):
    def __init__(self) -> None:
        self.output = bytearray()
        self.finished: Deferred[int | None] = Deferred()
        """Fires with the exit status, ``None`` after a signal, once all output has arrived, or too much of it."""
        self._exited: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        assert self.transport is not None
        self._pid = int(self.transport.pid or 0)
        self.transport.closeStdin()

    def outReceived(self, data: bytes) -> None:
        self.output += data
        if len(self.output) > OUTPUT_LIMIT and not self.finished.called:
            self.finished.callback(None)

    def processExited(self, reason: Failure) -> None:
        self._exited.callback(None)

    def processEnded(self, reason: Failure) -> None:
        if not self.finished.called:
            self.finished.callback(getattr(reason.value, "exitCode", None))

    async def kill(self) -> None:
        """Kill it, with its session's first process group."""
        assert self.transport is not None
        # The group exists only after the process has called setsid.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        with suppress(ProcessExitedAlready):
            self.transport.signalProcess("KILL")
        self.transport.loseConnection()
        if not self._exited.called:
            await self._exited
