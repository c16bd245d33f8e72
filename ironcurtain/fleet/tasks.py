"""
Tasks that wait for a host with room, as the host keeps them on which they were given.

That host alone decides who has a task: a host takes it, which it may keep for a short time, and begins it, which only
one host ever may. So a carrier that loses, repeats or invents messages starts nothing twice. What was begun is never
given to another host, even if nothing is heard of it again; unless whoever gave it allowed that, and then once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from ironcurtain.audit.signing import SigningKey
from ironcurtain.errors import NotAllowed, NotFound
from ironcurtain.fleet import signed
from ironcurtain.home.sections import Budget

OFFER = b"ironcurtain-fleet-task-1\n"
"""See :func:`ironcurtain.fleet.signed.sign`."""

TAKEN_SECONDS = 60.0
"""How long a host has from taking a task until it begins it; then another may take it."""

ATTEMPTS = 2
"""How often a task may begin that may be started again: what ends one host after the other must stop somewhere."""

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
    :param host: the only one that takes it; empty: any.
    :param account: the one that has to pay; empty: whichever does there.
    :param sandbox: the one that is needed; empty: any.
    """

    id: TaskId
    origin: Name
    person: Name
    agent: Name = ""
    host: Name = ""
    account: Name = ""
    sandbox: Name = ""
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
    ENDED = "ended"
    """Its agent has answered, or its session was ended."""
    FAILED = "failed"
    LOST = "lost"
    """Its session was lost with its host."""
    WITHDRAWN = "withdrawn"


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """
    What the host that takes a task starts.

    :param kind: of the session, if not the agent's own.
    :param options: as those of a :class:`~ironcurtain.session.model.SessionRequest`.
    :param budget: limits besides those of that host.
    :param attended: whether what its policy escalates waits for a person; else it is denied.
    :param attempt: how often it was begun, with this time.
    :param restart: whether it is started elsewhere if this host is lost.
    """

    task: str
    kind: str = ""
    options: dict[str, Any] = {}
    budget: Budget | None = None
    attended: bool = True
    attempt: int = 1
    restart: bool = False


class Over(StrEnum):
    """How a session of a task ended."""

    NOT_YET = ""
    ENDED = "ended"
    LOST = "lost"
    REFUSED = "refused"
    """It could not be started there, for want of something that another host may have."""


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """
    How the start went, and the session since.

    :param session: its number on that host; 0: it failed.
    :param why: it failed.
    :param attempt: which this is, as the body of the task said.
    """

    session: int = 0
    why: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    attempt: int = 1
    over: Over = Over.NOT_YET


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """
    A task of this host.

    :param at: when it was given, in seconds since the epoch.
    :param on: the only host that may take it; empty: any.
    :param host: that has it.
    :param until: until when that host may begin it.
    :param lost: the host that was lost with it, before it waited again.
    :param refused: the hosts that could not start it.
    """

    id: TaskId
    person: Name
    agent: Name = ""
    labels: tuple[Name, ...] = ()
    on: Name = ""
    body: Body
    at: float
    state: State = State.WAITING
    host: str = ""
    until: float = 0.0
    started: Started = Started()
    lost: str = ""
    refused: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        """Whether a host has begun it, and nothing says that it is over."""
        return self.state in (State.BEGUN, State.STARTED)

    def open(self, now: float) -> bool:
        """:returns: whether a host may take it; ``until`` far ahead means that the clock went back."""
        expired = not now <= self.until <= now + TAKEN_SECONDS
        return self.state is State.WAITING or (self.state is State.TAKEN and expired)

    def take(self, host: str, now: float) -> Task:
        """
        :returns: the task, which a host has now.
        :raises NotFound: it is over, for all hosts.
        :raises NotAllowed: another host has it for now, or this one could not start it, or it is for another one.
        """
        if self.on not in ("", host):
            raise NotAllowed(f"task {self.id} is not for {host}")
        if host in self.refused:
            raise NotAllowed(f"{host} could not start task {self.id}")
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

    def report(self, host: str, said: Started) -> Task:
        """
        :param said: by the host that has begun it, of its session.
        :returns: the task, as that host says it is.
        :raises NotFound: it is not that host's, or not any more.
        """
        if not self.running or (self.host, self.body.attempt) != (host, said.attempt):
            raise NotFound(f"task {self.id} is {self.state}, and not one that {host} runs")
        if said.over is Over.LOST:
            return self.lose(host)
        if said.over is Over.REFUSED:
            return msgspec.structs.replace(self._waiting(), refused=(*self.refused, host), started=said)
        state = State.ENDED if said.over is Over.ENDED else State.STARTED if said.session else State.FAILED
        return msgspec.structs.replace(self, state=state, started=said)

    def lose(self, host: str) -> Task:
        """
        A host was lost, and its session of this task with it.

        :returns: the task, which waits again if it may, and else is over.
        :raises NotAllowed: that host does not run it.
        """
        if not self.running or self.host != host:
            raise NotAllowed(f"task {self.id} is {self.state}, and not one that {host} runs")
        if not self.body.restart or self.body.attempt >= ATTEMPTS:
            return msgspec.structs.replace(self, state=State.LOST)
        again = msgspec.structs.replace(self.body, attempt=self.body.attempt + 1)
        return msgspec.structs.replace(self._waiting(), body=again, lost=self.host)

    def _waiting(self) -> Task:
        return msgspec.structs.replace(self, state=State.WAITING, host="", until=0.0, started=Started())

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
        needs = {name: str(self.body.options.get(name, "")) for name in ("account", "sandbox")}
        whose: dict[str, Any] = {"id": self.id, "origin": origin, "person": self.person}
        offered = Offer(**whose, **needs, agent=self.agent, labels=self.labels, host=self.on)
        return signed.sign(OFFER, offered, key)


def new_task(person: str, agent: str, body: Body, labels: tuple[str, ...] = (), on: str = "", *, at: float) -> Task:
    """:returns: a task that waits; the parameters are those of :class:`Task`."""
    task = secrets.token_hex(ID_BYTES)
    return Task(id=task, person=person, agent=agent, labels=labels, on=on, body=body, at=at)


def read_offer(data: bytes, key_of: Callable[[str], bytes | None]) -> Offer:
    """
    :param key_of: returns the key of a host; ``None``: it is not trusted.
    :raises ProtocolViolation: it is no offer of a host that is trusted.
    """
    return signed.verify(OFFER, data, _offers, lambda offer: key_of(offer.origin))
