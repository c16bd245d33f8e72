"""Send the person's decisions in a session, each together with what was shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ironcurtain.cli.terminal.commands import Decide, DenyAll, Input, Revoke, Show, Simple, Undo, UndoShown, choose
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.terminal.undoing import Undoing
from ironcurtain.errors import IronCurtainError, NotShown, UsageError
from ironcurtain.escalation.decision_keys import needed
from ironcurtain.operations.api import SessionApi
from ironcurtain.operations.operations import LOOK
from ironcurtain.text.columns import Span
from ironcurtain.view.escalations import LIST_LIMIT, whole_lines
from ironcurtain.view.narration import Narration

Work = Coroutine[Any, Any, None]


class Deciding:
    """
    Answers the escalations of one session.

    :param number: the session's number.
    :param view: the state of the session's display.
    :param printer: knows what was shown, and shows more.
    :param now: returns seconds since the epoch.
    :param undoing: undoes turns.
    """

    def __init__(
        self,
        api: SessionApi,
        number: int,
        view: Narration,
        printer: Printer,
        now: Callable[[], float],
        undoing: Undoing,
    ) -> None:
        self._api, self._number, self._view, self._printer, self._now = api, number, view, printer, now
        self._undoing = undoing
        self._decided: set[int] = set()
        self.busy = 0
        """Number of answers, or requested texts, in progress."""

    @property
    def waiting(self) -> dict[int, str]:
        """The pending escalations that were not answered here, by number, with the digests of their arguments."""
        return {number: raised.digest for number, raised in self._view.pending.items() if number not in self._decided}

    def act(self, what: Input, began: float) -> Work | None:
        """
        :param began: when the person began to type.
        :returns: the work that a command needs; ``None`` for other commands.
        """
        match what:
            case Decide():
                return self._reported(self._decide(what, began))
            case Show():
                return self._reported(self._show(what, began))
            case DenyAll():
                return self._reported(self._api.deny_all(self._number))
            case Revoke(number):
                return self._reported(self._revoke(number))
            case Undo(turn):
                return self._reported(self._undoing.propose(turn))
            case UndoShown():
                return self._reported(self._undoing.confirm(began))
            case Simple.STOP:
                return self._reported(self._api.stop(self._number))
            case _:
                return None

    async def _reported(self, work: Awaitable[object]) -> None:
        self.busy += 1  # a later line, such as an approval, applies to what is shown by then
        try:
            await work
        except IronCurtainError as e:
            self._printer.add(self._view.note(str(e), "warn"))
        finally:
            self.busy -= 1

    def _chosen(self, asked: Decide | Show, began: float) -> int:
        typed = (began, self._printer.seconds)
        return choose(asked, self.waiting, self._printer.keys, typed, self._view.outcomes)

    async def _decide(self, asked: Decide, began: float) -> None:
        number = self._chosen(asked, began)
        pending = self._view.pending[number]
        self._decided.add(number)
        try:
            parts = needed(number, pending.digest, asked.outcome, asked.keep)
            if not self._printer.keys.missing(parts):
                decided = await self._api.decide(number, asked.outcome, pending.digest, asked.keep, pending.calls)
            else:  # it may have been shown to the same person elsewhere
                decided = await self._api.decide(number, asked.outcome, None, asked.keep)
            if decided.approved_by and not decided.outcome:  # it waits for another person, and can still be denied here
                self._decided.discard(number)
        except IronCurtainError as e:
            self._decided.discard(number)
            if e.code != NotShown.code:
                raise
            text = f"not all of escalation {number} was shown to you: type /show {number}, then /approve {number}"
            raise NotShown(text) from None

    async def _show(self, asked: Show, began: float) -> None:
        number = self._chosen(asked, began)
        for view in [view for view in await self._api.escalations() if view.number == number]:
            lines = whole_lines(view, self._now())
            if sum(map(len, lines)) > LIST_LIMIT:
                raise UsageError(f"escalation {number} is too long to be shown here: {LOOK.format(number)}")
            self._printer.show_whole(number, view.digest, self._view.report((Span(line),) for line in lines))

    async def _revoke(self, number: int) -> None:
        known = await self._api.permissions()
        if not any((each.number, each.session) == (number, self._number) for each in known):
            raise UsageError(f"there is no kept approval {number} in this session: see /permissions")
        await self._api.revoke(number)
