"""Take tasks of other hosts, and start them here, as their principals; and offer those of this host."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.audit.signing import SigningKey
from ironcurtain.control.client import ControlClient
from ironcurtain.control.wire import RemoteError
from ironcurtain.errors import (
    ConfigurationError,
    IronCurtainError,
    NotAllowed,
    NotFound,
    ProtocolViolation,
    Unavailable,
)
from ironcurtain.fleet.serving import DAEMON, TASKS
from ironcurtain.fleet.taken import Keeper, Taken
from ironcurtain.fleet.task_files import TaskFiles
from ironcurtain.fleet.task_queue import TaskQueue
from ironcurtain.fleet.tasks import Body, Offer, Over, Started, State, read_offer
from ironcurtain.fleet.trust import Trust
from ironcurtain.home.layout import Home
from ironcurtain.operations import Principal, Role
from ironcurtain.operations.principal import LOCAL_ROLES
from ironcurtain.services.asyncio_bridge import from_asyncio
from ironcurtain.session.events import Stamped, StateChanged
from ironcurtain.session.model import DAEMON_STOPS, SessionInfo, SessionRequest
from ironcurtain.text.display import one_line

MEMORY_NEEDED = 512 * 1024 * 1024
"""Free bytes without which no task is taken: what an agent program and its servers need, as a rule."""

UNFIT_SECONDS = 30.0
"""So long it is not tried again whether an agent could be started here that could not."""

WANTING = (Unavailable.exit_status, ConfigurationError.exit_status)
"""
The exit statuses of errors that say what a host lacks, and another one may have: if its daemon says so, which then has
started nothing. Where the daemon does not answer, the session may run.
"""

OFFER_SECONDS, AGAIN_SECONDS = 300.0, 10.0
"""Seconds between two offers of a task that waits; and after one that the server did not take."""

CheckRoom = Callable[[SessionRequest], Awaitable[None]]
"""Raises :class:`~ironcurtain.errors.IronCurtainError` if a session could not be started here now."""


class Room(msgspec.Struct, frozen=True):
    """
    What this host could take now.

    :param sessions: how many more.
    :param memory: free bytes; ``None``: unknown.
    """

    sessions: int
    memory: int | None
    agents: tuple[str, ...]
    labels: tuple[str, ...]
    host: str

    @property
    def any(self) -> bool:
        """Whether there is room for anything."""
        return self.sessions > 0 and (self.memory is None or self.memory >= MEMORY_NEEDED)

    def suits(self, offer: Offer) -> bool:
        """:returns: whether a task can run here now."""
        asked = offer.host in ("", self.host) and offer.agent in ("", *self.agents)
        return self.any and asked and set(offer.labels) <= set(self.labels)


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
    :param check: see :data:`CheckRoom`.
    :param keeper: learns what runs here.
    """

    log = Logger()

    def __init__(
        self,
        reactor: Any,
        home: Home,
        trust: Callable[[], Trust],
        room: Callable[[], Room],
        check: CheckRoom,
        keeper: Keeper,
    ) -> None:
        self._reactor, self._home, self._trust, self._room, self._keeper = reactor, home, trust, room, keeper
        self._check = check
        self._unfit: dict[tuple[str, str, str], float] = {}
        """Until when it is known that what a task needs is not to be had here."""

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
        if running := self._keeper.runs(offer.id):  # a repeated message, or another host's task of the same id
            return running == offer.origin
        if who is None or not self._room().suits(offer) or not await self._fits(offer):
            return False
        origin = ControlClient(self._reactor, str(self._home.fleet_socket(offer.origin, DAEMON)), host=offer.origin)
        try:
            body = await origin.ask(f"{TASKS}/{offer.id}/take", Body)
            if running := self._keeper.runs(offer.id):
                return running == offer.origin
            started = Started(attempt=body.attempt)
            self._keeper.begin(Taken(id=offer.id, origin=offer.origin, restart=body.restart, started=started))
            await origin.ask(f"{TASKS}/{offer.id}/begin", dict[str, str])
        except (IronCurtainError, OSError) as e:
            self.log.info("task {task} of {host} was not taken: {error}", task=offer.id, host=offer.origin, error=e)
            self._keeper.tell(offer.id, over=Over.LOST)  # that host may have heard that it begins here
            return isinstance(e, IronCurtainError) and e.code == NotFound.code  # it is over
        await self._start(offer, body, who)
        return True

    async def _fits(self, offer: Offer) -> bool:
        """:returns: whether its agent could be started here now, with a sandbox and an account."""
        needs, now = (offer.agent, offer.account, offer.sandbox), self._reactor.seconds()
        if self._unfit.get(needs, 0.0) > now:
            return False
        options = {"account": offer.account, "sandbox": offer.sandbox}
        try:
            await self._check(
                SessionRequest(offer.agent, options={name: each for name, each in options.items() if each})
            )
        except IronCurtainError as e:
            self.log.info("no room for task {task} of {host}: {error}", task=offer.id, host=offer.origin, error=e)
            self._unfit = {key: until for key, until in self._unfit.items() if until > now}
            self._unfit[needs] = now + UNFIT_SECONDS
            return False
        return True

    async def _start(self, offer: Offer, body: Body, who: Principal) -> None:
        own = ControlClient(self._reactor, str(self._home.daemon_socket), who)
        request = SessionRequest(body.kind or offer.agent, body.task, None, body.options, budget=body.budget)
        try:
            info = await own.start(request, attended=body.attended)
        except IronCurtainError as e:
            self.log.warn("task {task} of {host} failed: {error}", task=offer.id, host=offer.origin, error=e)
            refused = isinstance(e, RemoteError) and e.exit_status in WANTING
            over = Over.REFUSED if refused else Over.NOT_YET
            self._keeper.tell(offer.id, why=one_line(str(e), 500), over=over)
            return
        self.log.info("task {task} of {host}: session {number}", task=offer.id, host=offer.origin, number=info.number)
        self._keeper.tell(offer.id, session=info.number)
        working = Deferred.fromCoroutine(self._work(own, offer.id, info, body))
        working.addErrback(lambda failure: self.log.info("a task ended: {error}", error=failure.getErrorMessage()))

    async def _work(self, own: ControlClient, task: str, info: SessionInfo, body: Body) -> None:
        try:
            if body.kind:  # it works by itself
                await closed(own, info.number)
                return
            release = await own.hold(info.number)
            try:
                await own.send(info.number, body.task)
            finally:
                await own.stop(info.number, held=True)  # unless somebody has attached to it
                release()
        finally:
            reason = (await own.session(info.number)).reason
            self._keeper.tell(task, over=Over.LOST if reason == DAEMON_STOPS else Over.ENDED)


