"""The console of one viewer: connects state, frames, display and source."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, FirstError, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.console.actions import Change, decide, perform
from ironcurtain.console.details import Details
from ironcurtain.console.display import Display, Heard, Pressed, Rolled
from ironcurtain.console.keys import paste, press
from ironcurtain.console.layout import ClickTarget, Frame, frame
from ironcurtain.console.screen import Channel
from ironcurtain.console.state import REFRESH, ConsoleState, Effect, Send, Shown
from ironcurtain.errors import IronCurtainError
from ironcurtain.operations.console_source import ConsoleSource
from ironcurtain.services.refreshing import Refreshing
from ironcurtain.session.events import Stamped
from ironcurtain.view.chronicle import Chronicle
from ironcurtain.view.commands import Command


class Console:
    """
    Shows sessions and escalations, and sends decisions, until the viewer leaves.

    :param source: the data source.
    :param channel: the viewer's terminal.
    :param clock: for timers.
    :param who: the viewer's name, for the heading.
    :param environ: the viewer's ``TERM``, ``COLORTERM`` and others, from its terminal request.
    :param now: returns seconds since the epoch.
    :param attaches: whether whoever starts it can attach the viewer to a session afterwards.
    :ivar ended: fires with the exit status when the viewer has left.
    :ivar attached: number of the session to attach to then; 0: none.
    """

    log = Logger()

    def __init__(
        self,
        source: ConsoleSource,
        channel: Channel,
        clock: IReactorTime,
        who: str,
        *,
        environ: Mapping[str, str],
        now: Callable[[], float] = time.time,
        attaches: bool = False,
    ) -> None:
        self.ended: Deferred[int] = Deferred()
        self.attached = 0
        self._source, self._clock, self._who, self._now = source, clock, who, now
        self._state, self._details = ConsoleState(attaches=attaches), Details()
        self._display = Display(channel, clock, environ, self._make, self._drawn, self._heard, self._crashed)
        self._following = Following(source, self._details, self._display.wake)
        self._refreshing = Refreshing(clock, source.watch, self._look, self._failed)
        self._running = False

    def start(self) -> None:
        """Take over the terminal and start drawing."""
        self._running = True
        self._display.start()
        self._refreshing.start()

    def stop(self, status: int = 0) -> None:
        """Restore the terminal, and end. Can be called again."""
        if self._running:
            self._give_up()
            self._display.close(status)
            self.ended.callback(status)

    def lost(self) -> None:
        """The channel is gone."""
        if self._running:
            self._give_up()
            self.ended.callback(0)

    def received(self, data: bytes) -> None:
        """Process the terminal's input."""
        if self._running:
            self._display.received(data)

    def resized(self, *size: int) -> None:
        """The terminal has a new size, which the channel knows."""
        self._display.resized()

    def drained(self) -> None:
        """The channel accepts bytes again."""
        self._display.wake()

    def _make(self, columns: int, rows: int) -> Frame:
        due = self._state.keys.due(self._state.question)
        early = due is None or self._clock.seconds() < due
        return frame(self._state, self._details, columns, rows, self._now(), self._who, early)

    def _drawn(self, shown: Shown) -> int:
        self._state = self._state.drawn(shown, self._clock.seconds())
        return len(self._state.pending)

    def _heard(self, what: Heard) -> None:
        if not self._running:  # an earlier key of the same read ended it
            return
        match what:
            case Pressed(key, pasted=True):
                self._become(paste(self._state, key, self._clock.seconds()))
            case Pressed(key, alone):
                self._become(*press(self._state, key, self._clock.seconds(), alone))
            case Rolled(rows):
                self._become(self._state.roll(rows))
            case ClickTarget() if self._state.question is None:
                self._become(self._state.choose(what.section, what.number))

    def _crashed(self) -> None:
        """End the console, not the process."""
        self.log.failure("the console of {who} failed", who=self._who)
        self.stop(70)

    def _give_up(self) -> None:
        self._running = False
        self._display.stop()
        self._following.follow(0)
        self._refreshing.stop()

    def _become(self, state: ConsoleState, effects: tuple[Effect, ...] = ()) -> None:
        self._state = state
        if self._running:
            self._following.follow(state.followed)
        if sent := [effect for effect in effects if isinstance(effect, Send)]:
            self._begin(decide(self._source, sent))
        for effect in effects:
            match effect:
                case Send():
                    continue
                case Command() if effect == REFRESH:
                    self._refreshing.begin()
                case Command("quit"):
                    self.stop()
                case Command("attach", int(session)):
                    self.attached = session
                    self.stop()
                case _:
                    self._begin(perform(self._source, effect))
        self._display.wake()

    def _begin(self, work: Coroutine[Any, Any, Change]) -> None:
        def done(change: Change) -> None:
            self._become(change(self._state))
            self._refreshing.begin()

        Deferred.fromCoroutine(work).addCallback(done).addErrback(self._failed)

    async def _look(self) -> None:
        """Fetch everything."""
        asked: list[Coroutine[Any, Any, Any]] = [self._source.sessions(), self._source.escalations(closed=True)]
        try:
            sessions, escalations = await gatherResults(map(Deferred.fromCoroutine, asked), consumeErrors=True)
        except FirstError as e:
            e.subFailure.raiseException()
        if self._state.permitted:
            self._become(replace(self._state, permissions=tuple(await self._source.permissions())))
        before = self._state
        new = before.news(sessions, escalations, self._now())
        self._become(replace(new, lacking=tuple(self._source.lacking())))
        if self._state.arrived(before):
            self._display.ring()
        if self._state.opened:
            with suppress(IronCurtainError):  # it has just ended, which the next refresh shows
                turns = tuple(await self._source.history(self._state.followed))
                self._become(replace(self._state, turns=turns))

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is not None:
            return
        if failure.check(IronCurtainError) is None:
            self.log.failure("the console of {who} could not ask or answer", failure, who=self._who)
        self._become(self._state.with_message(failure.getErrorMessage(), "warn"))


class Following:
    """
    Follows the session that is chosen.

    :param details: gets its activity.
    :param changed: called when there is more of it.
    """

    def __init__(self, source: ConsoleSource, details: Details, changed: Callable[[], None]) -> None:
        self._source, self._details, self._changed = source, details, changed
        self._session = 0
        self._unfollow: Callable[[], None] = lambda: None

    def follow(self, session: int) -> None:
        """:param session: its number; 0: none."""
        if session == self._session:
            return
        self._unfollow()
        activity = Chronicle()
        self._session, self._details.activity = session, activity if session else None

        def heard(stamped: Stamped) -> None:
            if activity is self._details.activity:
                activity.add(stamped)
                self._changed()

        self._unfollow = self._source.activity(session, heard) if session else lambda: None
