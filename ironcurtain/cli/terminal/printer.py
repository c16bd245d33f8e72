"""Writes items to the surface, collected into bursts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import groupby

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall

from ironcurtain.cli.terminal.surface import Listener, Surface
from ironcurtain.escalation.decision_keys import DecisionKeys, Part, ShownPart
from ironcurtain.operations.api import SessionApi
from ironcurtain.operations.model import raised_event
from ironcurtain.session.events import EscalationRaised, Stamped
from ironcurtain.text.columns import Line, Style, fold
from ironcurtain.view.banner import banner
from ironcurtain.view.look import TICK_SECONDS
from ironcurtain.view.narration import Ask, Item, Narration, Say

GATHER_SECONDS = 0.03
"""Minimum seconds between two times that output is drawn, so that a burst of text is drawn in few steps."""


class Printer:
    """
    :param now: returns seconds since the epoch.
    :ivar view: the state of the session's display.
    :ivar keys: what was shown to the person, in seconds of ``clock``.
    """

    def __init__(self, surface: Surface, clock: IReactorTime, now: Callable[[], float]) -> None:
        self.view, self.keys = Narration(airy=surface.live, signs=surface.signs), DecisionKeys()
        self.surface, self._clock, self.now = surface, clock, now
        self._listener: Listener | None = None
        self._items: list[Item] = []
        self._ticking = LoopingCall(self._redraw)
        self._ticking.clock = clock
        self._drawing: IDelayedCall | None = None
        self._drawn = -GATHER_SECONDS
        self._calling = self._stopped = False

    @asynccontextmanager
    async def following(
        self, api: SessionApi, number: int, listener: Listener, heard: Callable[[Stamped], None], *, reads: bool
    ) -> AsyncIterator[None]:
        """
        Have the surface open, and get the session's events. At the end the remaining items are printed.

        :param listener: as for :meth:`~ironcurtain.cli.terminal.surface.Surface.open`, with ``reads``.
        """
        unfollow: Callable[[], None] | None = None
        self._listener = listener
        self.surface.open(listener, reads)
        try:
            self._ticking.start(TICK_SECONDS, now=False)
            unfollow = await api.follow(number, 0, heard)
            yield
        finally:
            if unfollow is not None:
                unfollow()
            if self._ticking.running:
                self._ticking.stop()
            self.draw()
            self._stopped = True
            await self.surface.close()

    @property
    def seconds(self) -> float:
        """Now, on the clock of :attr:`keys`."""
        return self._clock.seconds()

    def show_whole(self, number: int, digest: str, lines: Iterable[Line]) -> None:
        """Print an escalation completely, now."""
        self.report(lines)
        self.draw()
        for part in (Part.CALL, Part.SCOPE):
            self.keys.show(ShownPart(number, digest, part), self._clock.seconds())

    async def resync(self, api: SessionApi, number: int) -> list[Item]:
        """
        Events were lost: query the session's state.

        :returns: what is to be shown of it.
        """
        found = [session for session in await api.sessions() if session.number == number]
        waiting = [raised_event(view) for view in await api.escalations() if view.session == number]
        self.view.servers_starting = found[0].servers_starting if found else {}
        return self.view.resync(found[0].state if found else "closed", waiting)

    def note(self, text: str, style: Style = "warn", *, escaped: bool = False) -> None:
        """Print a line of the front end; ``text`` may be untrusted, unless it is escaped already."""
        self.add(self.view.note(text, style, escaped=escaped))

    def report(self, lines: Iterable[Line]) -> None:
        """Print the output of a command."""
        self.add(self.view.report(lines))

    def add(self, items: Iterable[Item]) -> None:
        """Print these items soon."""
        if self._stopped:
            return
        self._items += items
        if self._drawing is None:
            rest = self._drawn + GATHER_SECONDS - self._clock.seconds()
            self._drawing = self._clock.callLater(max(rest, 0.0), self.draw)

    def draw(self) -> None:
        """Print the collected items now."""
        if self._stopped:
            return
        if self._drawing is not None and self._drawing.active():
            self._drawing.cancel()
        self._drawing, self._drawn = None, self._clock.seconds()
        items, self._items = self._items, []
        self.view.width = self.surface.width()
        try:
            for is_answer, together in groupby(items, lambda item: isinstance(item, Say) and item.answer):
                self.surface.print([line for item in together for line in self._lines(item)], is_answer)
            self._call_person(items)
            self._redraw()
        except OSError as e:
            if self._listener is not None:
                self._listener.lost(f"the output cannot be written: {e.strerror or e}")

    def _redraw(self) -> None:
        self.surface.show(self.view.live(self.now()))

    def _lines(self, item: Item) -> list[Line]:
        if isinstance(item, Say):
            return fold(item.line, self.surface.width()) if self.surface.live else [item.line]
        return self._ask(item.pending) if item.pending.number in self.view.pending else []

    def _ask(self, pending: EscalationRaised) -> list[Line]:
        shown = banner(pending, self.now(), self.surface.width(), self.surface.signs)
        for part, is_shown in ((Part.ROW, True), (Part.CALL, shown.whole), (Part.SCOPE, shown.scope)):
            if is_shown:
                self.keys.show(ShownPart(pending.number, pending.digest, part), self._clock.seconds())
        return shown.lines

    def _call_person(self, items: Iterable[Item]) -> None:
        asked = [item.pending for item in items if isinstance(item, Ask)]
        new = [each for each in asked if not self.keys.missing([ShownPart(each.number, each.digest, Part.ROW)])]
        if new:
            self._calling = True
            self.surface.bell(f"escalation {new[-1].number} waits")
        elif self._calling and not self.view.pending:
            self._calling = False
            self.surface.calm()
