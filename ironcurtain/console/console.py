"""The console of one viewer: connects state, frames, screen and source."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import urwid
from twisted.internet.defer import CancelledError, Deferred, FirstError, gatherResults
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.console.commands import Section, Start
from ironcurtain.console.details import Details
from ironcurtain.console.keys import paste, press
from ironcurtain.console.layout import Frame, frame
from ironcurtain.console.refreshing import Attention, Refreshing
from ironcurtain.console.screen import Channel, ChannelScreen, ReactorLoop
from ironcurtain.console.state import ConsoleState, Effect, End, Leave, Look, Send, Shown, TakeBack, Tell
from ironcurtain.console.widgets import PALETTE, FrameWidget
from ironcurtain.errors import IronCurtainError
from ironcurtain.escalation.model import Outcome
from ironcurtain.home.user_paths import user_path
from ironcurtain.operations.home_source import ConsoleSource
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.events import Stamped
from ironcurtain.session.model import SessionRequest
from ironcurtain.view.chronicle import Chronicle
from ironcurtain.view.outcomes import outcome_of_all

TICK_SECONDS = 1.0
"""Seconds between redraws, for the times on the screen."""

LOOK_SECONDS = 5.0
"""Seconds between refreshes without a notification of changes."""

WHEEL_ROWS = 3
"""Rows that one step of a mouse wheel scrolls."""

_WHEEL = {4: -WHEEL_ROWS, 5: WHEEL_ROWS}
_NOT_PRESSED = frozenset(("focus in", "focus out", "begin paste", "end paste"))


class Console:
    """
    Shows sessions and escalations, and sends decisions, until the viewer leaves.

    :param source: the data source.
    :param channel: the viewer's terminal.
    :param clock: for timers.
    :param who: the viewer's name, for the heading.
    :param environ: the viewer's ``TERM``, ``COLORTERM`` and others, from its terminal request.
    :param now: returns seconds since the epoch.
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
    ) -> None:
        self.ended: Deferred[int] = Deferred()
        """Fires with the exit status when the viewer has left."""
        self._source, self._channel, self._clock, self._who, self._now = source, channel, clock, who, now
        self._state, self._details = ConsoleState(), Details()
        self._frame = Frame((), Shown())
        self._loop = ReactorLoop(clock, self._crashed)
        self._screen = ChannelScreen(channel, environ, self._drawn)
        widget = FrameWidget(self._make, self._pressed, self._clicked)
        self._main = urwid.MainLoop(
            widget, PALETTE, self._screen, handle_mouse=self._screen.has_mouse, event_loop=self._loop
        )
        self._attention = Attention(self._screen, environ.get("TERM", ""))
        self._pasting = False
        self._running = False
        self._ticks = 0
        self._ticking = LoopingCall(self._tick)
        self._ticking.clock = clock
        self._refreshing = Refreshing(clock, self._look, self._failed)
        self._followed = 0
        self._unwatch: Callable[[], None] = lambda: None
        self._unfollow: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Take over the terminal and start drawing."""
        self._running = True
        self._main.start()
        self._attention.begin()
        self._ticking.start(TICK_SECONDS, now=False)
        self._unwatch = self._source.watch(self._refresh)
        self._refresh()

    def stop(self, status: int = 0) -> None:
        """Restore the terminal, and end. Can be called again."""
        if self._running:
            self._give_up()
            self._main.stop()
            self._attention.end()
            self._screen.flush()
            self._channel.close(status)
            self.ended.callback(status)

    def lost(self) -> None:
        """The channel is gone."""
        if self._running:
            self._give_up()
            self.ended.callback(0)

    def received(self, data: bytes) -> None:
        """Process the terminal's input."""
        if self._running:
            self._guarded(lambda: self._screen.received(data))

    def resized(self, *size: int) -> None:
        """The terminal has a new size, which the channel knows."""
        if self._running:
            self._guarded(self._screen.resized)

    def drained(self) -> None:
        """The channel accepts bytes again."""
        if self._running and self._screen.dirty:
            self._loop.wake()

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            self._crashed()
        self._loop.wake()

    def _crashed(self) -> None:
        """Called in an exception handler: end the console, not the process."""
        self.log.failure("the console of {who} failed", who=self._who)
        self.stop(70)

    def _give_up(self) -> None:
        self._running = False
        self._ticking.stop()
        self._unwatch()
        self._unfollow()
        self._refreshing.cancel()
        self._loop.stop()

    def _make(self, columns: int, rows: int) -> Frame:
        due = self._state.keys.due(self._state.question)
        early = due is None or self._clock.seconds() < due
        self._frame = frame(self._state, self._details, columns, rows, self._now(), self._who, early)
        return self._frame

    def _drawn(self) -> None:
        self._state = self._state.drawn(self._frame.shown, self._clock.seconds())
        self._attention.drawn(len(self._state.pending))
        self._screen.flush()

    def _pressed(self, key: str) -> None:
        if not self._running:  # an earlier key of the same read ended it
            return
        if key in _NOT_PRESSED:
            self._pasting = {"begin paste": True, "end paste": False}.get(key, self._pasting)
        elif self._pasting:
            self._become(paste(self._state, key, self._clock.seconds()))
        else:
            self._become(*press(self._state, key, self._clock.seconds(), self._screen.alone))

    def _clicked(self, button: int, column: int, row: int) -> None:
        if button in _WHEEL:
            self._become(self._state.roll(_WHEEL[button]))
        elif button == 1 and self._state.question is None:
            target = self._frame.at(column, row)
            if target is not None:
                self._become(self._state.choose(target.section, target.number))

    def _become(self, state: ConsoleState, effects: tuple[Effect, ...] = ()) -> None:
        self._state = state
        if state.followed != self._followed:
            self._follow(state.followed)
        sent = [effect for effect in effects if isinstance(effect, Send)]
        if sent:
            Deferred.fromCoroutine(self._send(*sent)).addErrback(self._failed)
        for effect in effects:
            match effect:
                case End(session):
                    Deferred.fromCoroutine(self._end(session)).addErrback(self._failed)
                case Start():
                    Deferred.fromCoroutine(self._begin(effect)).addErrback(self._failed)
                case TakeBack(number):
                    Deferred.fromCoroutine(self._take_back(number)).addErrback(self._failed)
                case Tell():
                    Deferred.fromCoroutine(self._tell(effect)).addErrback(self._failed)
                case Look():
                    self._refresh()
                case Leave():
                    self.stop()
        self._loop.wake()

    def _follow(self, session: int) -> None:
        self._unfollow()
        self._followed, self._unfollow = session, lambda: None
        activity = self._details.activity = Chronicle()

        def heard(stamped: Stamped) -> None:
            activity.add(stamped)
            if self._running:
                self._loop.wake()

        if session:
            self._unfollow = self._source.activity(session, heard)

    async def _send(self, *sent: Send) -> None:
        """Send decisions that were confirmed together, and show the outcome of all of them."""
        deciding = [Deferred.fromCoroutine(self._decide(each)) for each in sent]
        results = [await each for each in deciding]
        outcome, numbers = sent[0].outcome, [each.key.number for each in sent]
        words = outcome_of_all(outcome, outcome in (Outcome.APPROVED, Outcome.ANSWERED), numbers, results)
        self._become(self._state.with_message(*words))
        self._refresh()

    async def _decide(self, send: Send) -> EscalationView | str:
        """:returns: the decided escalation, or the reason of the failure."""
        number, digest = send.key
        try:
            if send.outcome in (Outcome.ANSWERED, Outcome.CANCELLED):
                return await self._source.answer(number, send.content, digest)
            return await self._source.decide(number, send.outcome, digest, send.keep, send.calls)
        except IronCurtainError as e:
            return str(e)

    async def _tell(self, tell: Tell) -> None:
        try:
            await self._source.send(tell.session, tell.text, tell.text if tell.typed else "")
        except IronCurtainError as e:
            self._become(self._state.with_message(str(e), "warn"))
        self._refresh()

    async def _end(self, session: int) -> None:
        try:
            await self._source.stop(session)
        except IronCurtainError as e:
            self._become(self._state.with_message(str(e), "warn"))
        else:
            self._become(self._state.with_message(f"session {session} has ended"))
        self._refresh()

    async def _begin(self, start: Start) -> None:
        workspace = Path(user_path(start.workspace)) if start.workspace else None
        try:
            info = await self._source.start(SessionRequest(start.agent, start.task, workspace))
        except IronCurtainError as e:
            self._become(self._state.with_message(str(e), "warn"))
        else:
            joining = f"ironcurtain attach {info.number} joins it"
            self._become(
                self._state.choose(Section.SESSIONS, info.number).with_message(
                    f"session {info.number} has started: {joining}", "good"
                )
            )
        self._refresh()

    async def _take_back(self, number: int) -> None:
        try:
            revoked = await self._source.revoke(number)
        except IronCurtainError as e:
            self._become(self._state.with_message(str(e), "warn"))
        else:
            self._become(self._state.with_message(f"revoked: asked again about {revoked.scope}"))
        self._refresh()

    def _tick(self) -> None:
        self._ticks += 1
        if self._ticks % int(LOOK_SECONDS / TICK_SECONDS) == 0:
            self._refresh()
        self._loop.wake()

    def _refresh(self) -> None:
        """Fetch everything; changes that arrive meanwhile cause another refresh."""
        if self._running:
            self._refreshing.begin()

    async def _look(self) -> None:
        asked: list[Coroutine[Any, Any, Any]] = [self._source.sessions(), self._source.escalations(closed=True)]
        try:
            sessions, escalations = await gatherResults(map(Deferred.fromCoroutine, asked), consumeErrors=True)
        except FirstError as e:
            e.subFailure.raiseException()
        if self._state.permitted:
            self._become(replace(self._state, permissions=tuple(await self._source.permissions())))
        before = self._state
        self._become(before.news(sessions, escalations, self._now()))
        if self._state.arrived(before):
            self._attention.ring()
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
