"""
What a server's ``"network"`` in ``mcp-servers.json`` names, and how its programs find it.

Each host has a loopback address of its own inside the sandbox, at which the listed ports listen, so that programs find
it that know nothing of proxies.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from ironcurtain.http.hosts import parse_host
from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.sandbox.spec import Listener

WEB_PORTS = (443, 80)
"""The ports of an entry without one, as in policies."""

PROXY = Listener("127.0.0.1", 18080)
"""Where the proxy listens inside."""

PROXY_URL = f"http://{PROXY.address}:{PROXY.port}"

PROXY_VARIABLES: Mapping[str, str] = {
    **{f"{scheme}_proxy": PROXY_URL for scheme in ("http", "https", "all")},
    **{f"{scheme}_PROXY": PROXY_URL for scheme in ("HTTP", "HTTPS", "ALL")},
    "YARN_HTTP_PROXY": PROXY_URL,
    "YARN_HTTPS_PROXY": PROXY_URL,
    "NODE_USE_ENV_PROXY": "1",
    "no_proxy": "localhost,127.0.0.1,::1",
    "NO_PROXY": "localhost,127.0.0.1,::1",
}
"""Variables by which programs find the proxy. Services of the sandbox itself are reached without it."""

NAMES = (Listener("127.0.0.1", 53), Listener("127.0.0.1", 53, datagrams=True))
"""Where names are answered inside."""

FIRST_ADDRESS = ipaddress.IPv4Address("127.0.0.10")
"""The address of the first host; the others follow."""

ENTRIES = 100
"""Most entries of a server."""

_ENTRY = re.compile(r"(?P<host>\[[^\]]*\]|[^:/\[\]]+)(?::(?P<port>[0-9]{1,5}))?\Z")


class Destination(msgspec.Struct, frozen=True):
    """
    Where the connections of a listener go.

    :param host: a name in canonical form, or an address.
    :param private: whether it may have a private address, since a person named exactly this host.
    """

    host: str
    port: int
    private: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Entry:
    """
    One entry.

    :param pattern: a host in canonical form; ``*.x`` for ``x`` and every host below it; ``*`` for every name.
    """

    pattern: str
    ports: tuple[int, ...] = WEB_PORTS

    @property
    def is_exact(self) -> bool:
        """Whether it names one host."""
        return not self.pattern.startswith("*")

    @cached_property
    def _patterns(self) -> DomainPatterns:
        return DomainPatterns((self.pattern,))

    @property
    def text(self) -> str:
        """The entry, as a pattern of a policy."""
        if self.ports == WEB_PORTS:
            return self.pattern
        return f"{f'[{self.pattern}]' if ':' in self.pattern else self.pattern}:{self.ports[0]}"

    def permits(self, host: str, port: int) -> bool:
        """:returns: whether it covers a connection; the host is in canonical form."""
        return port in self.ports and (host == self.pattern or self._patterns.match_host(host))


def read_entry(text: str) -> Entry:
    """
    :param text: ``host`` or ``host:port``.
    :raises ValueError: it is neither; its message says what is wrong, as the end of a sentence.
    """
    found = _ENTRY.match(text)
    if found is None:
        raise ValueError('must be "host", for its ports 443 and 80, or "host:port"')
    ports = WEB_PORTS if found["port"] is None else (int(found["port"]),)
    if not 0 < ports[0] < 65536:
        raise ValueError(f"there is no port {ports[0]}")
    written = found["host"]
    prefix = "*." if written.startswith("*.") else ""
    if written == "*":
        return Entry("*", ports)
    host = parse_host(written.removeprefix("*."))
    if host is None or (prefix and host.is_address) or "*" in host.name:
        raise ValueError(f'{written} is not a host; "*.example.com" stands for that host and those below it')
    return Entry(prefix + host.name, ports)


@dataclass(frozen=True)
class Access:
    """
    What a server may reach.

    :param entries: what the person who wrote the file permits; policy can still refuse it.
    :param anything: whether policy decides about other hosts; otherwise they are refused.
    """

    entries: tuple[Entry, ...] = ()
    anything: bool = False

    def __bool__(self) -> bool:
        return self.anything or bool(self.entries)

    def lists(self, host: str, port: int) -> bool:
        """:returns: whether an entry covers a connection."""
        return any(entry.permits(host, port) for entry in self.entries)

    def names(self, host: str, port: int) -> bool:
        """:returns: whether an entry names exactly this host, so that it may have a private address."""
        return any(entry.is_exact and entry.permits(host, port) for entry in self.entries)

    def matches(self, name: str) -> bool:
        """:returns: whether a host can be permitted; the others are refused in words that programs show."""
        return self.anything or any(entry.permits(name, port) for entry in self.entries for port in entry.ports)

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """The address inside of each listed host. Other addresses than those of loopback cannot be had inside."""
        given: dict[str, str] = {}
        following = int(FIRST_ADDRESS)
        for entry in self.entries:
            name = entry.pattern
            if not entry.is_exact or name in given:
                continue
            if (own := _loopback(name)) is not None:
                given[name] = own
            elif not _is_address(name):
                given[name] = str(ipaddress.IPv4Address(following))
                following += 1
        return given

    @cached_property
    def relayed(self) -> Mapping[Listener, Destination]:
        """The listeners that lead to one destination each."""
        return {
            Listener(self.addresses[entry.pattern], port): Destination(entry.pattern, port, private=True)
            for entry in self.entries
            if entry.pattern in self.addresses
            for port in entry.ports
        }

    def files(self) -> Iterator[tuple[str, bytes]]:
        """:returns: path and content of the files by which programs find the hosts."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{address} {name}" for name, address in self.addresses.items() if not _loopback(name)]
        yield "/etc/hosts", "".join(f"{line}\n" for line in lines).encode()
        yield "/etc/resolv.conf", b"nameserver 127.0.0.1\noptions timeout:2 attempts:1\n"


def read_access(network: bool | Sequence[str]) -> Access:
    """
    :param network: the value in ``mcp-servers.json``.
    :raises ValueError: it is wrong; its message says what, and its second argument is the index of the entry, if any.
    """
    if isinstance(network, bool):
        return Access(anything=network)
    entries = list[Entry]()
    for index, text in enumerate(network):
        try:
            entries.append(read_entry(text))
        except ValueError as e:
            raise ValueError(str(e), index) from None
    if (problem := conflict(entries)) is not None:
        raise ValueError(problem)
    return Access(tuple(entries))


def conflict(entries: Sequence[Entry]) -> str | None:
    """:returns: why entries cannot be had together, in words; ``None`` if they can."""
    if len(entries) > ENTRIES:
        return f"has more than {ENTRIES} hosts"
    for listener, destination in Access(tuple(entries)).relayed.items():
        if listener in (PROXY, *NAMES):
            return f"{destination} cannot be listed: IronCurtain's own proxy has this address in sandboxes"
    return None


def _loopback(name: str) -> str | None:
    """:returns: the address that a name of this machine has inside, too."""
    if name == "localhost":
        return "127.0.0.1"
    return name if _is_address(name) and name.startswith("127.") else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def listeners(access: Access, proxy: bool) -> tuple[Listener, ...]:
    """:returns: what a sandbox listens on that may reach something; see :class:`~ironcurtain.sandbox.spec.Sandbox`."""
    return (*([PROXY] if proxy else []), *NAMES, *access.relayed) if access else ()
