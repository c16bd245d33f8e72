"""Get a secret from a command that people configure, such as ``pass show api``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironcurtain.errors import Unavailable
from ironcurtain.process.piped import CommandReactor, command_output
from ironcurtain.secrets.redaction import Secret

COMMAND_SECONDS = 60.0
"""How long a command may take (a password store may first ask the person for a passphrase)."""

OUTPUT_LIMIT = 64 * 1024
"""Most bytes that a command may print: more than any key or certificate."""


async def secret_from_command(
    reactor: CommandReactor, argv: Sequence[str], environ: Mapping[str, str], shown: str
) -> Secret:
    """
    Run a command without input, with our standard error, in a session of its own; that is killed as a whole when the
    command does not end well, or is cancelled.

    :param shown: how people know the command.
    :returns: what it printed, without line ends at its end.
    :raises Unavailable: it failed, took too long, or printed nothing or too much.
    """
    what = f"the command {shown!r}"
    ended = await command_output(reactor, argv, environ, what, seconds=COMMAND_SECONDS, limit=OUTPUT_LIMIT)
    value = ended.output.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if ended.status != 0 or not value:
        raise Unavailable(f"{what} ended with status {ended.status} and {'a' if value else 'no'} value")
    return Secret(value, f"command {shown}")
