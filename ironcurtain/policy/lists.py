"""Named lists of values, patterns of hosts and repositories, and whether a value is on one."""

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
    The patterns of one condition, ready for many questions.

    ``*`` is any named host; ``*.x`` is ``x`` or a host below it; a pattern with a slash is one repository,
    ``host/owner/name``; any other is a host, compared whole. A wildcard never covers an IP address.

    :param patterns: host names may be written in Unicode and in any case.
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
        """Whether a pattern covers every host that the target could mean."""
        if target.repository and target.repository in self._whole:
            return True
        return bool(target.hosts) and all(self._covers(host.name, host.is_address) for host in target.hosts)

    def match_host(self, text: str) -> bool:
        """Whether a pattern covers a host name that stands by itself."""
        host = parse_host(text)
        return host is not None and self._covers(host.name, host.is_address)

    def _covers(self, name: str, is_address: bool) -> bool:
        if name in self._exact:
            return True
        if is_address:
            return False
        return self._any or (bool(self._suffixes) and f".{name}".endswith(self._suffixes))


def flaw(pattern: str) -> str:
    """:returns: why a pattern matches nothing, in words; empty if it can match."""
    if pattern == "*":
        return ""
    if "://" in pattern:
        return "a host is written without a scheme"
    host, slash, path = pattern.partition("/")
    name = host.removeprefix("*.")
    if slash and "*" in host:
        return "a repository is of one host"
    if slash and (not path or path.endswith(("/", ".git"))):
        return "a repository is written as host/owner/name, without .git"
    if "*" in name:
        return "* stands alone, or as *. before a host"
    found = _host(name)
    if found is None:
        return f"{name!r} is no host; no port, user name or blank belongs to it"
    return "*. stands before a name, and this is an address" if name != host and found.is_address else ""


def _host(pattern: str) -> Host | None:
    return parse_host(f"[{pattern}]" if pattern.count(":") > 1 and not pattern.startswith("[") else pattern)


def _canonical(pattern: str) -> str:
    """:returns: the pattern as :func:`parse_host` would write it; one that is no host stays and matches nothing."""
    host = _host(pattern)
    return pattern if host is None else host.name


MatchType = Literal["domains", "emails", "identifiers"]
"""How the values of a list are compared."""


class DynamicList(Struct, frozen=True):
    """
    A list that rules name as ``@name``, with corrections made by hand.

    Fields that we do not know are metadata of the program that wrote the list.
    """

    values: tuple[str, ...] = ()
    additions: tuple[str, ...] = msgspec.field(name="manualAdditions", default=())
    removals: tuple[str, ...] = msgspec.field(name="manualRemovals", default=())

    def effective(self) -> tuple[str, ...]:
        """:returns: the values and additions that were not removed; case does not count."""
        removed = {fold(value) for value in self.removals}
        kept = (value for value in (*self.values, *self.additions) if fold(value) not in removed)
        return tuple(dict.fromkeys(kept))


def expand(allowed: Iterable[str], lists: Mapping[str, DynamicList]) -> tuple[str, ...]:
    """
    Put the values of lists in the place of their names.

    :param allowed: values, and names of lists with ``@`` before them.
    :returns: values only; a list that is not there is empty.
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
    The values of a list, ready for many questions.

    :param allowed: values only, no names of lists.
    """

    __slots__ = ("_names", "_patterns")

    def __init__(self, allowed: Iterable[str], match_type: MatchType) -> None:
        self._patterns = DomainPatterns(allowed) if match_type == "domains" else None
        self._names = frozenset() if self._patterns else frozenset(fold(value) for value in allowed)

    def match(self, target: Target) -> bool:
        """Whether an address is on the list: by its host in a list of domains, else as it is written."""
        return target.text in self if self._patterns is None else self._patterns.match(target)

    def __contains__(self, value: str) -> bool:
        if self._patterns is not None:
            return self._patterns.match_host(value)
        return fold(value) in self._names
