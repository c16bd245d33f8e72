"""Get a secret from its configured source: an environment variable, a command, or a file."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.user_paths import user_path
from ironcurtain.secrets.redaction import Secret
from ironcurtain.text.decoding import decode_text

if TYPE_CHECKING:
    from ironcurtain.process.piped import CommandReactor


class SecretSource(Protocol):
    """Where a secret is, as a table of ``config.toml`` says: one of three."""

    @property
    def env(self) -> str:
        """Name of an environment variable."""

    @property
    def command(self) -> str:
        """A command line that prints it, run without a shell."""

    @property
    def file(self) -> str:
        """A file with mode 0600 that contains it."""


async def configured_secret(
    source: SecretSource, where: str, environ: Mapping[str, str], reactor: CommandReactor
) -> Secret:
    """
    :param where: the setting, for messages.
    :returns: what the source has, without line ends after it. It is kept in memory only.
    :raises ConfigurationError: there is no source, it has nothing, or others can read it.
    """
    if source.file:
        text, origin = _from_file(Path(user_path(source.file)), where), f"file {source.file}"
    elif source.command:
        text, origin = await _from_command(source.command, environ, where, reactor), f"command {source.command!r}"
    else:
        text, origin = environ.get(source.env, ""), f"environment variable {source.env}"
    if not (value := text.rstrip("\r\n")):
        raise ConfigurationError("config.toml", f"the {origin} has no value", field=where)
    return Secret(value, origin)


def _from_file(path: Path, where: str) -> str:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise ConfigurationError("config.toml", f"others can read {path}: chmod 600 {path}", field=where)
            data = file.read(64 * 1024)
    except OSError as e:
        raise ConfigurationError("config.toml", f"cannot read {path}: {e}", field=where) from None
    return decode_text(str(path), data)


async def _from_command(command: str, environ: Mapping[str, str], where: str, reactor: CommandReactor) -> str:
    from ironcurtain.process.secret_command import secret_from_command

    try:
        if not (argv := shlex.split(command)):
            raise ValueError(f"{command!r} is not a command")
        return (await secret_from_command(reactor, argv, environ, command)).reveal()
    except (Unavailable, ValueError) as e:  # ValueError: an unmatched quotation mark
        raise ConfigurationError("config.toml", str(e), field=where) from None
