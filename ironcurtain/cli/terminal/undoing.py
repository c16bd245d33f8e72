"""Undo turns in a session's terminal: show the difference, ask, restore."""

from __future__ import annotations

from collections.abc import Sequence

from ironcurtain.cli.terminal.commands import check
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.undoing import Proposal, Propose, done_lines, left_lines
from ironcurtain.errors import SessionError, UsageError
from ironcurtain.operations.api import SessionApi
from ironcurtain.text.columns import Span
from ironcurtain.text.display import one_line


class Undoing:
    """
    Undoes turns of one session, after the person has seen and confirmed what is restored.

    :param number: the session's number.
    :param propose: finds out what an undo would restore.
    """

    def __init__(self, api: SessionApi, number: int, printer: Printer, propose: Propose) -> None:
        self._api, self._number, self._printer, self._propose = api, number, printer, propose
        self._turn: int | None = None
        self._shown: Proposal | None = None
        self._question: object = None

    async def propose(self, turn: int | None) -> None:
        """
        Show what an undo would restore, and ask.

        :param turn: ``None``: the last one.
        :raises SessionError: the agent works.
        :raises NotFound: there is no snapshot.
        """
        self._check()
        self._shown, self._turn = None, turn
        self._show(await self._propose(turn))

    async def confirm(self, began: float) -> None:
        """
        Undo what was shown. If the workspace has changed since, that is shown instead.

        :param began: when the person began to type.
        :raises UsageError: nothing was shown before that.
        :raises SessionError: the agent works.
        """
        self._check()
        if self._shown is None:
            raise UsageError("type /undo first: it shows what would be undone")
        check(self._printer.keys, self._question, (began, self._printer.seconds), "/undo yes")
        shown, self._shown = self._shown, None
        found = await self._propose(self._turn)
        if (found.snapshot, found.changes) != (shown.snapshot, shown.changes):
            self._show(found, "The workspace has changed meanwhile. Now:")
            return
        report = await self._api.undo(self._number, found.snapshot)
        self._report(done_lines(report, self._number), left_lines(report))

    def _check(self) -> None:
        if self._printer.view.working:
            raise SessionError("SESSION_NOT_READY", "the agent is working: press Ctrl-C to cancel the message, or wait")

    def _show(self, found: Proposal, before: str = "") -> None:
        question = [f"Undo this in {one_line(found.workspace)}? Then type /undo yes"] if found.needed else []
        self._report([before, *found.lines] if before else found.lines, question)
        self._printer.draw()
        self._shown, self._question = found if found.needed else None, object()
        self._printer.keys.show(self._question, self._printer.seconds)

    def _report(self, lines: Sequence[str], warnings: Sequence[str]) -> None:
        self._printer.report([*((Span(line),) for line in lines), *((Span(line, "warn"),) for line in warnings)])
