"""
Named lists of values, and patterns for hosts and repositories.

A permission needs values that certainly match; a denial holds for values that can match: see :class:`Members`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from ironcurtain.http.hosts import Host, parse_host
from ironcurtain.http.urls import UnclearAddress, read_host
from ironcurtain.policy.scalars import fold
from ironcurtain.policy.targets import Target
from ironcurtain.text.display import shown_only

_WITH_PORT = re.compile(r"(\[[^\]/]*\]|[^:/\[\]]+):([1-9][0-9]{0,4})")
"""A pattern with a port. An IPv6 address needs brackets then."""

_WEB_PORTS = frozenset((None, 80, 443))
"""Ports of targets that a pattern without a port matches in a permission; ``None`` if the port does not count."""

_BETWEEN_ADDRESSES = re.compile(r"[\s,;:<>()\[\]\"']+")


class DomainPatterns:
    """
    The patterns of one condition.

    ``*`` matches any host name; ``*.x`` matches ``x`` and every host below it; a pattern with a slash matches one
    repository, ``host/owner/name``; any other pattern matches one host. A wildcard never matches an IP address, except
    that ``*`` in a denial matches every host.

    Where a target has a port, a pattern without one matches the ports of the web, in a denial all; ``host:port``
    matches that port only.

    :param patterns: host names can be Unicode and in any case.
    """

    __slots__ = ("_any", "_at", "_exact", "_suffixes", "_whole")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._any = False
        exact: set[str] = set()
        whole: set[str] = set()
        suffixes: list[str] = []
        at: dict[int, list[str]] = {}
        for pattern in patterns:
            host, port = split_port(pattern)
            if port is not None:
                at.setdefault(port, []).append(host)
            elif pattern == "*":
                self._any = True
            elif "/" in pattern:
                host, _, path = pattern.partition("/")
                whole.add(f"{_canonical(host)}/{path}")
            elif pattern.startswith("*."):
                suffixes.append(f".{_canonical(pattern[2:])}")
            else:
                exact.add(_canonical(pattern))
        self._exact, self._whole, self._suffixes = frozenset(exact), frozenset(whole), tuple(suffixes)
        self._at = {port: DomainPatterns(hosts) for port, hosts in at.items()}

    def match(self, target: Target) -> bool:
        """Whether the patterns certainly match the target."""
        if target.repository and target.repository in self._whole:
            return True
        if target.host is None:
            return False
        if target.port in self._at and self._at[target.port]._covers(target.host):
            return True
        return target.port in _WEB_PORTS and self._covers(target.host)

    def names(self, target: Target) -> bool:
        """Whether a pattern without a wildcard matches the target."""
        if target.host is None:
            return False
        if target.port in self._at and target.host.name in self._at[target.port]._exact:
            return True
        return target.port in _WEB_PORTS and target.host.name in self._exact

    def may_match(self, target: Target) -> bool:
        """Whether the patterns can match the target: they do, or it is uncertain, or servers could read it so."""
        if not target.certain or self.match(target) or (target.host is not None and self._may_cover(target)):
            return True
        repository = target.repository.casefold()
        if target.repository and not target.is_plain:
            host = repository.partition("/")[0]
            return any(each.partition("/")[0] == host for each in self._whole)
        return bool(repository) and any(each.casefold() == repository for each in self._whole)

    def match_host(self, text: str) -> bool:
        """Whether a pattern certainly matches a host that is not part of a URL."""
        try:
            return self._covers(read_host(text))
        except UnclearAddress:
            return False

    def may_match_host(self, text: str) -> bool:
        """Whether a pattern can match a host that is not part of a URL."""
        try:
            return self._may_cover(Target(text, read_host(text)))
        except UnclearAddress:
            return True

    def _may_cover(self, target: Target) -> bool:
        assert target.host is not None
        at = [its for port, its in self._at.items() if target.port in (port, None)]
        return any(its._any or its._covers(target.host) for its in (self, *at))

    def _covers(self, host: Host) -> bool:
        if host.name in self._exact:
            return True
        if host.is_address:
            return False
        return self._any or (bool(self._suffixes) and f".{host.name}".endswith(self._suffixes))


def pattern_problem(pattern: str) -> str:
    """:returns: a message that says why a pattern matches nothing; empty if it is valid."""
    if pattern == "*":
        return ""
    if "://" in pattern:
        return "write the host without a scheme"
    host, port = split_port(pattern)
    if port is not None:
        return pattern_problem(host) if port < 65536 else "a port is a number from 1 to 65535"
    host, slash, path = pattern.partition("/")
    name = host.removeprefix("*.")
    if slash and "*" in host:
        return "the host of a repository cannot have a wildcard"
    if slash and (not path or path.endswith(("/", ".git"))):
        return "write a repository as host/owner/name, without .git"
    if "*" in name:
        return "write * alone, or *. before a host"
    found = _host(name)
    if found is None:
        return f"{name!r} is not a host (write it without {'port, ' if slash else ''}user name and blanks)"
    return "*. cannot precede an address" if name != host and found.is_address else ""


def split_port(pattern: str) -> tuple[str, int | None]:
    """:returns: a pattern without its port, and the port; ``None`` if it names none."""
    parts = _WITH_PORT.fullmatch(pattern)
    return (pattern, None) if parts is None else (parts[1], int(parts[2]))


def _host(pattern: str) -> Host | None:
    return parse_host(f"[{pattern}]" if pattern.count(":") > 1 and not pattern.startswith("[") else pattern)


def _canonical(pattern: str) -> str:
    """:returns: the pattern in canonical form; one that is not a host is unchanged, and matches nothing."""
    host = _host(pattern)
    return pattern if host is None else host.name


MatchType = Literal["domains", "emails", "identifiers"]
"""How the values of a list are compared."""


class DynamicList(Struct, frozen=True):
    """
    A list that rules name as ``@name``, with manual corrections.

    Unknown fields are metadata of the program that wrote the list, and are ignored.
    """

    values: tuple[str, ...] = ()
    additions: tuple[str, ...] = msgspec.field(name="manualAdditions", default=())
    removals: tuple[str, ...] = msgspec.field(name="manualRemovals", default=())

    def effective(self) -> tuple[str, ...]:
        """:returns: the values and additions, without the removals. Removals ignore case."""
        removed = {fold(value) for value in self.removals}
        kept = (value for value in (*self.values, *self.additions) if fold(value) not in removed)
        return tuple(dict.fromkeys(kept))


def expand(allowed: Iterable[str], lists: Mapping[str, DynamicList]) -> tuple[str, ...]:
    """
    Replace the names of lists with their values.

    :param allowed: values, and names of lists as ``@name``.
    :returns: the values. A list that does not exist is empty.
    """
    found: list[str] = []
    for entry in allowed:
        if entry.startswith("@"):
            found.extend(lists[entry[1:]].effective() if entry[1:] in lists else ())
        else:
            found.append(entry)
    return tuple(found)


class Members:
    """
    The values of a list, for membership tests.

    :param allowed: the values, without names of lists.
    """

    __slots__ = ("_loose", "_names", "_patterns", "_split")

    def __init__(self, allowed: Iterable[str], match_type: MatchType) -> None:
        values = tuple(allowed)
        self._patterns = DomainPatterns(values) if match_type == "domains" else None
        self._names = frozenset() if self._patterns else frozenset(fold(value) for value in values)
        self._loose = frozenset(map(_loose, self._names))
        self._split = match_type == "emails"

    def match(self, target: Target) -> bool:
        """
        Whether an address is certainly on the list. A list of domains compares its host, any other the address as
        written.
        """
        return target.text in self if self._patterns is None else self._patterns.match(target)

    def may_match(self, target: Target) -> bool:
        """Whether an address can be on the list."""
        return self.may_contain(target.text) if self._patterns is None else self._patterns.may_match(target)

    def __contains__(self, value: str) -> bool:
        if self._patterns is not None:
            return self._patterns.match_host(value)
        return fold(value) in self._names

    def may_contain(self, value: str) -> bool:
        """Whether a value can be on the list: some program could take it, or a part of it, for a value that is."""
        if self._patterns is not None:
            return self._patterns.may_match_host(value)
        parts = _BETWEEN_ADDRESSES.split(_loose(value)) if self._split else ()
        return not self._loose.isdisjoint((_loose(value), *parts))


def _loose(value: str) -> str:
    """:returns: a value without what programs ignore, or take for the same."""
    return unicodedata.normalize("NFKC", shown_only(value)).casefold().strip()
