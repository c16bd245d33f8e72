"""Lists of hosts in settings: ``host`` stands for itself, ``*.host`` for all names below it, but not for itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from ironcurtain.http.urls import UnclearAddress, read_host


class HostSet(Protocol):
    """Some hosts, by their names."""

    def matches(self, name: str) -> bool:
        """:param name: in canonical form."""


class HostPatterns:
    """
    :param patterns: as the settings have them.
    :raises ValueError: one is no host and no ``*.host``. The message says which.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        names: set[str] = set()
        endings: set[str] = set()
        for pattern in patterns:
            below = pattern.startswith("*.")
            try:
                host = read_host(pattern.removeprefix("*."))
            except UnclearAddress as e:
                raise ValueError(f"{pattern!r} is no host: {e}") from None
            if below and host.is_address:
                raise ValueError(f"{pattern!r} is no host: there are no names below an address")
            (endings if below else names).add(f".{host.name}" if below else host.name)
        self._names, self._endings = frozenset(names), tuple(sorted(endings))

    def matches(self, name: str) -> bool:
        """:param name: in canonical form."""
        return name in self._names or name.endswith(self._endings)


NOTHING: Final = HostPatterns(())
"""No host."""
