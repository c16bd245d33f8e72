"""The one host and port that git may reach, and how git finds it in a sandbox whose network is its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from ironcurtain.http.hosts import Host, parse_host
from ironcurtain.http.public import is_public
from ironcurtain.sandbox.spec import Listener

PORTS: Mapping[str, int] = {"https": 443, "ssh": 22}

NAMED_ADDRESS = "127.0.0.10"
"""The address inside of a host that is a name."""

_LOOKUPS = {"socks4": "socks4a", "socks5": "socks5h"}
_PROXY_PORTS = {"https": 443}
_PROXY_PORT = 1080
"""The port of a proxy whose address has none (curl(1), ``--proxy``)."""


_COMPANY = tuple(
    map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))
)
"""Networks of companies and providers (RFC 1918, RFC 6598, RFC 4193)."""


class Destination(msgspec.Struct, frozen=True):
    """
    A host and port.

    :param host: in canonical form, an IPv6 address without brackets.
    :param settled: whether the user's own settings name it: then it may have any address.
    :param negotiates: whether it is a proxy that wants Kerberos tickets. Git in its sandbox has none.
    """

    host: str
    port: int
    settled: bool = False
    negotiates: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether it is this machine, by its usual names: programs look none of these up."""
        if self._is_address:
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost" or self.host.endswith(".localhost")

    @property
    def dialled(self) -> str:
        """The host that is looked up outside."""
        return "localhost" if self.is_local and not self._is_address else self.host

    @property
    def listener(self) -> Listener:
        """The socket inside that leads to it. An address is that of the socket, too."""
        if self._is_address:
            return Listener(self.host, self.port)
        return Listener("127.0.0.1" if self.is_local else NAMED_ADDRESS, self.port)

    def files(self) -> tuple[tuple[str, bytes], ...]:
        """:returns: path and content of the file by which programs find it."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        if not self._is_address and not self.is_local:
            lines.append(f"{NAMED_ADDRESS} {self.host}")
        return (("/etc/hosts", "".join(f"{line}\n" for line in lines).encode()),)

    def permits(self, address: str) -> bool:
        """
        :param address: one of its addresses.
        :returns: whether it may be dialled. A name may have a private address, as servers of companies have; only what
            says so has one of this machine or of its link, where clouds serve credentials.
        """
        if self.settled or self.is_local or self._is_address or is_public(address):
            return True
        found = ipaddress.ip_address(address)
        return any(found in network for network in _COMPANY)

    @property
    def _is_address(self) -> bool:
        return (host := _parsed(self.host)) is not None and host.is_address


def proxy_destination(proxy: str) -> Destination:
    """
    :param proxy: a value of git's setting ``http.proxy`` that is not empty.
    :raises ValueError: it names no host.
    """
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    host = _parsed(parts.hostname or "")
    if host is None:
        raise ValueError("http.proxy of git's settings names no host")
    return Destination(host.name, parts.port or _PROXY_PORTS.get(parts.scheme, _PROXY_PORT), settled=True)


def lookup_by_proxy(proxy: str) -> str:
    """:returns: the same proxy as one that looks up names itself, since nothing else can for git (curl(1))."""
    scheme, colons, rest = proxy.partition("://")
    return f"{_LOOKUPS.get(scheme.lower(), scheme)}{colons}{rest}" if colons else proxy


def _parsed(host: str) -> Host | None:
    return parse_host(f"[{host}]" if ":" in host else host)
