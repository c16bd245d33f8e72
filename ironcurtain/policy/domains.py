"""Compare hosts and repositories with the patterns of rules."""

from __future__ import annotations

from collections.abc import Iterable

from ironcurtain.policy.hosts import Host, parse_host
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
