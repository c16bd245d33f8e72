"""Get a secret from a configured command, such as ``pass show api``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironcurtain.errors import Unavailable
from ironcurtain.process.piped import CommandReactor, command_output
from ironcurtain.process.search_path import host_environment
from ironcurtain.secrets.redaction import Secret

COMMAND_SECONDS = 60.0
"""Time limit in seconds (a password store may first ask the user for a passphrase)."""

OUTPUT_LIMIT = 64 * 1024
"""Maximum bytes of output: more than any key or certificate."""


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
    what = f"the command {shown!r}"
    ended = await command_output(
        reactor, argv, host_environment(environ), what, seconds=COMMAND_SECONDS, limit=OUTPUT_LIMIT
    )
    value = ended.output.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if ended.status != 0 or not value:
        raise Unavailable(f"{what} ended with status {ended.status} and {'a' if value else 'no'} value")
    return Secret(value, f"command {shown}")