async def closed(daemon: ControlClient, session: int) -> None:
    """Wait until a session is closed."""
    over: Deferred[None] = Deferred()

    def heard(stamped: Stamped) -> None:
        if isinstance(stamped.event, StateChanged) and stamped.event.state == "closed" and not over.called:
            over.callback(None)

    unfollow = await daemon.follow(session, 0, heard)
    try:
        await over
    finally:
        unfollow()


class Offering:
    """
    Offers the tasks of this host.

    :param name: of this host.
    :param key: signs the offers.
    :param queue: where they are offered.
    :param silent: returns whether a host is lost for sure, as far as this one can know.
    """

    log = Logger()

    def __init__(self, home: Home, name: str, key: SigningKey, queue: TaskQueue, silent: Callable[[str], bool]) -> None:
        self._silent = silent
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
        self._give_up()
        waiting = {task.id: task for task in self._tasks.all() if task.state in (State.WAITING, State.TAKEN)}
        self._offered = {task: at for task, at in self._offered.items() if task in waiting}
        for task in waiting.values():
            if now - self._offered.get(task.id, -OFFER_SECONDS) >= OFFER_SECONDS:
                self._offered[task.id] = now
                offering = from_asyncio(self._queue.offer(self._name, task.id, task.offer(self._name, self._key)))
                offering.addCallbacks(self._answered, self._failed, callbackArgs=(task.id,))

    def _give_up(self) -> None:
        """Let the tasks of lost hosts wait again that may be started again."""
        for task in self._tasks.all():
            if task.running and task.body.restart and self._silent(task.host):
                try:
                    self._tasks.change(task.id, lambda known, host=task.host: known.lose(host))  # type: ignore[misc]
                except (NotAllowed, NotFound):  # it has said something meanwhile
                    continue
                self.log.warn("task {task} is given up, since {host} is lost", task=task.id, host=task.host)

    def _answered(self, offered: bool, task: str) -> None:
        if not offered and task in self._offered:
            self._offered[task] -= OFFER_SECONDS - AGAIN_SECONDS

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            self.log.failure("a task was not offered", failure)
