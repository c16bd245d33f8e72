"""A session without a terminal, shown to a person who takes no part in it."""

from __future__ import annotations

import signal

from twisted.internet.defer import Deferred

from ironcurtain.cli.terminal.commands import parse
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.operations.api import SessionApi
from ironcurtain.session import events
from ironcurtain.session.model import SessionInfo
from ironcurtain.view.chronicle import watched
from ironcurtain.view.commands import Command
from ironcurtain.view.events import describe
from ironcurtain.view.narration import Answers, Ask, Say


class Watching:
    """Used once."""

    def __init__(self, api: SessionApi, session: SessionInfo, printer: Printer) -> None:
        self._api, self._session, self._printer = api, session, printer
        self._live = printer.surface.live
        self._end: Deferred[int] = Deferred()

    async def watch(self) -> int:
        """
        Show what happened and what happens, until the person leaves or the session is closed.

        :returns: the exit status: 0; 1 if the output is gone; 130 after Ctrl-C; 143 after SIGTERM.
        """
        self._printer.view.begin(Answers.FLOWING)
        how = "; Ctrl-D leaves it" if self._live else ""
        self._printer.note(f"session {self._session.number} in {self._session.workspace}{how}", "dim")
        async with self._printer.following(self._api, self._session.number, self, self._heard, reads=False):
            return await self._end

    def signalled(self, number: int) -> bool:
        """:returns: ``True``: a signal of the process, of this number, is handled."""
        self._leave(130 if number == signal.SIGINT else 143)
        return True

    def typed(self, line: str, began: float, own: str = "") -> None:
        """The person entered a line: only to leave."""
        match parse(line, own):
            case None:
                pass
            case Command("detach" | "quit" | "exit"):
                self._leave(0)
            case _:
                attach = f"ironcurtain attach {self._session.number}"
                self._printer.note(f"this only shows the session; to take part: {attach}")

    def interrupt(self) -> None:
        """Ctrl-C was pressed."""
        self._leave(130)

    def input_ended(self) -> None:
        """Ctrl-D was pressed, or there is no input."""
        if self._live:
            self._leave(0)

    def lost(self, why: str) -> None:
        """The surface can no longer show anything."""
        self._leave(1)

    def _leave(self, status: int) -> None:
        if not self._end.called:
            self._end.callback(status)

    def _heard(self, stamped: events.Stamped) -> None:
        self._printer.add(map(Say, watched(self._printer.view, stamped)))
        match stamped.event:
            case events.StateChanged(state="closed"):
                self._leave(0)
            case events.Missed():
                Deferred.fromCoroutine(self._resync()).addErrback(lambda failure: self._leave(1))

    async def _resync(self) -> None:
        """Events were lost, perhaps the one of its end."""
        items = await self._printer.resync(self._api, self._session.number)
        asked = [describe(item.pending) for item in items if isinstance(item, Ask)]
        self._printer.add(Say(words.line) for words in asked if words is not None)
        if self._printer.view.state == "closed":
            self._leave(0)
