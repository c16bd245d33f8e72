"""Choose and create a provider from command-line options and the settings' ``providers`` tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.sections import Model
from ironcurtain.http.addresses import BASE_URL, is_model_url, literal
from ironcurtain.llm.backends import check_backend, split_backend
from ironcurtain.llm.dialects import DIALECTS, family_of
from ironcurtain.llm.fallback import FallbackClient
from ironcurtain.llm.model import ModelClient
from ironcurtain.secrets.redaction import Secret

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from ironcurtain.http.upstream_proxies import UpstreamProxies


class KeyTable(msgspec.Struct, frozen=True):
    """:ivar header: the header with the key; empty: the provider's."""

    header: str = ""


class ProviderTable(msgspec.Struct, frozen=True):
    """
    The fields of one ``[providers.NAME]`` table that are used here; the others are for the MITM proxy.

    :ivar key: its source is known to :attr:`ModelSurroundings.key_for`.
    :ivar base_url: takes precedence over ``host`` and ``port``; without TLS only at a loopback address.
    :ivar ca_file: PEM certificates to trust besides the system's; empty for none.
    :ivar model: default model.
    :ivar script: file of the scripted provider.
    """

    host: str = ""
    port: int = 443
    key: KeyTable = KeyTable()
    base_url: str = ""
    ca_file: str = ""
    model: str = ""
    script: str = ""


class ModelSurroundings(msgspec.Struct, frozen=True):
    """
    What providers need from outside.

    :ivar reactor: for connections.
    :ivar clock: for time; the reactor, or a ``Clock``.
    :ivar random: returns numbers from 0 to 1.
    :ivar stall: time limit in seconds for silence of a server.
    :ivar proxies: upstream proxies.
    :ivar environ: environment for models that are commands.
    :ivar key_for: returns the real key of a provider, by name; ``None`` for a server that needs none. Called only for a
        provider that is about to be used. Raises :class:`ConfigurationError` if a key is missing.
    """

    reactor: Any
    clock: IReactorTime
    random: Callable[[], float]
    key_for: Callable[[str], Secret | None]
    stall: float
    proxies: UpstreamProxies
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)


class Chosen(msgspec.Struct, frozen=True):
    """A provider, and the model to use; with several, the preferred one."""

    provider: ModelClient
    model: str

    @property
    def asked(self) -> str:
        """The model that was asked last."""
        return self.provider.model if isinstance(self.provider, FallbackClient) else self.model


def configured_backend(model: Model) -> str:
    """:returns: the backend of ``[model]``, as ``--backend`` has it."""
    arguments = {"scripted": model.script, "subprocess": model.command}
    return f"{model.backend}:{arguments[model.backend]}" if model.backend in arguments else model.backend


def backends_in_order(
    given: Sequence[str], model: str, settings: Model, preferred: Sequence[str] = ()
) -> tuple[list[str], str]:
    """
    :param given: the values of ``--backend``; they take precedence.
    :param model: the value of ``--model``; alone, it selects the provider whose models have such names.
    :param preferred: in place of the backends of ``[model]``, if there are any.
    :returns: the backends to ask one after the other, and the model for the first of them; empty for its own.
    """
    listed = list(preferred or settings.backends)
    configured = listed or [configured_backend(settings)]
    backends = list(given) or configured
    if not given and model and (family := family_of(model)):
        backends = [family, *(backend for backend in listed if split_backend(backend)[0] != family)]
    first, argument = split_backend(backends[0])
    if not (model or argument) and first == split_backend(configured[0])[0]:
        return backends, settings.name
    return backends, model


def needs_key(backend: str, has_source: bool) -> bool:
    """
    :param has_source: whether the settings name the source of a key.
    :returns: whether a real key is sent to it. A server of one's own gets one only if the settings say so: the usual
        variable may hold the key of another server.
    """
    dialect = DIALECTS.get(split_backend(backend)[0])
    return dialect is not None and (has_source or bool(dialect.default_url))


