"""Named lists of values, and whether a value is on one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from ironcurtain.policy.domains import DomainPatterns
from ironcurtain.policy.scalars import fold
from ironcurtain.policy.targets import Target

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
