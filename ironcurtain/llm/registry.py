"""Choose and create a provider from command-line options and the settings' ``providers`` tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from twisted.internet.interfaces import IReactorTime

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.settings import Model
from ironcurtain.http.addresses import BASE_URL, is_base_url
from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.fallback import FallbackClient
from ironcurtain.llm.model import ModelClient
from ironcurtain.llm.script import ScriptedModelClient, load_script
from ironcurtain.secrets.redaction import Secret

_HTTP = {"anthropic": AnthropicDialect}
_MODEL_PREFIXES = {"claude": "anthropic"}

BACKENDS = (*_HTTP, "scripted", "subprocess")
"""
What ``--backend`` accepts. After a colon, ``scripted`` takes its file and ``subprocess`` its command:
``scripted:demo.toml``, ``subprocess:ollama run llama3``; the others may take a model, as in ``anthropic:MODEL``.
"""

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
    :ivar environ: environment for models that are commands.
    :ivar key_for: returns the real key of a provider, by name; called only for a provider that is about to be used.
        Raises :class:`ConfigurationError` if there is none.
    """

    reactor: Any
    clock: IReactorTime
    random: Callable[[], float]
    key_for: Callable[[str], Secret]
    stall: float
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A provider, and the model to use."""

    provider: ModelClient
    model: str


def configured_backend(model: Model) -> str:
    """:returns: the backend of ``[model]``, as ``--backend`` has it."""
    arguments = {"scripted": model.script, "subprocess": model.command}
    return f"{model.backend}:{arguments[model.backend]}" if model.backend in arguments else model.backend


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
    if name == "subprocess":
        return Chosen(_command(argument, surroundings), model or table.model)
    if name not in _HTTP:
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
    return Chosen(provider, argument or model or table.model or dialect.default_model)


def fallback_for(
    backends: Sequence[str],
    model: str | None,
    tables: Mapping[str, Mapping[str, Any]],
    surroundings: ModelSurroundings,
    *,
    source: str = "config.toml",
) -> Chosen:
    """
    Make a provider that asks each of several in turn until one answers.

    :param backends: as ``--backend`` has them, the preferred one first; at least one.
    :param model: for the first of them.
    :returns: it, with the name of its first model.
    :raises UsageError: there is no such backend.
    :raises ConfigurationError: the settings of one are wrong, or its key is missing.
    """
    first, *others = backends
    chosen = [
        provider_for(first, model, tables, surroundings, source=source),
        *(provider_for(other, None, tables, surroundings, source=source) for other in others),
    ]
    client = FallbackClient([(one.provider, one.model) for one in chosen], surroundings.clock.seconds)
    return Chosen(client, chosen[0].model)


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


def _command(command: str, surroundings: ModelSurroundings) -> ModelClient:
    from ironcurtain.llm.command_client import CommandModelClient

    try:
        argv = shlex.split(command)
    except ValueError as e:
        raise UsageError(f"the command of the backend subprocess cannot be read: {e}") from None
    if not argv:
        raise UsageError("the backend subprocess needs a command: --backend 'subprocess:ollama run llama3'")
    return CommandModelClient(
        argv, surroundings.environ, surroundings.reactor, surroundings.clock, stall=surroundings.stall
    )


def _base_url(table: ProviderTable, default: str, source: str, name: str) -> str:
    url = table.base_url or (f"https://{table.host}:{table.port}" if table.host else default)
    if not is_base_url(url):
        raise ConfigurationError(source, BASE_URL, field=f"providers.{name}.base_url")
    return url
