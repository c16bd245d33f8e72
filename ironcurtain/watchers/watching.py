"""Follow watchers: triggers, decisions, records and runs together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import msgspec
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, NotAllowed
from ironcurtain.files.locks import FileLock, Held
from ironcurtain.text.quantities import counted
from ironcurtain.watchers.decision import Batch, Chains, Decision
from ironcurtain.watchers.model import Event, Watcher
from ironcurtain.watchers.record import Record, Records
from ironcurtain.watchers.trigger import Trigger

LONGEST_SLEEP = 60.0
"""Seconds after which it is decided again: the clock may have been set."""

TURN_SECONDS = 30.0
"""Seconds between attempts to follow a watcher that another process follows."""


class Declined(NotAllowed):
    """A person did not let a watcher run. That is no failure."""


class Run(Protocol):
    """Runs an agent for a watcher."""

    def __call__(self, watcher: Watcher, batch: Batch, begun: Callable[[int], None]) -> Awaitable[None]:
        """
        :param begun: to be called once, with the number of the session, or 0, when the agent begins.
        :raises IronCurtainError: it failed; :class:`Declined`: a person did not let it run.
        """


class Surroundings(msgspec.Struct, frozen=True):
    """
    What the watchers of a process share.

    :param make_trigger: makes a watcher's trigger. It raises :class:`~ironcurtain.errors.IronCurtainError` if this
        installation has none.
    :param clock: the reactor.
    :param now: returns seconds since the epoch.
    :param run: runs an agent.
    :param say: called with what people should know.
    """

    make_trigger: Callable[[Watcher], Trigger]
    records: Records
    chains: Chains
    clock: IReactorTime
    now: Callable[[], float]
    run: Run
    say: Callable[[str], None]


class Watching:
    """One watcher, followed by this process. Another process of this home that follows it keeps it until it ends."""

    log = Logger()

    def __init__(self, watcher: Watcher, around: Surroundings) -> None:
        self.watcher, self._around = watcher, around
        self._decision = Decision(watcher)
        self._turn = FileLock(around.records.turn(watcher.name))
        self._trigger: Trigger | None = None
        self._timer: IDelayedCall | None = None
        self._working: Deferred[None] | None = None
        self._ended = 0.0
        self._stopped = False

    def start(self) -> None:
        """Begin to follow it. If that fails, it is said, and noted in its record."""
        name, self._timer = self.watcher.name, None
        try:
            self._turn.acquire()
            with self._around.records.change(name) as record:
                if record.running is not None:
                    record.end(self._around.now(), "the process that ran it ended")
                record.missed, record.trouble = 0, ""
            self._trigger = self._around.make_trigger(self.watcher)
            self._trigger.start(self._fired)
        except Held:
            self._timer = self._around.clock.callLater(TURN_SECONDS, self.start)
        except (IronCurtainError, OSError) as e:
            self._trigger = None
            self._around.say(f"watcher {name} does not watch: {e}")
            with suppress(IronCurtainError), self._around.records.change(name) as record:
                record.trouble = str(e)

    @property
    def failed(self) -> bool:
        """Whether it does not watch, because :meth:`start` failed."""
        return self._turn.held and self._trigger is None

    async def stop(self) -> None:
        """End a run in progress, and follow it no longer."""
        self._stopped = True
        self._cancel_timer()
        trigger, self._trigger = self._trigger, None
        if trigger is not None:
            await maybeDeferred(trigger.stop)
        if (working := self._working) is not None:
            over = _over(working)
            working.cancel()
            await over
        self._turn.release()

    def _fired(self, event: Event) -> None:
        now, record = self._around.now(), self._around.records.read(self.watcher.name)
        chain = self._around.chains.current(self.watcher.name, now)
        if not self._decision.running and record.is_run_elsewhere(now, self._ended):
            self._decision.dropped += 1  # such as by 'ironcurtain watchers test'
            return
        if not self._decision.add(event, now, chain) and self.watcher.name in chain:
            self.log.warn(
                "watcher {name}: an event was dropped, since it would go round: {chain}",
                name=self.watcher.name,
                chain=" -> ".join((*chain, self.watcher.name)),
            )
        if self._timer is None:
            self._schedule(record)

    async def finish(self) -> None:
        """
        Nothing more will happen: run once more if something has happened, and stop.

        :raises Unavailable: the record cannot be written.
        """
        self._cancel_timer()
        if self._working is not None:
            await _over(self._working)
        self._decide(at_once=True)
        if self._working is not None:
            await _over(self._working)
        if waiting := self._decision.waiting:
            self._around.say(
                f"watcher {self.watcher.name} was not run for the last {counted(waiting, 'event')}: "
                f"max_per_hour is {self.watcher.max_per_hour}, or it is paused"
            )
        await self.stop()

    def _schedule(self, record: Record) -> None:
        self._cancel_timer()
        if record.paused:
            self._decision.clear()
        now = self._around.now()
        due = self._decision.due(record, now)
        if due is not None and not self._stopped:
            self._timer = self._around.clock.callLater(min(max(due - now, 0.0), LONGEST_SLEEP), self._decide)

    def _decide(self, at_once: bool = False) -> None:
        self._timer = None
        try:
            with self._around.records.change(self.watcher.name) as record:
                pass  # what could not be noted afterwards does not run
        except IronCurtainError as e:
            self._around.say(f"watcher {self.watcher.name} does not run: {e}")
            self._decision.clear()
            return
        batch = self._decision.take(record, self._around.now(), at_once)
        if batch is None:
            self._schedule(record)
            return
        self._around.chains.began(batch.chain)
        self._working = Deferred.fromCoroutine(self._work(batch))
        self._working.addErrback(lambda failure: self.log.failure("watcher {n} failed", failure, n=self.watcher.name))

    async def _work(self, batch: Batch) -> None:
        name, begun = self.watcher.name, False

        def begin(session: int) -> None:
            nonlocal begun
            begun = True
            with self._around.records.change(name) as record:
                record.begin(self._around.now(), session)

        error = ""
        try:
            await self._around.run(self.watcher, batch, begin)
        except CancelledError:
            error = "it was ended"
        except Declined:
            begun = False
        except IronCurtainError as e:
            error = str(e)
        except Exception as e:
            self.log.failure("watcher {name}: a run failed", name=name)
            error = f"{type(e).__name__}: {e}"
        finally:
            self._around.chains.ended(name, self._around.now())
        if self._trigger is not None:
            await maybeDeferred(self._trigger.settle)
        self._decision.ended(self._around.now())
        self._working = None
        if begun or error:
            self._note(error)
        if not self._stopped:
            self._schedule(self._around.records.read(name))

    def _note(self, error: str) -> None:
        name = self.watcher.name
        with self._around.records.change(name) as record:
            was_paused = record.paused
            if self._stopped:  # whoever stops this process is no failure of the agent
                record.abandon()
            else:
                record.end(self._around.now(), error)
            self._ended = record.ended
            record.dropped, self._decision.dropped = record.dropped + self._decision.dropped, 0
        if error and not self._stopped:
            self._around.say(f"watcher {name} failed: {error}")
        if record.paused and not was_paused:
            self._around.say(f"watcher {name} is paused: {record.paused}")

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()


def _over(working: Deferred[None]) -> Deferred[None]:
    """:returns: fires when a run is over, in whatever way."""
    done: Deferred[None] = Deferred()
    working.addBoth(lambda _: done.callback(None))
    return done
