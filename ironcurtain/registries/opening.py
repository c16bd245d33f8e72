"""Open the registries of the settings for one session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from ironcurtain.audit.log import AuditLog
from ironcurtain.home.registry_sections import REGISTRIES, Registries, RegistrySettings, canonical
from ironcurtain.home.sections import KeySettings
from ironcurtain.home.user_paths import user_path
from ironcurtain.http.addresses import literal
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.judge import NetworkJudge
from ironcurtain.network.responder import Responder
from ironcurtain.registries import crates_index, pypi_paths
from ironcurtain.registries.allowance import Allowance
from ironcurtain.registries.crates import Crates
from ironcurtain.registries.debian import Debian
from ironcurtain.registries.go import Go
from ironcurtain.registries.http_fetcher import Credential, HttpFetcher
from ironcurtain.registries.npm import NpmRegistry, normalised
from ironcurtain.registries.offering import JudgedResponder
from ironcurtain.registries.policy import Normalise, package_policy
from ironcurtain.registries.pypi import PyPI
from ironcurtain.registries.recording import PackageRecorder, PackageTraffic
from ironcurtain.registries.registry import Registry, Store
from ironcurtain.registries.serving import RegistryResponder
from ironcurtain.registries.store import PackageStore
from ironcurtain.secrets.redaction import Redactor, Secret


class RegistryKind(NamedTuple):
    """
    What there is to know of one kind of registry.

    :ivar make: creates it; takes its store, and the ``url`` of the settings.
    :ivar normalise: returns the form of a name that is equal for all its spellings; it leaves ``*`` alone.
    """

    make: Callable[[Store, str], Registry]
    normalise: Normalise


HTTP_PORT: Final = 80
HTTPS_PORT: Final = 443

KINDS: Final[Mapping[str, RegistryKind]] = {
    "npm": RegistryKind(NpmRegistry, normalised),
    "pypi": RegistryKind(PyPI, pypi_paths.normalise),
    "crates": RegistryKind(Crates, crates_index.normalise),
    "debian": RegistryKind(Debian, str.lower),
    "go": RegistryKind(Go, str),
}
"""By the name in the settings."""


OfferJudge = Callable[[Mapping[tuple[str, int], str]], NetworkJudge]
"""Returns what decides; takes what an approval opens, by host and port, in words."""


class RegistrySurroundings(msgspec.Struct, frozen=True):
    """
    What registries use of the process and the machine.

    :param key: fetches a key; takes where its source stands in the settings, and the source.
    :param now: returns the time, with its zone.
    :param events: called with each file and each refusal; it must not raise.
    """

    reactor: Any
    dialer: Dialer
    audit: AuditLog
    redactor: Redactor
    key: Callable[[str, KeySettings], Awaitable[Secret]]
    now: Callable[[], datetime]
    events: Callable[[PackageTraffic], None]


class OpenRegistries:
    """
    The registries that the settings open, and those that are offered, for one session. Call :meth:`start` first.

    :param judge: decides on the hosts of registries that are closed: allowed ones are answered by the registry, too.
        ``None``: they are not offered.
    :raises ConfigurationError: a ``ca_file`` cannot be used.
    """

    def __init__(self, settings: Registries, around: RegistrySurroundings, judge: OfferJudge | None = None) -> None:
        self._around, self._allowance = around, Allowance(settings)
        self._recorders: list[PackageRecorder] = []
        self._opened = {name: opened for name in REGISTRIES if (opened := settings.opened(name)) is not None}
        closed = [name for name in REGISTRIES if name not in self._opened and judge is not None]
        offered = {name: settings.offered() for name in closed}
        self._fetchers = {name: self._fetcher(name, each) for name, each in (self._opened | offered).items()}
        responders = self._offered(offered, judge) if judge is not None else {}
        own = {place: each for name, its in self._opened.items() for place, each in self._responders(name, its)}
        responders.update(own)
        for (host, port), each in tuple(responders.items()):
            if port == HTTPS_PORT:  # else a rule for the host would open it without the registry's own
                responders.setdefault((host, HTTP_PORT), each)
        self.hosts = sorted({host for host, _ in own})
        """The hosts that the settings open."""
        self.responders: Mapping[tuple[str, int], Responder] = responders
        """What answers for the hosts and ports of registries."""

    async def start(self) -> None:
        """
        Fetch the keys.

        :raises ConfigurationError: one cannot be had.
        """
        for name, settings in self._opened.items():
            if settings.key.has_source:
                secret = await self._around.key(f"registries.{name}.key", settings.key)
                self._around.redactor.add(secret)
                header = settings.key.header.lower() or "authorization"
                self._fetchers[name].credential = Credential(header, secret)

    async def stop(self) -> None:
        """Close unused connections, and record what was only counted."""
        for fetcher in self._fetchers.values():
            await fetcher.close()
        for recorder in self._recorders:
            recorder.end()

    def _fetcher(self, name: str, settings: RegistrySettings) -> HttpFetcher:
        return HttpFetcher(
            self._around.reactor,
            self._around.dialer,
            literal(settings.url),
            private=frozenset(map(canonical, settings.private)),
            ca_file=user_path(settings.ca_file) if settings.ca_file else "",
            table=f"[registries.{name}]",
        )

    def _offered(self, offered: Mapping[str, RegistrySettings], judge: OfferJudge) -> dict[tuple[str, int], Responder]:
        responders: dict[tuple[str, int], Responder] = {}
        offers: dict[tuple[str, int], str] = {}
        for name, each in offered.items():
            words = f"the {name} registry, read-only, for versions that are at least {each.min_age} old"
            for place, responder in self._responders(name, each):
                responders[place], offers[place] = responder, words
        deciding = judge(offers)
        return {place: JudgedResponder(deciding, *place, each) for place, each in responders.items()}

    def _responders(self, name: str, settings: RegistrySettings) -> Iterator[tuple[tuple[str, int], Responder]]:
        around = self._around
        kind = KINDS[name]
        recorder = PackageRecorder(name, around.audit, around.events, around.reactor.seconds)
        self._recorders.append(recorder)
        policy = package_policy(name, settings, kind.normalise)
        store = PackageStore(policy, self._fetchers[name], recorder, self._allowance, around.now)
        registry = kind.make(store, literal(settings.url))
        for host, port in registry.hosts:
            shown = host if port == HTTPS_PORT else f"{host}:{port}"
            yield (host, port), RegistryResponder(name, registry, shown, recorder)
