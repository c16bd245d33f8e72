"""Choose language models from options and the settings, and fetch their keys."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from twisted.internet.interfaces import IReactorTime

from ironcurtain.home.sections import Provider
from ironcurtain.home.settings import Settings
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.llm.backends import check_backend
from ironcurtain.llm.registry import (
    Chosen,
    ModelSurroundings,
    backends_in_order,
    fallback_for,
    needs_key,
)
from ironcurtain.providers.keys import real_key
from ironcurtain.secrets.redaction import Redactor, Secret


async def chosen_model(
    settings: Settings,
    given: Sequence[str],
    model: str,
    preferred: Sequence[str] = (),
    *,
    redactor: Redactor,
    clock: IReactorTime,
    reactor: Any,
    proxies: UpstreamProxies,
    environ: Mapping[str, str],
) -> Chosen:
    """
    :param given: the values of ``--backend``.
    :param model: that of ``--model``; empty for none.
    :param preferred: in place of the backends of ``[model]``.
    :param redactor: learns the keys.
    :param proxies: upstream proxies.
    :param environ: environment of keys, and of models that are commands.
    :raises UsageError: there is no such backend.
    :raises ConfigurationError: there is no key, or a setting is wrong.
    """
    backends, model = backends_in_order(given, model, settings.model, preferred)
    keys: dict[str, Secret] = {}
    for backend in backends:
        check_backend(backend)
        name = backend.partition(":")[0]
        source = settings.providers.get(name, Provider()).key
        if name not in keys and needs_key(backend, source.has_source):
            keys[name] = await real_key(name, source, environ, reactor)
            redactor.add(keys[name])
    tables = {name: msgspec.to_builtins(table) for name, table in settings.providers.items()}
    around = ModelSurroundings(reactor, clock, random.random, keys.get, settings.model.stall_seconds, proxies, environ)
    return fallback_for(backends, model, tables, around)
