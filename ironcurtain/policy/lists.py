"""Named lists of values, and patterns for hosts and repositories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from ironcurtain.policy.hosts import Host, parse_host
from ironcurtain.policy.scalars import fold
from ironcurtain.policy.targets import Target


class DomainPatterns:
    """
    The patterns of one condition.

    ``*`` matches any host name; ``*.x`` matches ``x`` and every host below it; a pattern with a slash matches one
    repository, ``host/owner/name``; any other pattern matches one host. A wildcard never matches an IP address.

    :param patterns: host names can be Unicode and in any case.
    """

    __slots__ = ("_any", "_exact", "_suffixes", "_whole")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._any = False
        exact: set[str] = set()
        whole: set[str] = set()
        suffixes: list[str] = []
        for pattern in patterns:
            if pattern == "*":
                self._any = True
            elif "/" in pattern:
                host, _, path = pattern.partition("/")
                whole.add(f"{_canonical(host)}/{path}")
            elif pattern.startswith("*."):
                suffixes.append(f".{_canonical(pattern[2:])}")
            else:
                exact.add(_canonical(pattern))
        self._exact, self._whole, self._suffixes = frozenset(exact), frozenset(whole), tuple(suffixes)

    def match(self, target: Target) -> bool:
        """Whether the patterns match every host that the target could mean."""
        if target.repository and target.repository in self._whole:
            return True
        return bool(target.hosts) and all(self._covers(host.name, host.is_address) for host in target.hosts)

    def match_host(self, text: str) -> bool:
        """Whether a pattern matches a host that is not part of a URL."""
        host = parse_host(text)
        return host is not None and self._covers(host.name, host.is_address)

    def _covers(self, name: str, is_address: bool) -> bool:
        if name in self._exact:
            return True
        if is_address:
            return False
        return self._any or (bool(self._suffixes) and f".{name}".endswith(self._suffixes))


def pattern_problem(pattern: str) -> str:
    """:returns: a message that says why a pattern matches nothing; empty if it is valid."""
    if pattern == "*":
        return ""
    if "://" in pattern:
        return "write the host without a scheme"
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
        return f"{name!r} is not a host (write it without port, user name and blanks)"
    return "*. cannot precede an address" if name != host and found.is_address else ""


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

    __slots__ = ("_names", "_patterns")

    def __init__(self, allowed: Iterable[str], match_type: MatchType) -> None:
        self._patterns = DomainPatterns(allowed) if match_type == "domains" else None
        self._names = frozenset() if self._patterns else frozenset(fold(value) for value in allowed)

    def match(self, target: Target) -> bool:
        """Whether an address is on the list. A list of domains compares its host, any other the address as written."""
        return target.text in self if self._patterns is None else self._patterns.match(target)

    def __contains__(self, value: str) -> bool:
        if self._patterns is not None:
            return self._patterns.match_host(value)
        return fold(value) in self._names
