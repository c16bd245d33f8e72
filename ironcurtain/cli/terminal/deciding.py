"""Send the person's decisions in a session, each together with what was shown."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any

from ironcurtain.cli.terminal.commands import Input, choose
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.terminal.undoing import Undoing
from ironcurtain.errors import IronCurtainError, NotShown, UsageError
from ironcurtain.escalation.decision_keys import needed
from ironcurtain.escalation.forms import read_words
from ironcurtain.escalation.model import Outcome
from ironcurtain.operations.api import SessionApi
from ironcurtain.operations.operations import LOOK
from ironcurtain.text.columns import Span
from ironcurtain.view.commands import Command
from ironcurtain.view.escalations import LIST_LIMIT, whole_lines
from ironcurtain.view.form_dialogue import Act, FormDialogue
from ironcurtain.view.narration import Narration

Work = Coroutine[Any, Any, None]


async def _nothing() -> None:
    """There is nothing to do."""


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
        self._form: FormDialogue | None = None
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
            case Command("deny", option="all"):
                return self._reported(self._api.deny_all(self._number))
            case Command("approve" | "deny"):
                return self._reported(self._decide(what, began))
            case Command("answer"):
                return self._reported(self._answer(what, began))
            case Command("show"):
                return self._reported(self._show(what, began))
            case Command("revoke", int(number)):
                return self._reported(self._revoke(number))
            case Command("undo", option="yes"):
                return self._reported(self._undoing.confirm(began))
            case Command("undo", turn):
                return self._reported(self._undoing.propose(turn))
            case Command("stop"):
                return self._reported(self._api.stop(self._number))
            case _:
                return None

    def takes(self, line: str, began: float) -> Work | None:
        """
        Take a line that belongs to a form, so that no value is taken for a message to the agent.

        :param began: when the person began to type it.
        :returns: the work that it needs; ``None``: it belongs to no form.
        """
        if (form := self._form) is None:
            return None
        if form.number not in self.waiting:  # it may have closed while the line was typed
            self._form = None
            self._say("this line was not sent to anybody: the form is closed")
            return self._reported(_nothing())
        if form.complete and began == -inf:
            self._say("pasted text decides nothing: type yes")
            return self._reported(_nothing())
        act, lines = form.enter(line)
        self._say(*lines)
        if act is Act.GO_ON:
            return self._reported(_nothing())
        self._form = None
        if act is Act.LEAVE:
            self._say("it waits on")
            return self._reported(_nothing())
        return self._reported(self._finish(form, act))

    async def _finish(self, form: FormDialogue, act: Act) -> None:
        self._decided.add(form.number)
        try:
            if act is Act.DECLINE:
                await self._api.decide(form.number, Outcome.DENIED, form.digest)
            else:
                await self._api.answer(form.number, form.values if act is Act.SEND else None, form.digest)
        except IronCurtainError:
            self._decided.discard(form.number)
            raise

    async def _answer(self, asked: Command, began: float) -> None:
        number = self._chosen(asked, began)
        view = next((view for view in await self._api.escalations() if view.number == number), None)
        if view is None or view.form is None:
            raise UsageError(f"{number} is no form: see /approve and /deny")
        if asked.text:
            unseen = self._printer.keys.missing(needed(number, view.digest, Outcome.ANSWERED))
            digest = None if unseen else view.digest  # it may have been shown to the same person elsewhere
            await self._api.answer(number, read_words(view.form, _words(asked.text)), digest)
        elif not self._printer.interactive:
            raise UsageError(f"give values, like: /answer {number} NAME=VALUE")
        else:
            lines = whole_lines(view, self._now())
            self._printer.show_whole(number, view.digest, self._view.report((Span(line),) for line in lines))
            self._form = FormDialogue(number, view.digest, view.form)
            self._say(*self._form.begin())

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._printer.add(self._view.note(line, "warn"))

    async def _reported(self, work: Awaitable[object]) -> None:
        self.busy += 1  # a later line, such as an approval, applies to what is shown by then
        try:
            await work
        except IronCurtainError as e:
            self._printer.add(self._view.note(str(e), "warn"))
        finally:
            self.busy -= 1

    def _chosen(self, asked: Command, began: float) -> int:
        typed = (began, self._printer.seconds)
        return choose(asked, self.waiting, self._printer.keys, typed, self._view.outcomes)

    async def _decide(self, asked: Command, began: float) -> None:
        number = self._chosen(asked, began)
        pending, keep = self._view.pending[number], asked.option == "keep"
        outcome = Outcome.APPROVED if asked.word == "approve" else Outcome.DENIED
        self._decided.add(number)
        try:
            parts = needed(number, pending.digest, outcome, keep)
            if not self._printer.keys.missing(parts):
                decided = await self._api.decide(number, outcome, pending.digest, keep, pending.calls)
            else:  # it may have been shown to the same person elsewhere
                decided = await self._api.decide(number, outcome, None, keep)
            if decided.approved_by and not decided.outcome:  # it waits for another person, and can still be denied here
                self._decided.discard(number)
        except IronCurtainError as e:
            self._decided.discard(number)
            if e.code != NotShown.code:
                raise
            text = f"not all of escalation {number} was shown to you: type /show {number}, then /approve {number}"
            raise NotShown(text) from None

    async def _show(self, asked: Command, began: float) -> None:
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


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark is missing") from None
