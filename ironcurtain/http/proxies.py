"""
Which connections go through an upstream proxy, by the settings and the usual variables.

``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` are read as curl, Go and requests agree on, in lower case first. Where
they differ, this is chosen: a name covers all names below it, with or without a leading dot; ``*.name`` covers only
those below; an entry may have a port; networks cover addresses as they are written in a URL, since no name is resolved
in order to choose. This machine itself is never reached through a proxy.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.network_section import Network
from ironcurtain.home.sections import SecretSource
from ironcurtain.http.addresses import is_loopback
from ironcurtain.http.hosts import Host, parse_host
from ironcurtain.http.urls import UnclearAddress, bracketed, read_web_address
from ironcurtain.secrets.redaction import Secret

VARIABLES: Final = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY")
"""The variables that are read; those in lower case take precedence."""

NONE: Final = "none"
"""The setting ``proxy`` for no proxy at all."""

SETTING: Final = "network.proxy in config.toml"
"""The origin of a proxy that the settings name."""

_NO_SOURCE: Final = SecretSource()
_SEPARATORS = re.compile(r"[\s,]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_PORTED = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):([0-9]{1,5})")


class Proxy(msgspec.Struct, frozen=True):
    """
    A proxy that makes tunnels to hosts (``CONNECT``).

    :ivar scheme: ``https`` if the connection to the proxy itself has TLS, otherwise ``http``.
    :ivar user: for Basic authentication; empty for none.
    :ivar password: of that user, if it is known already.
    :ivar origin: the variable or setting that names the proxy.
    :ivar source: of the password otherwise.
    :ivar ca_file: PEM certificates to trust for it besides the system's; empty for none.
    :ivar negotiates: whether Kerberos tickets authenticate at it, instead of the user.
    """

    scheme: str
    host: Host
    port: int
    user: str
    password: Secret | None
    origin: str
    source: SecretSource = _NO_SOURCE
    ca_file: str = ""
    negotiates: bool = False

    def url_for(self, password: str) -> str:
        """:returns: its URL with the user and a password, for programs that read variables."""
        user = f"{quote(self.user, safe='')}:{quote(password, safe='')}@" if self.user else ""
        return self.url.replace("://", f"://{user}", 1)

    @property
    def url(self) -> str:
        """Its URL, without user and password."""
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    def __str__(self) -> str:
        return f"{self.url} ({self.origin})"


class _Entry(msgspec.Struct, frozen=True):
    """One entry of ``NO_PROXY``. ``below``: a suffix of names, with its leading dot."""

    name: str = ""
    below: str = ""
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    port: int | None = None
    everything: bool = False

    def covers(self, host: Host, port: int) -> bool:
        if self.everything:
            return True
        if self.network is not None:
            return host.is_address and ipaddress.ip_address(host.name) in self.network
        if self.port not in (None, port):
            return False
        return host.name == self.name or (not host.is_address and bool(self.below) and host.name.endswith(self.below))


class Proxies(msgspec.Struct, frozen=True):
    """
    The proxies of one process; none unless they are given.

    :ivar by_scheme: the proxy for URLs with this scheme, or what is wrong with it.
    """

    by_scheme: Mapping[str, Proxy | ConfigurationError]
    exceptions: tuple[_Entry, ...] = ()

    def choose(self, scheme: str, host: str, port: int) -> Proxy | None:
        """
        :param scheme: ``https``, also for connections whose protocol is not known, or ``http``.
        :param host: a name or an address, an IPv6 address with or without brackets.
        :returns: ``None`` for a direct connection.
        :raises ConfigurationError: the proxy for it cannot be used.
        """
        proxy = self.by_scheme.get(scheme)
        parsed = parse_host(f"[{host}]" if ":" in host and not host.startswith("[") else host)
        if proxy is None or parsed is None or is_this_machine(parsed):
            return None
        if any(entry.covers(parsed, port) for entry in self.exceptions):
            return None
        if isinstance(proxy, ConfigurationError):
            raise proxy
        return proxy


NO_PROXIES: Final = Proxies({})
"""All connections are direct."""


def read_proxies(network: Network, environ: Mapping[str, str]) -> Proxies:
    """
    :param network: the settings, which take precedence over the environment.
    :returns: the proxies. A variable that cannot be used is an error only where a connection would need it.
    """
    if network.proxy == NONE:
        return NO_PROXIES
    found: dict[str, Proxy | ConfigurationError] = {}
    if network.proxy:
        proxy = read_proxy(network.proxy, SETTING, network.proxy_password, network.proxy_ca_file)
        proxy = replace(proxy, negotiates=network.proxy_auth == "negotiate")
        found = {"https": proxy, "http": proxy}
    else:
        for scheme in ("https", "http"):
            name, value = _variable(f"{scheme}_proxy", environ)
            if value:
                found[scheme] = _from_environment(value, f"environment variable {name}")
    listed = network.no_proxy or _SEPARATORS.split(_variable("no_proxy", environ)[1])
    return Proxies(found, tuple(_entries(listed)))


def read_proxy(text: str, origin: str, source: SecretSource = _NO_SOURCE, ca_file: str = "") -> Proxy:
    """
    :param text: ``[http[s]://][USER[:PASSWORD]@]HOST[:PORT]``.
    :param origin: what says so.
    :raises ValueError: it is something else. The message does not repeat it, since it may contain a password.
    """
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower().startswith("socks"):
        raise ValueError("SOCKS proxies are not supported: name an http:// or https:// proxy")
    try:
        address = read_web_address(text if scheme is not None else f"http://{text}")
    except UnclearAddress as e:
        raise ValueError(
            f"is no proxy: {e}; write http://HOST:PORT or http://USER@HOST:PORT, with special characters of the user "
            "and the password as %XX"
        ) from None
    if address.path not in ("", "/"):
        raise ValueError("is no proxy: it has a path; write http://HOST:PORT")
    user, colon, password = address.authority.user.partition(":")
    if ":" in unquote(user):
        raise ValueError("the name of a proxy's user cannot contain a colon")
    known = Secret(unquote(password), origin) if colon else None
    return Proxy(address.scheme, address.host, address.port, unquote(user), known, origin, source, ca_file)


def check_entry(text: str) -> None:
    """:raises ValueError: it is no host, suffix of hosts, address or network."""
    if _entry(text) is None:
        raise ValueError(
            f"no_proxy: {text!r} is no host: write a name, which covers those below it, an address or a network, "
            'as in "corp.example", "*.corp.example", "host.example:8443", "192.168.1.5" or "10.0.0.0/8"'
        )


def _from_environment(value: str, origin: str) -> Proxy | ConfigurationError:
    try:
        return read_proxy(value, origin)
    except ValueError as e:
        return ConfigurationError(origin, str(e))


def _variable(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    for each in (name, name.upper()):
        if value := environ.get(each, "").strip():
            return each, value
    return name.upper(), ""


def is_this_machine(host: Host) -> bool:
    """:returns: whether a host is ``localhost`` or a loopback address."""
    return is_loopback(host.name) if host.is_address else host.name == "localhost"


def _entries(texts: Iterable[str]) -> Iterable[_Entry]:
    """:returns: the entries that can be understood; what others mean is left to the proxy."""
    return [entry for text in texts if text and (entry := _entry(text)) is not None]


def _entry(text: str) -> _Entry | None:
    if text == "*":
        return _Entry(everything=True)
    if "/" in text:
        try:
            return _Entry(network=ipaddress.ip_network(text, strict=False))
        except ValueError:
            return None
    port = None
    if (ported := _PORTED.fullmatch(text)) is not None:
        text, port = ported[1], int(ported[2])
    elif ":" in text and not text.startswith("["):
        text = f"[{text}]"
    only_below, name = text.startswith("*."), text.removeprefix("*").removeprefix(".")
    host = parse_host(name)
    if host is None or "*" in name:
        return None
    if host.is_address:
        return None if name != text else _Entry(name=host.name, port=port)
    return _Entry(name="" if only_below else host.name, below=f".{host.name}", port=port)
