"""
Numbers of sessions and escalations of other hosts, such as ``build-3/12``.

Such a number is an integer, unique among those of all hosts, so that it serves wherever the number of a session of this
host does; only its text differs. A plain number is always this host's.
"""

from __future__ import annotations

import re
from zlib import crc32

from ironcurtain.errors import ProtocolViolation

ANY_HOST = "any"
"""As the name of a host: whichever has room."""

_SHIFT = 50
"""Bits for the number within a host: more than a counter reaches (:data:`~ironcurtain.home.numbers.MOST_DIGITS`)."""

NUMBERS = 1 << _SHIFT
"""How many numbers a host has, from 0."""

_TEXT = re.compile(r"(?:([a-z0-9-]{1,63})/)?([0-9]{1,15})")


class HostNumber(int):
    """
    :ivar host: name of the host.
    :ivar there: the number on it.
    """

    host: str
    there: int

    def __new__(cls, host: str, there: int) -> HostNumber:
        """
        :param there: the number on that host.
        :raises ProtocolViolation: no host counts as far: it would be the number of another one.
        """
        if not 0 <= there < NUMBERS:
            raise ProtocolViolation("fleet", f"{host} has a session or an escalation with the number {there}")
        made = super().__new__(cls, (crc32(host.encode()) + 1) << _SHIFT | there)
        made.host, made.there = host, there
        return made

    def __str__(self) -> str:
        return f"{self.host}/{self.there}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec.removesuffix("d"))


def read_number(text: str) -> int | None:
    """:returns: the number in a text, as people write it, of this host or another; ``None``: there is none."""
    if (match := _TEXT.fullmatch(text)) is None:
        return None
    host, number = match.groups()
    return int(number) if host is None else HostNumber(host, int(number))


def by_number(name: int | str) -> int | str:
    """:returns: a session's number also where that is a text, as people write it; otherwise its id."""
    number = read_number(name) if isinstance(name, str) else name
    return name if number is None else number
