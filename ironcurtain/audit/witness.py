"""
Witnesses: places outside the home that get the signed heads of logs.

A log that is replaced as a whole, or cut, no longer fits the heads that a witness has. Whoever can change the log must
not be able to change the witness.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from ironcurtain.audit.signing import SignedHead
from ironcurtain.audit.unsent import UnsentHeads
from ironcurtain.audit.witness_lines import BEGINS, head_line, read_heads, witness_file
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import Home
from ironcurtain.services.line_sinks import FileSink, JournalSink, LineSink, SyslogSink

WriteLine = Callable[[bytes], Deferred[None]]
"""Writes a line with its end; fails if it was not written."""

FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0
"""Seconds before the first attempt to send a head again, and at most; each delay is twice the one before it."""

LAST_SECONDS = 5.0
"""Maximum number of seconds that the end of a session waits for its witnesses."""


def make_sinks(home: Home, places: Iterable[str]) -> dict[str, LineSink]:
    """
    :param places: as the setting ``audit.witness`` has them.
    :returns: what writes to each that is on this machine.
    :raises ConfigurationError: a file is in the home, where whoever can change the log can change it, too.
    """
    sinks: dict[str, LineSink] = {}
    for place in places:
        if place.startswith(HTTPS):
            continue
        if (path := witness_file(place)) is None:
            sinks[place] = SyslogSink() if place == "syslog" else JournalSink()
        elif Path(os.path.realpath(path)).is_relative_to(os.path.realpath(home.path)):
            raise ConfigurationError(
                str(home.config), f"{path} is in the home: a witness must be elsewhere", field=NAME
            )
        else:
            sinks[place] = FileSink(path, BEGINS)
    return sinks


HTTPS = "https://"
"""What the names of witnesses on other machines begin with."""

NAME = "audit.witness"
"""The setting."""


def fleet_heads(home: Home) -> UnsentHeads:
    """:returns: the heads that wait for the home's daemon, which sends them to the other members."""
    return UnsentHeads(home.unsent_heads, "to the fleet")


class FleetSink:
    """Puts heads where the daemon finds them."""

    def __init__(self, home: Home) -> None:
        self._heads = fleet_heads(home)

    def write(self, line: bytes) -> None:
        """See :meth:`~ironcurtain.services.line_sinks.LineSink.write`."""
        for head in read_heads([line]):
            self._heads.keep(head.session, line)


class Witnesses:
    """
    Sends heads to all witnesses of a session. One that cannot be reached disturbs nobody: the head is sent again, after
    delays that grow, and what it lacks at the end is sent by a later session of the home.

    :param writers: write a line to each witness, by name.
    :param unsent: directory of the heads that witnesses lack.
    :param tell: tells the user that a witness cannot be reached, and that it can again.
    :ivar names: of the witnesses.
    """

    def __init__(
        self, writers: Mapping[str, WriteLine], unsent: Path, clock: IReactorTime, tell: Callable[[str], None]
    ) -> None:
        self._clock, self.names = clock, tuple(writers)
        self._places = [_Place(name, write, UnsentHeads(unsent, name), clock, tell) for name, write in writers.items()]

    def send(self, head: SignedHead) -> None:
        """Send a head. While a witness is busy, only the newest is kept for it, which stands for those before it."""
        for place in self._places:
            place.send(head.session, head_line(head))

    async def finish(self) -> None:
        """Wait until all have the last head, but not for ever."""
        waiting = DeferredList([place.settled() for place in self._places], consumeErrors=True)
        await waiting.addTimeout(LAST_SECONDS, self._clock)
        for place in self._places:
            place.give_up()


class _Place:
    def __init__(
        self, name: str, write: WriteLine, unsent: UnsentHeads, clock: IReactorTime, tell: Callable[[str], None]
    ) -> None:
        self._name, self._write, self._unsent, self._clock, self._tell = name, write, unsent, clock, tell
        self._next: tuple[str, bytes] | None = None
        self._earlier: deque[tuple[str, bytes]] | None = None
        """Heads of other sessions; ``None``: not read yet."""
        self._writing: Deferred[None] | None = None
        self._retry: IDelayedCall | None = None
        self._delay = FIRST_DELAY
        self._failing = self._over = False
        self._waiting: list[Deferred[None]] = []

    def send(self, session: str, line: bytes) -> None:
        self._next = session, line
        if self._failing:
            self._unsent.keep(session, line)
        self._go_on()

    def settled(self) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self._waiting.append(done)
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._go_on()
        return done

    def give_up(self) -> None:
        self._over = True
        if self._writing is not None:
            self._say_failing("no answer")
            self._writing.cancel()

    def _go_on(self) -> None:
        if self._writing is not None or self._retry is not None or self._over:
            return
        if self._next is None and self._waiting:
            waiting, self._waiting = self._waiting, []
            for done in waiting:
                done.callback(None)
            return
        if self._next is not None:
            (session, line), self._next = self._next, None
        elif self._earlier:
            session, line = self._earlier.popleft()
        else:
            return
        self._writing = writing = self._write(line)
        writing.addCallbacks(
            lambda _: self._written(session, line), lambda failure: self._failed(failure, session, line)
        )
        writing.addErrback(lambda failure: self._tell(f"the witness {self._name} failed: {failure.getErrorMessage()}"))

    def _written(self, session: str, line: bytes) -> None:
        self._writing, self._delay = None, FIRST_DELAY
        self._unsent.sent(session, line)
        if self._failing:
            self._failing = False
            self._tell(f"the witness {self._name} has the heads of the audit log again")
        if self._earlier is None:
            self._earlier = deque(each for each in self._unsent.lines() if each[0] != session)
        self._go_on()

    def _failed(self, failure: Failure, session: str, line: bytes) -> None:
        self._writing = None
        self._say_failing(failure.getErrorMessage())
        self._next = self._next or (session, line)
        self._unsent.keep(*self._next)
        if self._waiting:  # for the last head: this was the last attempt
            self._over, waiting, self._waiting = True, self._waiting, []
            for done in waiting:
                done.callback(None)
        elif not self._over:
            self._retry = self._clock.callLater(self._delay, self._again)
            self._delay = min(2 * self._delay, LONGEST_DELAY)

    def _again(self) -> None:
        self._retry = None
        self._go_on()

    def _say_failing(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            self._tell(f"the witness {self._name} cannot be reached ({why}): it lacks the head of the audit log")
