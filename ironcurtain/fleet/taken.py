"""
The tasks of other hosts that run here: those hosts learn how they are, and what a host gave up ends here.

A host that is cut off for long may count as lost elsewhere, where what may be started again then is. So it ends such
sessions itself, before that can happen: its lease is over for it earlier than for the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.control.client import ControlClient
from ironcurtain.errors import IronCurtainError, NotFound
from ironcurtain.files.atomic import write_atomically
from ironcurtain.fleet.members import LEASE
from ironcurtain.fleet.serving import DAEMON, TASKS
from ironcurtain.fleet.tasks import Over, Started
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.operations import Principal, Role

KEEP_SECONDS = 15.0
"""Seconds between two reports of a session that may be started again elsewhere."""

CUT_OFF_SECONDS = LEASE - 15.0
"""
So long after the last statement of this host that the server has, such sessions end here: two statements are missing
then, and the other hosts count on from when that one arrived.
"""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """
    A task that runs here.

    :param origin: the host on which it was given.
    :param restart: whether that host starts it elsewhere if this one is lost.
    :param started: what that host has to learn.
    """

    id: str
    origin: str
    restart: bool = False
    started: Started

    @property
    def over(self) -> bool:
        """Whether there is nothing more to learn."""
        return self.started.over is not Over.NOT_YET or self.started.why != ""

    @property
    def told(self) -> bool:
        """Whether there is something to learn already."""
        return self.over or self.started.session != 0


class TakenFiles:
    """A file for each of them in the home, so that a daemon knows what the one before it had."""

    def __init__(self, home: Home) -> None:
        self._directory = home.path / "fleet-taken"

    def write(self, taken: Taken) -> None:
        """Keep one, instead of what was known of it."""
        private_directory(self._directory)
        write_atomically(self._path(taken.id), msgspec.json.encode(taken))

    def remove(self, task: str) -> None:
        """Forget one."""
        self._path(task).unlink(missing_ok=True)

    def all(self) -> list[Taken]:
        """:returns: all of them; damaged files are left out."""
        found = []
        for path in sorted(self._directory.glob("*.json")):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=Taken))
            except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
        return found

    def _path(self, task: str) -> Path:
        return self._directory / f"{task}.json"


class Keeper:
    """Reports what runs here to the hosts on which it was given, and ends what they have given up."""

    log = Logger()

    def __init__(self, reactor: Any, home: Home) -> None:
        self._reactor, self._home, self._files = reactor, home, TakenFiles(home)
        self._known = {taken.id: _left_behind(taken) for taken in self._files.all()}
        self._said: dict[str, Started] = {}
        self._next, self._busy = 0.0, False
        self._stored_at = reactor.seconds()

    def known(self, task: str) -> Started | None:
        """:returns: what the host of a task learns of it; ``None``: it does not run here."""
        return None if (taken := self._known.get(task)) is None else taken.started

    def runs(self, task: str) -> str:
        """:returns: the host that gave the task of this id that begins or runs here; empty: none does."""
        return "" if (taken := self._known.get(task)) is None or taken.over else taken.origin

    def begin(self, taken: Taken) -> None:
        """
        One is about to begin.

        :raises OSError: it cannot be written down, and so must not begin.
        """
        self._files.write(taken)
        self._known[taken.id] = taken

    def tell(self, task: str, **news: Any) -> None:
        """:param news: of one that has begun: members of its :class:`~ironcurtain.fleet.tasks.Started`."""
        if (known := self._known.get(task)) is None or known.started.over is not Over.NOT_YET:
            return
        told = msgspec.structs.replace(known, started=msgspec.structs.replace(known.started, **news))
        self._known[task], self._next = told, 0.0
        try:
            self._files.write(told)
        except OSError as e:  # what is in memory is reported; the next daemon would say that it was lost
            self.log.warn("news of task {task} is not written down: {error}", task=task, error=e)

    def forget(self, task: str) -> None:
        """One did not begin, or its host knows that it is over."""
        self._known.pop(task, None)
        self._said.pop(task, None)
        self._files.remove(task)

    def stored(self, at: float) -> None:
        """:param at: when a statement of this host was made that the server has, on a monotonic clock."""
        self._stored_at = max(at, self._stored_at)

    def look(self, now: float) -> None:
        """
        Report what is due.

        :param now: on a monotonic clock.
        """
        if now - self._stored_at > CUT_OFF_SECONDS:
            for taken in list(self._known.values()):
                if taken.restart and taken.started.session and not taken.over:
                    self._give_up(taken, "this host is cut off from the fleet, where it counts as lost soon")
        if self._known and now >= self._next and not self._busy:
            self._busy, self._next = True, now + KEEP_SECONDS
            Deferred.fromCoroutine(self._report()).addErrback(self._failed).addBoth(self._done)

    async def _report(self) -> None:
        for task in list(self._known):
            taken, socket = self._known[task], None
            if taken.told and (taken.restart or self._said.get(task) != taken.started):
                socket = self._home.fleet_socket(taken.origin, DAEMON)
            if socket is None or not socket.exists():
                continue
            origin = ControlClient(self._reactor, str(socket), host=taken.origin)
            try:
                await origin.ask(f"{TASKS}/{task}/report", dict[str, str], taken.started)
            except IronCurtainError as e:
                if e.code != NotFound.code:  # it is away, or does not trust this host for now
                    continue
                if taken.restart and not self._known[task].over:
                    self._give_up(self._known[task], f"{taken.origin} has given it up, since this host was lost")
                self.forget(task)
            else:
                self._said[task] = taken.started
                if taken.over:
                    self.forget(task)

    def _give_up(self, taken: Taken, why: str) -> None:
        number = taken.started.session
        self.log.warn("session {number} of task {task} is ended: {why}", number=number, task=taken.id, why=why)
        who = Principal(f"fleet:{taken.origin}", frozenset((Role.ADMIN,)))
        own = ControlClient(self._reactor, str(self._home.daemon_socket), who)
        Deferred.fromCoroutine(own.stop(number)).addErrback(self._not_stopped)
        self.tell(taken.id, over=Over.LOST)

    def _not_stopped(self, failure: Failure) -> None:
        if failure.check(IronCurtainError) is None:
            self._failed(failure)
        else:  # it is over already
            self.log.info("a session that was given up: {error}", error=failure.getErrorMessage())

    def _failed(self, failure: Failure) -> None:
        self.log.failure("the tasks that run here were not reported", failure)

    def _done(self, _: object) -> None:
        self._busy = False


def _left_behind(taken: Taken) -> Taken:
    """:returns: a task that the daemon before this one had, whose session has ended with it."""
    if taken.over:
        return taken
    return msgspec.structs.replace(taken, started=msgspec.structs.replace(taken.started, over=Over.LOST))
