"""Fetch a provider's real key from its configured source: an environment variable, a command, or a file."""

from __future__ import annotations

from collections.abc import Mapping

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import KeySettings
from ironcurtain.process.configured_secret import configured_secret
from ironcurtain.process.piped import CommandReactor
from ironcurtain.providers.registry import KNOWN_PROVIDERS
from ironcurtain.secrets.redaction import Secret

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
    where, source = f"providers.{provider}.key", key
    if not (key.file or key.command):
        variable = key_variable(provider, key, environ)
        if not variable or not environ.get(variable):
            hint = f"set {variable}, or " if variable else ""
            raise ConfigurationError("config.toml", f"no key: {hint}set env, command or file here", field=where)
        source = KeySettings(env=variable)
    return _usable(await configured_secret(source, where, environ, reactor), where)


def _usable(secret: Secret, where: str) -> Secret:
    value = secret.reveal().strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise ConfigurationError("config.toml", f"the value of the {secret.origin} is not a key", field=where)
    return Secret(value, secret.origin)
