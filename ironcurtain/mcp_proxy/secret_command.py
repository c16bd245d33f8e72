"""Get a secret from a command that people configure, such as ``pass show api``."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import TimeoutError as Late
from twisted.internet.interfaces import IReactorProcess, IReactorTime
from twisted.internet.utils import getProcessOutputAndValue

from ironcurtain.errors import Unavailable
from ironcurtain.secrets import Secret

COMMAND_SECONDS = 60.0
"""How long the command may take (our choice; it may ask the person for a passphrase)."""


class CommandReactor(IReactorProcess, IReactorTime):
    """The parts of a reactor that a command needs."""


async def secret_from_command(reactor: CommandReactor, command: str, environ: Mapping[str, str]) -> Secret:
    """
    :param command: for the shell; its output, without line ends at its end, is the secret.
    :raises Unavailable: it failed, took too long or printed nothing.
    """
    running = getProcessOutputAndValue("/bin/sh", ["-c", command], dict(environ), reactor=reactor)
    try:
        output, _, status = await running.addTimeout(COMMAND_SECONDS, reactor)
    except Late:
        raise Unavailable(f"the command {command!r} took more than {COMMAND_SECONDS:.0f} s") from None
    value = output.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if status or not value:
        raise Unavailable(f"the command {command!r} ended with status {status} and {'a' if value else 'no'} value")
    return Secret(value, f"command {command}")
