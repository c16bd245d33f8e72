"""
Tasks that wait for a host with room, as the host keeps them on which they were given.

That host alone decides who has a task: a host takes it, which it may keep for a short time, and begins it, which only
one host ever may. So a carrier that loses, repeats or invents messages starts nothing twice. What was begun is never
given to another host, even if nothing is heard of it again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from ironcurtain.audit.signing import SigningKey
from ironcurtain.errors import NotAllowed, NotFound
from ironcurtain.fleet import signed

OFFER = b"ironcurtain-fleet-task-1\n"
"""See :func:`ironcurtain.fleet.signed.sign`."""

TAKEN_SECONDS = 60.0
"""How long a host has from taking a task until it begins it; then another may take it."""

ID_BYTES = 8
"""Random bytes of a task's id."""

TaskId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
Name = Annotated[str, msgspec.Meta(max_length=100)]


class Offer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What all hosts learn of a task: nothing of its text.

    :param origin: the host on which it was given.
    :param person: for whom, by the name there.
    :param agent: the kind of agent; empty: the default one of whoever takes it.
    :param labels: that the host has to have.
    """

    id: TaskId
    origin: Name
    person: Name
    agent: Name = ""
    labels: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10)] = ()


_offers = msgspec.json.Decoder(Offer)


class State(StrEnum):
    """Where a task is."""

    WAITING = "waiting"
    TAKEN = "taken"
    """A host prepares its start."""
    BEGUN = "begun"
    """A host starts it, and no other may any more."""
    STARTED = "started"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """
    What the host that takes a task starts.

    :param options: as those of a :class:`~ironcurtain.session.model.SessionRequest`.
    """

    task: str
    options: dict[str, Any] = {}


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """
    How the start went.

    :param session: its number on that host; 0: it failed.
    :param why: it failed.
    """

    session: int = 0
    why: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """
    A task of this host.

    :param at: when it was given, in seconds since the epoch.
    :param host: that has it.
    :param until: until when that host may begin it.
    """

    id: TaskId
    person: Name
    agent: Name = ""
    labels: tuple[Name, ...] = ()
    body: Body
    at: float
    state: State = State.WAITING
    host: str = ""
    until: float = 0.0
    started: Started = Started()

    def open(self, now: float) -> bool:
        """:returns: whether a host may take it; ``until`` far ahead means that the clock went back."""
        expired = not now <= self.until <= now + TAKEN_SECONDS
        return self.state is State.WAITING or (self.state is State.TAKEN and expired)

    def take(self, host: str, now: float) -> Task:
        """
        :returns: the task, which a host has now.
        :raises NotFound: it is over, for all hosts.
        :raises NotAllowed: another host has it for now.
        """
        if self.state not in (State.WAITING, State.TAKEN):
            raise NotFound(f"task {self.id} waits no longer: it is {self.state}")
        if not self.open(now) and (self.state, self.host) != (State.TAKEN, host):
            raise NotAllowed(f"another host prepares to start task {self.id}")
        return msgspec.structs.replace(self, state=State.TAKEN, host=host, until=now + TAKEN_SECONDS)

    def begin(self, host: str) -> Task:
        """
        :returns: the task, which no other host gets any more.
        :raises NotAllowed: that host does not have it.
        """
        if (self.state, self.host) != (State.TAKEN, host):
            raise NotAllowed(f"task {self.id} is {self.state}, and not {host}'s to begin")
        return msgspec.structs.replace(self, state=State.BEGUN)

    def end(self, host: str, started: Started) -> Task:
        """
        :returns: the task, whose start is over.
        :raises NotAllowed: that host has not begun it.
        """
        if (self.state, self.host) != (State.BEGUN, host):
            raise NotAllowed(f"task {self.id} is {self.state}, and not one that {host} has begun")
        return msgspec.structs.replace(self, state=State.STARTED if started.session else State.FAILED, started=started)

    def withdraw(self) -> Task:
        """
        :returns: the task, which nobody gets.
        :raises NotAllowed: a host has begun it.
        """
        if self.state not in (State.WAITING, State.TAKEN):
            raise NotAllowed(f"task {self.id} cannot be taken back: it is {self.state}")
        return msgspec.structs.replace(self, state=State.WITHDRAWN)

    def offer(self, origin: str, key: SigningKey) -> bytes:
        """:returns: what all hosts learn of it, signed."""
        offered = Offer(id=self.id, origin=origin, person=self.person, agent=self.agent, labels=self.labels)
        return signed.sign(OFFER, offered, key)


def read_offer(data: bytes, key_of: Callable[[str], bytes | None]) -> Offer:
    """
    :param key_of: returns the key of a host; ``None``: it is not trusted.
    :raises ProtocolViolation: it is no offer of a host that is trusted.
    """
    return signed.verify(OFFER, data, _offers, lambda offer: key_of(offer.origin))
