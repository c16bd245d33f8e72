"""Fetch a provider's real key from its configured source: an environment variable, a command, or a file."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.sections import KeySettings
from ironcurtain.home.user_paths import user_path
from ironcurtain.process.piped import CommandReactor
from ironcurtain.process.secret_command import secret_from_command
from ironcurtain.providers.registry import KNOWN_PROVIDERS
from ironcurtain.secrets.redaction import Secret
from ironcurtain.text.decoding import decode_text

DEFAULT_VARIABLES: Mapping[str, str] = {known.name: known.key_variables[0] for known in KNOWN_PROVIDERS.values()}
"""Default environment variables for the keys of providers; some have more."""


def key_variable(provider: str, key: KeySettings, environ: Mapping[str, str]) -> str:
    """
    :param provider: the name of its table in the settings.
    :returns: the environment variable that holds its key, or could; empty for a provider without a default.
    """
    known = KNOWN_PROVIDERS.get(provider)
    usual = known.key_variables if known is not None else ()
    return key.env or next((name for name in usual if environ.get(name)), usual[0] if usual else "")


async def real_key(provider: str, key: KeySettings, environ: Mapping[str, str], reactor: CommandReactor) -> Secret:
    """
    Fetch a key. It is kept in memory only.

    :param provider: the name of its table in the settings.
    :raises ConfigurationError: there is no key, or others can read it.
    """
    where = f"providers.{provider}.key"
    if key.file:
        return _usable(_from_file(Path(user_path(key.file)), where), f"file {key.file}", where)
    if key.command:
        return _usable(await _from_command(key.command, environ, where, reactor), f"command {key.command!r}", where)
    variable = key_variable(provider, key, environ)
    if not variable or not environ.get(variable):
        hint = f"set {variable}, or " if variable else ""
        raise ConfigurationError("config.toml", f"no key: {hint}set env, command or file here", field=where)
    return _usable(environ[variable], f"environment variable {variable}", where)


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
    try:
        if not (argv := shlex.split(command)):
            raise ValueError(f"{command!r} is not a command")
        return (await secret_from_command(reactor, argv, environ, command)).reveal()
    except (Unavailable, ValueError) as e:  # ValueError: an unmatched quotation mark
        raise ConfigurationError("config.toml", str(e), field=where) from None


def _usable(text: str, origin: str, where: str) -> Secret:
    value = text.strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise ConfigurationError("config.toml", f"the value of the {origin} is not a key", field=where)
    return Secret(value, origin)