def provider_for(
    backend: str,
    model: str,
    tables: Mapping[str, Mapping[str, Any]],
    surroundings: ModelSurroundings,
    *,
    source: str = "config.toml",
) -> Chosen:
    """
    Create the provider for a backend.

    :param backend: one of :data:`~ironcurtain.llm.backends.BACKENDS`, as ``--backend`` has it.
    :param model: takes precedence over what the backend names; empty for that, or for the provider's default.
    :param tables: the settings' ``providers``.
    :param source: name of the settings file, for messages.
    :raises UsageError: there is no such backend, or it needs more.
    :raises ConfigurationError: its settings are wrong, or its key is missing.
    """
    check_backend(backend)
    name, argument = split_backend(backend)
    table = _table(name, tables.get(name, {}), source)
    if name == "scripted":
        return Chosen(_scripted(argument or table.script, surroundings), model or table.model or "scripted")
    if name == "subprocess":
        return Chosen(_command(argument, surroundings), model or table.model)
    # Twisted, TLS and HTTP are slow to import (0.3 s); most commands only look which backends there are.
    from ironcurtain.http.outbound import Outbound
    from ironcurtain.http.trust import VerifyingPolicy
    from ironcurtain.llm.http_provider import HttpModelClient

    dialect = DIALECTS[name]
    if not (model := model or argument or table.model or dialect.default_model):
        raise UsageError(f"the backend {name} needs a model: --backend {name}:MODEL, or name in [model]")
    provider = HttpModelClient(
        dialect,
        base_url=_base_url(table, dialect.default_url, source, name),
        key=surroundings.key_for(name),
        key_header=table.key.header.lower(),
        outbound=Outbound(surroundings.reactor, VerifyingPolicy(table.ca_file), surroundings.proxies),
        reactor=surroundings.reactor,
        clock=surroundings.clock,
        random=surroundings.random,
        stall=surroundings.stall,
    )
    return Chosen(provider, model)


def fallback_for(
    backends: Sequence[str],
    model: str,
    tables: Mapping[str, Mapping[str, Any]],
    surroundings: ModelSurroundings,
    *,
    source: str = "config.toml",
) -> Chosen:
    """
    Make a provider that asks each of several in turn until one answers.

    :param backends: as ``--backend`` has them, the preferred one first; at least one.
    :param model: for the first of them; empty for its own.
    :returns: it, with the name of its first model.
    :raises UsageError: there is no such backend.
    :raises ConfigurationError: the settings of one are wrong, or its key is missing.
    """
    first, *others = backends
    if not others:
        return provider_for(first, model, tables, surroundings, source=source)
    chosen = [
        provider_for(first, model, tables, surroundings, source=source),
        *(provider_for(other, "", tables, surroundings, source=source) for other in others),
    ]
    client = FallbackClient([(one.provider, one.model) for one in chosen], surroundings.clock.seconds)
    return Chosen(client, chosen[0].model)


def _table(name: str, table: Mapping[str, Any], source: str) -> ProviderTable:
    try:
        return msgspec.convert(table, ProviderTable)
    except msgspec.ValidationError as e:
        raise ConfigurationError(source, str(e), field=f"providers.{name}") from None


def _scripted(path: str, surroundings: ModelSurroundings) -> ModelClient:
    if not path:
        raise UsageError("the scripted backend needs a file: --backend scripted:FILE")
    from ironcurtain.llm.script import ScriptedModelClient, load_script

    return ScriptedModelClient(load_script(path), surroundings.clock)


def _command(command: str, surroundings: ModelSurroundings) -> ModelClient:
    from ironcurtain.llm.command_client import CommandModelClient

    try:
        argv = shlex.split(command)
    except ValueError as e:
        raise UsageError(f"the command of the backend subprocess cannot be read: {e}") from None
    return CommandModelClient(
        argv, surroundings.environ, surroundings.reactor, surroundings.clock, stall=surroundings.stall
    )


def _base_url(table: ProviderTable, default: str, source: str, name: str) -> str:
    url = literal(table.base_url) or (f"https://{table.host}:{table.port}" if table.host else default)
    if not url:
        raise ConfigurationError(
            source, "is missing: name the server, as in http://127.0.0.1:11434/v1", field=f"providers.{name}.base_url"
        )
    if not is_model_url(url):
        raise ConfigurationError(source, BASE_URL, field=f"providers.{name}.base_url")
    return url
