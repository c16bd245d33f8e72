"""Take tasks of other hosts, and start them here, as their principals; and offer those of this host."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.audit.signing import SigningKey
from ironcurtain.control.client import ControlClient
from ironcurtain.errors import IronCurtainError, NotAllowed, NotFound, ProtocolViolation
from ironcurtain.fleet.serving import DAEMON, TASKS
from ironcurtain.fleet.task_files import TaskFiles
from ironcurtain.fleet.task_queue import TaskQueue
from ironcurtain.fleet.tasks import Body, Offer, Started, State, read_offer
from ironcurtain.fleet.trust import Trust
from ironcurtain.home.layout import Home
from ironcurtain.operations import Principal, Role
from ironcurtain.operations.principal import LOCAL_ROLES
from ironcurtain.services.asyncio_bridge import from_asyncio
from ironcurtain.session.model import SessionInfo, SessionRequest
from ironcurtain.text.display import one_line

MEMORY_NEEDED = 512 * 1024 * 1024
"""Free bytes without which no task is taken: what an agent program and its servers need, as a rule."""

OFFER_SECONDS, AGAIN_SECONDS = 300.0, 10.0
"""Seconds between two offers of a task that waits; and after one that the server did not take."""


@dataclass(frozen=True, slots=True)
class Room:
    """
    What this host could take now.

    :param sessions: how many more.
    :param memory: free bytes; ``None``: unknown.
    """

    sessions: int
    memory: int | None
    agents: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether there is room for anything."""
        return self.sessions > 0 and (self.memory is None or self.memory >= MEMORY_NEEDED)

    def suits(self, offer: Offer) -> bool:
        """:returns: whether a task can run here now."""
        return self.any and offer.agent in ("", *self.agents) and set(offer.labels) <= set(self.labels)


def principal(offer: Offer, trust: Trust) -> Principal | None:
    """:returns: as whom a task would be started here; ``None``: they may not start sessions here."""
    try:
        who = trust.hosts[offer.origin].principal(offer.person, LOCAL_ROLES)
        who.require(Role.ADMIN)
    except (KeyError, NotAllowed):
        return None
    return who


class Taker:
    """
    :param trust: returns whom this host believes now.
    :param room: returns what it could take now.
    """

    log = Logger()

    def __init__(self, reactor: Any, home: Home, trust: Callable[[], Trust], room: Callable[[], Room]) -> None:
        self._reactor, self._home, self._trust, self._room = reactor, home, trust, room

    def room(self) -> bool:
        """See :class:`~ironcurtain.fleet.nats.Taking`."""
        return self._room().any

    def offered(self, message: bytes) -> Deferred[bool]:
        """See :class:`~ironcurtain.fleet.nats.Taking`."""
        return Deferred.fromCoroutine(self._offered(message))

    async def _offered(self, message: bytes) -> bool:
        try:
            offer = read_offer(message, self._trust().key_of)
        except ProtocolViolation as e:  # others may trust its host; and it may be this one, which takes none of its own
            self.log.debug("left out a task: {error}", error=e)
            return False
        who = principal(offer, self._trust())
        if who is None or not self._room().suits(offer):
            return False
        origin = ControlClient(self._reactor, str(self._home.fleet_socket(offer.origin, DAEMON)), host=offer.origin)
        try:
            body = await origin.ask(f"{TASKS}/{offer.id}/take", Body)
            await origin.ask(f"{TASKS}/{offer.id}/begin", dict[str, str])
        except IronCurtainError as e:
            self.log.info("task {task} of {host} was not taken: {error}", task=offer.id, host=offer.origin, error=e)
            return e.code == NotFound.code  # it is over
        await self._start(origin, offer, body, who)
        return True

    async def _start(self, origin: ControlClient, offer: Offer, body: Body, who: Principal) -> None:
        own = ControlClient(self._reactor, str(self._home.daemon_socket), who)
        try:
            info = await own.start(SessionRequest(offer.agent, body.task, None, body.options))
        except IronCurtainError as e:
            self.log.warn("task {task} of {host} failed: {error}", task=offer.id, host=offer.origin, error=e)
            started = Started(why=one_line(str(e), 500))
        else:
            self.log.info(
                "task {task} of {host}: session {number}", task=offer.id, host=offer.origin, number=info.number
            )
            started = Started(session=info.number)
            working = Deferred.fromCoroutine(self._work(own, info, body.task))
            working.addErrback(lambda failure: self.log.info("a task ended: {error}", error=failure.getErrorMessage()))
        try:
            await origin.ask(f"{TASKS}/{offer.id}/end", dict[str, str], started)
        except IronCurtainError as e:
            self.log.warn("{host} does not learn of task {task}: {error}", host=offer.origin, task=offer.id, error=e)

    async def _work(self, own: ControlClient, info: SessionInfo, task: str) -> None:
        release = await own.hold(info.number)
        try:
            await own.send(info.number, task)
        finally:
            await own.stop(info.number, held=True)  # unless somebody has attached to it
            release()


class Offering:
    """
    Offers the tasks of this host.

    :param name: of this host.
    :param key: signs the offers.
    :param queue: where they are offered.
    """

    log = Logger()

    def __init__(self, home: Home, name: str, key: SigningKey, queue: TaskQueue) -> None:
        self._tasks, self._name, self._key, self._queue = TaskFiles(home), name, key, queue
        self._offered: dict[str, float] = {}
        self._stamp, self._next = 0, 0.0

    def look(self, now: float) -> None:
        """
        Offer what waits, and again after an interval: the server may have lost it, or a member taken it away.

        :param now: on a monotonic clock.
        """
        if (stamp := self._tasks.stamp) == self._stamp and now < self._next:
            return
        self._stamp, self._next = stamp, now + AGAIN_SECONDS
        self._tasks.forget(time.time())
        waiting = {task.id: task for task in self._tasks.all() if task.state in (State.WAITING, State.TAKEN)}
        self._offered = {task: at for task, at in self._offered.items() if task in waiting}
        for task in waiting.values():
            if now - self._offered.get(task.id, -OFFER_SECONDS) >= OFFER_SECONDS:
                self._offered[task.id] = now
                offering = from_asyncio(self._queue.offer(self._name, task.id, task.offer(self._name, self._key)))
                offering.addCallbacks(self._answered, self._failed, callbackArgs=(task.id,))

    def _answered(self, offered: bool, task: str) -> None:
        if not offered and task in self._offered:
            self._offered[task] -= OFFER_SECONDS - AGAIN_SECONDS

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            self.log.failure("a task was not offered", failure)
