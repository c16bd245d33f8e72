"""Carry out a person's commands in a session: decisions go together with what was shown."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from math import inf

from ironcurtain.cli.terminal.commands import check, choose
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.terminal.reports import inspect
from ironcurtain.cli.terminal.undoing import Undoing
from ironcurtain.cli.undoing import Propose
from ironcurtain.errors import IronCurtainError, NotShown, UsageError
from ironcurtain.escalation.decision_keys import needed
from ironcurtain.escalation.forms import read_words
from ironcurtain.escalation.model import Outcome
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations.api import SessionApi
from ironcurtain.operations.model import LOOK
from ironcurtain.text.columns import unstyled
from ironcurtain.view.commands import Command
from ironcurtain.view.escalations import LIST_LIMIT, whole_question
from ironcurtain.view.forms import LEFT, FormDialogue


class Commands:
    """
    Carries out the commands of one session.

    :param number: the session's number.
    :param paths: of its logs.
    :param printer: knows what was shown, and shows more.
    :param propose: finds out what an undo would restore.
    :ivar busy: number of commands in progress.
    """

    def __init__(self, api: SessionApi, number: int, paths: SessionPaths, printer: Printer, propose: Propose) -> None:
        self._api, self._number, self._paths, self._printer = api, number, paths, printer
        self._undoing = Undoing(api, number, printer, propose)
        self._decided: set[int] = set()
        self._form: FormDialogue | None = None
        self._confirmation: object = None  # as the printer's keys know what is asked once a form is filled in
        self.busy = 0

    @property
    def waiting(self) -> dict[int, str]:
        """The pending escalations that were not answered here, by number, with the digests of their arguments."""
        return {n: raised.digest for n, raised in self._printer.view.pending.items() if n not in self._decided}

    @property
    def filling(self) -> bool:
        """Whether lines belong to a form, so that no value is taken for a message to the agent."""
        return self._form is not None

    def leave_form(self) -> bool:
        """:returns: whether a form was being filled in that waits; it waits on."""
        form, self._form = self._form, None
        if form is None or form.number not in self.waiting:
            return False
        self._printer.note(LEFT)
        return True

    async def carry_out(self, command: Command | str, began: float) -> None:
        """
        Errors are shown. Until it is done, later lines have to wait: they apply to what is shown by then.

        :param command: text is a line of the form that is filled in.
        :param began: when the person began to type.
        """
        self.busy += 1
        try:
            if isinstance(command, Command):
                await self._carry_out(command, began)
            else:
                await self._enter(command, began)
        except IronCurtainError as e:
            self._printer.note(str(e))
        finally:
            self.busy -= 1

    async def _carry_out(self, command: Command, began: float) -> None:
        match command:
            case Command("deny", option="all"):
                await self._api.deny_all(self._number)
            case Command("approve" | "deny"):
                await self._decide(command, began)
            case Command("answer"):
                await self._answer(command, began)
            case Command("show"):
                await self._show(command, began)
            case Command("revoke", int(number)):
                await self._revoke(number)
            case Command("undo", option="yes"):
                await self._undoing.confirm(began)
            case Command("undo", turn):
                await self._undoing.propose(turn)
            case Command("withdraw", number):
                self._printer.surface.put_back(await self._api.withdraw(self._number, number or 0))
            case Command("stop"):
                await self._api.stop(self._number)
            case _:
                self._printer.report(await inspect(command, self._api, self._number, self._paths, self._printer))

    async def _enter(self, line: str, began: float) -> None:
        form = self._form
        if form is None or form.number not in self.waiting:  # it may have closed while the line was typed
            self._form = None
            self._printer.note("this line was not sent to anybody: the form is closed")
            return
        if form.complete and (began == -inf or not line.startswith("/")):
            check(self._printer.keys, self._confirmation, (began, self._printer.seconds), "yes")
        match form.enter(line):
            case None:
                self.leave_form()
            case Outcome() as outcome:
                self._form = None
                await self._finish(form, outcome)
            case lines:
                self._ask(form, lines)

    def _ask(self, form: FormDialogue, lines: Iterable[str]) -> None:
        for said in lines:
            self._printer.note(said, escaped=True)
        if form.complete:
            self._confirmation = object()
            self._printer.keys.show(self._confirmation, self._printer.seconds)

    async def _finish(self, form: FormDialogue, outcome: Outcome) -> None:
        self._decided.add(form.number)
        try:
            if outcome is Outcome.DENIED:
                await self._api.decide(form.number, outcome, form.digest)
            else:
                values = form.values if outcome is Outcome.ANSWERED else None
                await self._api.answer(form.number, values, form.digest)
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
        elif not self._printer.surface.live:
            raise UsageError(f"give values, like: /answer {number} NAME=VALUE")
        else:
            self._printer.show_whole(number, view.digest, whole_question(view, self._printer.now()))
            self._form = FormDialogue(number, view.digest, view.form)
            self._ask(self._form, self._form.begin())

    def _chosen(self, asked: Command, began: float) -> int:
        return choose(
            asked, self.waiting, self._printer.keys, (began, self._printer.seconds), self._printer.view.outcomes
        )

    async def _decide(self, asked: Command, began: float) -> None:
        number = self._chosen(asked, began)
        pending, keep = self._printer.view.pending[number], asked.option == "keep"
        outcome = Outcome.APPROVED if asked.word == "approve" else Outcome.DENIED
        self._decided.add(number)
        try:
            if not self._printer.keys.missing(needed(number, pending.digest, outcome, keep)):
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
            lines = whole_question(view, self._printer.now())
            if sum(len(unstyled(line)) for line in lines) > LIST_LIMIT:
                raise UsageError(f"escalation {number} is too long to be shown here: {LOOK.format(number)}")
            self._printer.show_whole(number, view.digest, lines)

    async def _revoke(self, number: int) -> None:
        if (number, self._number) not in [(each.number, each.session) for each in await self._api.permissions()]:
            raise UsageError(f"there is no kept approval {number} in this session: see /permissions")
        await self._api.revoke(number)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise UsageError("a quotation mark is missing") from None
