"""
The rules for model providers: built-in ones, merged with the ``providers`` tables of the settings.

A provider's key is sent to the hosts and endpoints of its rule only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.faults import wrong
from ironcurtain.home.sections import Provider
from ironcurtain.home.user_paths import user_path
from ironcurtain.http.addresses import BASE_URL, is_model_url, literal
from ironcurtain.http.urls import UnclearAddress, read_web_address
from ironcurtain.llm.backends import OVER_HTTP
from ironcurtain.providers.endpoints import BadPath, Endpoint, canonical, parse_endpoint
from ironcurtain.providers.headers import HeaderRole, role
from ironcurtain.providers.provider import ModelProvider
from ironcurtain.providers.registry import KNOWN_PROVIDERS, shaped_like

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST: Final = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*(?![0-9]+\Z|0x){_LABEL}")
"""
A host name, not an address: programs parse a last label of digits as part of an IPv4 address (WHATWG URL section 3.5).
"""

_HEADER: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
_PREFIX: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")
_USUAL_PORT: Final = Provider().port


class ProviderRule(msgspec.Struct, frozen=True):
    """
    What an agent may request of one provider, and how its key is sent.

    :ivar name: name of its table in the settings.
    :ivar host: the host that agents connect to; ASCII, in lower case.
    :ivar absent: requests of its agents that nothing needs; they get 404.
    :ivar key_header: the header with the key, in lower case.
    :ivar account_header: the header with the account's id, in lower case; empty: requests name none.
    :ivar key_prefix: prefix of real keys, and thus of fake ones.
    :ivar provider: the provider with the same formats of requests, errors and token counts.
    :ivar upstream_host: where requests are sent; for a gateway it differs from ``host``, and can be an address.
    :ivar gateway: whether a person configured that host as ``base_url``; only then it may have a private address.
    :ivar tls: whether to use TLS; only a gateway at a loopback or private address may be reached without.
    :ivar upstream_path: path of a gateway's ``base_url``; empty, or without a slash at its end.
    :ivar ca_file: PEM certificates to trust besides the system's; empty for none.
    :ivar places: the settings that name its place in a cloud, by name.
    """

    name: str
    host: str
    port: int
    endpoints: tuple[Endpoint, ...]
    absent: tuple[Endpoint, ...]
    key_header: str
    account_header: str
    key_prefix: str
    provider: ModelProvider
    upstream_host: str
    upstream_port: int
    upstream_path: str
    gateway: bool
    tls: bool
    ca_file: str
    places: Mapping[str, str]


def provider_rules(
    tables: Mapping[str, Provider], names: Iterable[str], *, source: str = "config.toml"
) -> tuple[ProviderRule, ...]:
    """
    :param tables: the settings' ``providers``.
    :param names: the wanted providers; the tables of others are ignored.
    :param source: the settings file, for messages.
    :raises ConfigurationError: a provider is neither built in nor fully described, a value is wrong, or two providers
        have the same host, so that the key to send would be ambiguous.
    """
    rules: dict[tuple[str, int], ProviderRule] = {}
    for name in dict.fromkeys(names):
        rule = _Reader(source, name, tables.get(name, Provider())).rule()
        other = rules.setdefault((rule.host, rule.port), rule)
        if other is not rule:
            raise ConfigurationError(
                source, f"{rule.host} is also the host of provider {other.name}", field=f"providers.{name}.host"
            )
    return tuple(rules.values())


def check_providers(tables: Mapping[str, Provider], source: str, text: str) -> None:
    """
    Check each table separately. Whether two providers may have the same host depends on the agent that uses them.

    :param source: the settings file, for messages.
    :param text: its content, to find the line of an error.
    :raises ConfigurationError: a provider is neither built in nor fully described, or a value is wrong.
    """
    for name, table in tables.items():
        reader = _Reader(source, name, table, text)
        if name in OVER_HTTP and name not in KNOWN_PROVIDERS:
            reader.check_own()
        else:
            reader.rule()


class _Reader(msgspec.Struct, frozen=True):
    source: str
    name: str
    table: Provider
    text: str = ""

    def rule(self) -> ProviderRule:
        built_in, table = KNOWN_PROVIDERS.get(self.name), self.table
        if built_in is None:
            self._require_all()
        if table.port != _USUAL_PORT and not table.host:
            raise self._wrong(
                "port", "has an effect only together with host: add that, or put the port of a gateway into base_url"
            )
        places = self._places(built_in)
        host = self._host(table.host.lower() or (built_in.host.format_map(places) if built_in else ""))
        written = [text.format_map(places) for text in built_in.endpoints] if built_in else []
        endpoints = self._endpoints(table.endpoints or written)
        header = self._key_header(table.key.header.lower() or (built_in.key_header if built_in else ""))
        tls, upstream_host, upstream_port, upstream_path = self._upstream(host)
        self._file("key.file", table.key.file)
        return ProviderRule(
            self.name,
            host,
            table.port,
            endpoints,
            tuple(map(parse_endpoint, built_in.absent)) if built_in else (),
            header,
            built_in.account_header if built_in else "",
            self._prefix(table.key.prefix or (built_in.key_prefix if built_in else "")),
            built_in or shaped_like(endpoints),
            upstream_host,
            upstream_port,
            upstream_path,
            bool(table.base_url),
            tls,
            self._file("ca_file", table.ca_file),
            places,
        )

    def check_own(self) -> None:
        """Check the table of a server that only IronCurtain itself asks; agents cannot, so that it needs no rule."""
        from ironcurtain.llm.dialects import DIALECTS  # slow to import, and few have such a server

        self._upstream("")
        self._key_header(self.table.key.header.lower() or DIALECTS[self.name].key_header)
        self._file("key.file", self.table.key.file)
        self._file("ca_file", self.table.ca_file)

    def _places(self, built_in: ModelProvider | None) -> dict[str, str]:
        wanted = built_in.settings if built_in else ()
        places = {name: getattr(self.table, name) for name in ("region", "project", "resource")}
        for name, value in places.items():
            if value and name not in wanted:
                raise self._wrong(name, "has no effect for this provider")
            if not value and name in wanted:
                raise self._wrong(name, f"is missing: it is part of the address {built_in.host if built_in else ''}")
        return {name: places[name] for name in wanted}

    def _require_all(self) -> None:
        key = self.table.key
        wanted = {
            "host": self.table.host,
            "endpoints": self.table.endpoints,
            "key.header": key.header,
            "key.prefix": key.prefix,
        }
        if missing := [field for field, value in wanted.items() if not value]:
            built_in = ", ".join(KNOWN_PROVIDERS)
            raise self._wrong(missing[0], f"is missing; only {built_in} are built in and need nothing but a key")

    def _host(self, host: str) -> str:
        if not _HOST.fullmatch(host):
            form = "in ASCII as in api.example.com, without scheme, port and path; an address goes into base_url"
            raise self._wrong("host", f"{host!r} is not a host name: write it {form}")
        return host

    def _endpoints(self, texts: Iterable[str]) -> tuple[Endpoint, ...]:
        try:
            return tuple(map(parse_endpoint, texts))
        except BadPath as e:
            raise self._wrong("endpoints", f"must look like 'POST /v1/messages': {e.detail}") from None

    def _key_header(self, name: str) -> str:
        # Headers that must not carry a credential, or that the proxy generates, cannot carry the key.
        if not _HEADER.fullmatch(name) or role(name) not in (HeaderRole.UNKNOWN, HeaderRole.CREDENTIAL):
            raise self._wrong("key.header", f"the header {name!r} cannot carry a key")
        return name

    def _prefix(self, prefix: str) -> str:
        if not _PREFIX.fullmatch(prefix):
            raise self._wrong("key.prefix", "contains characters that keys cannot have")
        return prefix

    def _file(self, field: str, path: str) -> str:
        try:
            if not path or user_path(path).startswith("/"):
                return path
        except UsageError:
            pass
        raise self._wrong(field, f"{path!r} is not known everywhere: begin it with / or ~/, without other variables")

    def _upstream(self, host: str) -> tuple[bool, str, int, str]:
        """:returns: whether to use TLS; host, port and path."""
        url = literal(self.table.base_url)
        if not url:
            return True, host, self.table.port, ""
        try:
            address = read_web_address(url)
            path = address.path.rstrip("/")
            if is_model_url(url):
                return address.scheme == "https", address.host.name, address.port, canonical(path) if path else ""
        except (UnclearAddress, BadPath):
            pass
        raise self._wrong("base_url", BASE_URL)

    def _wrong(self, field: str, detail: str) -> ConfigurationError:
        return wrong(self.source, detail, self.text, ("providers", self.name, *field.split(".")))
