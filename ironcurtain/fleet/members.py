"""
What members say of themselves, and who is there: each publishes a short statement, signed, at intervals.

A statement replaces an older one of the same host. One that is not newer is left out, so that an old one cannot be
published again. A host without a new statement for the length of a lease is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet import signed
from ironcurtain.fleet.trust import Trust

STATEMENT = b"ironcurtain-fleet-member-1\n"
"""See :func:`ironcurtain.fleet.signed.sign`."""

INTERVAL, LEASE = 30.0, 75.0
"""
Seconds between two statements of a host, and after the last one until it is lost: two may be lost on the way. At this
rate a host among 50 receives some 700 bytes per second of them.
"""


Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
"""A number that another host says: of a size that can be calculated with."""


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What a host says of itself.

    :param start: how often its daemon has started, counted in its home: clocks go back, and this does not.
    :param number: of the statement since then.
    :param version: of IronCurtain.
    :param sessions: number of its open sessions.
    :param changes: how often the list of them has changed since its start; it is asked for that list only then.
    :param capacity: the most that it takes from the fleet.
    :param load: processes that ran or wanted to, per processor, in the last minute.
    :param free_memory: in bytes.
    :param agents: kinds of agents that it can run.
    :param accounts: names of the accounts that can pay there.
    :param labels: of its settings.
    """

    host: str
    start: Count
    number: Count
    version: str = ""
    sessions: Count = 0
    changes: Count = 0
    capacity: Count = 0
    load: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0
    free_memory: Count = 0
    agents: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def list(self) -> tuple[int, int]:
        """Differs when the list of its sessions may."""
        return self.start, self.changes

    @property
    def order(self) -> tuple[int, int]:
        """Grows from each statement of a host to its next."""
        return self.start, self.number


_member = msgspec.json.Decoder(Member)


def sign(member: Member, key: SigningKey) -> bytes:
    """:returns: a statement, signed."""
    return signed.sign(STATEMENT, member, key)


def verify(data: bytes, trust: Trust) -> Member:
    """
    :returns: what a member says.
    :raises ProtocolViolation: it is no statement, or not of a host that is trusted and signed it.
    """
    return signed.verify(STATEMENT, data, _member, lambda member: trust.key_of(member.host))


class Seen(msgspec.Struct, frozen=True):
    """
    The newest statement of a host.

    :param at: when it arrived, on this host's monotonic clock.
    """

    member: Member
    at: float

    def lost(self, now: float) -> bool:
        """:returns: whether its lease is over."""
        return now - self.at > LEASE


class KnownMember(msgspec.Struct, frozen=True):
    """
    A member, as other processes of this home see it.

    :param seen_at: when its newest statement arrived, in seconds since the epoch.
    :param lost: whether its lease is over.
    """

    member: Member
    seen_at: float
    lost: bool


class Known(msgspec.Struct, frozen=True):
    """
    What a daemon knows of the fleet.

    :param unreached: why the server is not reached; empty: it is.
    :param since: seconds since the epoch.
    """

    members: tuple[KnownMember, ...]
    unreached: str
    since: float


class Members:
    """
    Who is there.

    :param now: a monotonic clock, in seconds; those of other hosts mean nothing here.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._seen: dict[str, Seen] = {}
        self._heard_at: dict[str, float] = {}
        self._trusted: frozenset[str] = frozenset()

    def heard(self, member: Member) -> bool:
        """:returns: whether the statement is newer than what was known."""
        known = self._seen.get(member.host)
        if known is not None and member.order <= known.member.order:
            return False
        self._seen[member.host] = Seen(member, self._now())
        self._heard_at[member.host] = self._now()
        return True

    def silent(self, host: str, since: float) -> bool:
        """
        :param since: when this host began to hear the others, on its clock.
        :returns: whether a host has said nothing for the length of a lease, whatever was said of it. That is not known
            of one that is not trusted: it may live, and is not listened to.
        """
        return host in self._trusted and self._now() - max(self._heard_at.get(host, since), since) > LEASE

    def of(self, host: str) -> Member | None:
        """:returns: what a host has said last."""
        return None if (known := self._seen.get(host)) is None else known.member

    def left(self, host: str) -> None:
        """A host said that it ends. What it said before stays known, so that it cannot be said again."""
        if (known := self._seen.get(host)) is not None:
            self._seen[host] = Seen(known.member, self._now() - LEASE - 1)

    def keep(self, hosts: Iterable[str]) -> None:
        """Forget the hosts that are not trusted any more."""
        self._trusted = frozenset(hosts)
        self._seen = {host: self._seen[host] for host in self._seen.keys() & self._trusted}
        self._heard_at = {host: self._heard_at[host] for host in self._seen}

    def kept(self, unreached: str, unreached_since: float, now: float) -> Known:
        """
        :param unreached: why the server is not reached; empty: it is.
        :param now: seconds since the epoch.
        :returns: what is known now, for other processes.
        """
        seen = tuple(
            KnownMember(each.member, now - (self._now() - each.at), each.lost(self._now())) for each in self.all()
        )
        return Known(seen, unreached, unreached_since)

    def all(self) -> list[Seen]:
        """:returns: the newest statement of each host, by name."""
        return [self._seen[host] for host in sorted(self._seen)]

    def here(self) -> list[str]:
        """:returns: the hosts whose lease is not over, by name."""
        return [seen.member.host for seen in self.all() if not seen.lost(self._now())]
