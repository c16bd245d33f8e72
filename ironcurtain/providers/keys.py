"""Fetch a provider's real key from its configured source: an environment variable, a command, or a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import KeySettings
from ironcurtain.process.configured_secret import configured_secret
from ironcurtain.providers.registry import KNOWN_PROVIDERS
from ironcurtain.secrets.redaction import Secret

if TYPE_CHECKING:
    from ironcurtain.process.piped import CommandReactor

DEFAULT_VARIABLES: Mapping[str, str] = {
    known.name: known.key_variables[0] for known in KNOWN_PROVIDERS.values() if known.key_variables
}
"""Default environment variables for the keys of providers; some have more."""

SUBSCRIPTION_TOKEN = "sk-ant-oat"
"""How tokens of Claude subscriptions begin, which the API does not accept as keys."""


def key_variable(provider: str, key: KeySettings, environ: Mapping[str, str]) -> str:
    """
    :param provider: the name of its table in the settings.
    :returns: the environment variable that holds its key, or could; empty for a provider without a default.
    """
    known = KNOWN_PROVIDERS.get(provider)
    usual = known.key_variables if known is not None else ()
    return key.env or next((name for name in usual if _is_key(name, environ)), usual[0] if usual else "")


def has_key(provider: str, key: KeySettings, environ: Mapping[str, str]) -> bool:
    """:returns: whether the settings or the environment have a source for a provider's key."""
    if key.file or key.command:
        return True
    variable = key_variable(provider, key, environ)
    return bool(environ.get(variable)) if key.env else _is_key(variable, environ)


def key_origin(provider: str, key: KeySettings, environ: Mapping[str, str]) -> str:
    """:returns: where a key comes from, in words for people."""
    if key.file or key.command:
        return f"file {key.file}" if key.file else f"command {key.command}"
    return f"environment variable {key_variable(provider, key, environ)}"


def misplaced(environ: Mapping[str, str]) -> str:
    """:returns: what is wrong with keys in the environment that cannot be used as such; empty if nothing is."""
    if environ.get("ANTHROPIC_API_KEY", "").strip().startswith(SUBSCRIPTION_TOKEN):
        return f"ANTHROPIC_API_KEY has {NO_KEY}"
    if environ.get("GOOGLE_API_KEY") and _for_vertex(environ) and not environ.get("GEMINI_API_KEY"):
        return (
            "GOOGLE_API_KEY is for Vertex AI (GOOGLE_GENAI_USE_VERTEXAI), which is not supported with a key: set "
            "GEMINI_API_KEY to a key of Google AI Studio"
        )
    return ""


NO_KEY = (
    "a token of a Claude subscription, which is no API key and only Claude Code can use: put it into "
    "CLAUDE_CODE_OAUTH_TOKEN instead, or name its source as token in [accounts.claude]"
)


def _is_key(variable: str, environ: Mapping[str, str]) -> bool:
    value = environ.get(variable, "").strip()
    return (
        bool(value)
        and not value.startswith(SUBSCRIPTION_TOKEN)
        and not (variable == "GOOGLE_API_KEY" and _for_vertex(environ))
    )


def _for_vertex(environ: Mapping[str, str]) -> bool:
    return environ.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() in ("1", "true")


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
    secret = _usable(await configured_secret(source, where, environ, reactor), where)
    if provider == "anthropic" and secret.reveal().startswith(SUBSCRIPTION_TOKEN):
        raise ConfigurationError("config.toml", f"the {secret.origin} has {NO_KEY}", field=where)
    return secret


def _usable(secret: Secret, where: str) -> Secret:
    value = secret.reveal().strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise ConfigurationError("config.toml", f"the value of the {secret.origin} is not a key", field=where)
    return Secret(value, secret.origin)
