"""Choose and create a provider from command-line options and the settings' ``providers`` tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from twisted.internet.interfaces import IReactorTime

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.settings import BASE_URL, is_base_url
from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.model import ModelClient
from ironcurtain.llm.script import ScriptedModelClient, load_script
from ironcurtain.secrets.redaction import Secret

_HTTP = {"anthropic": AnthropicDialect}
_MODEL_PREFIXES = {"claude": "anthropic"}

BACKENDS = (*_HTTP, "scripted")
"""Values for ``--backend``. ``scripted`` takes its file after a colon: ``scripted:demo.toml``."""

DEFAULT_BACKEND = "anthropic"
"""Backend if neither a backend nor a model that implies one is given."""


class ProviderTable(msgspec.Struct, frozen=True):
    """
    The fields of one ``[providers.NAME]`` table that are used here; the others are for the MITM proxy.

    :ivar base_url: takes precedence over ``host`` and ``port``; without TLS only at a loopback address.
    :ivar ca_file: PEM certificates to trust besides the system's; empty for none.
    :ivar model: default model.
    :ivar script: file of the scripted provider.
    """

    host: str = ""
    port: int = 443
    base_url: str = ""
    ca_file: str = ""
    model: str = ""
    script: str = ""


@dataclass(frozen=True, slots=True)
class ModelSurroundings:
    """
    What providers need from outside.

    :ivar reactor: for connections.
    :ivar clock: for time; the reactor, or a ``Clock``.
    :ivar random: returns numbers from 0 to 1.
    :ivar stall: time limit in seconds for silence of a server.
    :ivar key_for: returns the real key of a provider, by name; called only for a provider that is about to be used.
        Raises :class:`ConfigurationError` if there is none.
    """

    reactor: Any
    clock: IReactorTime
    random: Callable[[], float]
    key_for: Callable[[str], Secret]
    stall: float


@dataclass(frozen=True, slots=True)
class Chosen:
    """A provider, and the model to use."""

    provider: ModelClient
    model: str


def needs_key(backend: str | None, model: str | None) -> str | None:
    """:returns: the provider whose real key :func:`provider_for` will need; ``None`` if it needs none."""
    name = (backend or _backend_of(model)).partition(":")[0]
    return name if name in _HTTP else None


def provider_for(
    backend: str | None,
    model: str | None,
    tables: Mapping[str, Mapping[str, Any]],
    surroundings: ModelSurroundings,
    *,
    source: str = "config.toml",
) -> Chosen:
    """
    Create the provider for ``--backend`` and ``--model``.

    :param backend: one of :data:`BACKENDS`, or ``None``: then the model decides, else :data:`DEFAULT_BACKEND`.
    :param model: name of a model, or ``None`` for the provider's default.
    :param tables: the settings' ``providers``.
    :param source: name of the settings file, for messages.
    :raises UsageError: there is no such backend.
    :raises ConfigurationError: its settings are wrong, or its key is missing.
    """
    name, _, argument = (backend or _backend_of(model)).partition(":")
    table = _table(name, tables.get(name, {}), source)
    if name == "scripted":
        return Chosen(_scripted(argument or table.script, surroundings), model or table.model or "scripted")
    if name not in _HTTP or argument:
        raise UsageError(f"there is no backend {backend!r}; choose one of: {', '.join(BACKENDS)}")
    # TLS and HTTP are slow to import (0.3 s), and a scripted session does not need them.
    from ironcurtain.http.trust import VerifyingPolicy
    from ironcurtain.llm.http_provider import HttpModelClient

    dialect = _HTTP[name]()
    provider = HttpModelClient(
        dialect,
        base_url=_base_url(table, dialect.default_url, source, name),
        key=surroundings.key_for(name),
        policy=VerifyingPolicy(table.ca_file),
        reactor=surroundings.reactor,
        clock=surroundings.clock,
        random=surroundings.random,
        stall=surroundings.stall,
    )
    return Chosen(provider, model or table.model or dialect.default_model)


def _backend_of(model: str | None) -> str:
    family = (model or "").partition("-")[0]
    return _MODEL_PREFIXES.get(family, DEFAULT_BACKEND)


def _table(name: str, table: Mapping[str, Any], source: str) -> ProviderTable:
    try:
        return msgspec.convert(table, ProviderTable)
    except msgspec.ValidationError as e:
        raise ConfigurationError(source, str(e), field=f"providers.{name}") from None


def _scripted(path: str, surroundings: ModelSurroundings) -> ScriptedModelClient:
    if not path:
        raise UsageError("the scripted backend needs a file: --backend scripted:FILE")
    return ScriptedModelClient(load_script(path), surroundings.clock)


def _base_url(table: ProviderTable, default: str, source: str, name: str) -> str:
    url = table.base_url or (f"https://{table.host}:{table.port}" if table.host else default)
    if not is_base_url(url):
        raise ConfigurationError(source, BASE_URL, field=f"providers.{name}.base_url")
    return url
