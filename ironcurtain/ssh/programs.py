"""The programs of a channel: the console, a session's terminal, or a command that prints something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ironcurtain.audit.chain import read_record
from ironcurtain.audit.view import render
from ironcurtain.errors import IronCurtainError, NotFound, UsageError
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.forms import read_words
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations import Principal, Role
from ironcurtain.operations.api import OversightApi
from ironcurtain.operations.choosing import newest
from ironcurtain.operations.json_text import escaped, json_text
from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.summary import SessionSummary
from ironcurtain.ssh.channel import ChannelProgram, SessionChannel
from ironcurtain.ssh.commands import Command, parse
from ironcurtain.terminal.model import Mode
from ironcurtain.text.display import ago, one_line, paragraphs, table
from ironcurtain.view.escalations import (
    decided,
    denied_all,
    how_to_approve,
    listing,
    permission_lines,
    revoked,
    whole_lines,
)
from ironcurtain.view.session_report import as_text
from ironcurtain.view.sessions import outside_sandboxes

StartConsole = Callable[[Principal, SessionChannel], ChannelProgram]
StartAttach = Callable[[Principal, str, Mode, SessionChannel], Awaitable[ChannelProgram]]

_NEEDED = {
    "attach": Role.ATTACH,
    "stop": Role.ATTACH,
    "approve": Role.APPROVE,
    "deny": Role.APPROVE,
    "answer": Role.APPROVE,
    "revoke": Role.APPROVE,
}
"""The role that a command needs, if not ``view``."""


class OutputProgram:
    """
    Prints lines as fast as the person reads them.

    :param lines: without their ends; generated lazily.
    :param status: the exit status.
    """

    log = Logger()

    def __init__(self, channel: SessionChannel, lines: Iterable[str], status: int = 0) -> None:
        self._channel, self._lines, self._status = channel, iter(lines), status
        self._end = "\r\n" if channel.has_terminal else "\n"

    def received(self, data: bytes) -> None:
        """Ignored: it takes no input."""

    def resized(self, columns: int, rows: int) -> None:
        """Ignored: lines have a fixed width."""

    def drained(self) -> None:
        """Continue printing."""
        while not self._channel.blocked:
            line = next(self._lines, None)
            if line is None:
                self._channel.close(self._status)
                return
            self._channel.write(f"{line}{self._end}".encode("utf-8", "backslashreplace"))

    def lost(self) -> None:
        """The person disconnected: stop."""
        self._lines = iter(())


class OwnPrograms:
    """
    The programs of the service.

    :param console: starts the console on a channel with a terminal.
    :param attach: attaches to a session's terminal.
    :param source: returns the lists and decisions for a principal.
    :param files: finds the files of a session for a principal, running or not, by number, id or ``last``; raises
        :class:`~ironcurtain.errors.NotFound`.
    :param report: judges the log of such a session, and returns the session in numbers.
    :param now: returns seconds since the epoch.
    :param lacking: returns sentences that say which sessions the lists lack that were just fetched, as those of other
        machines that are lost.
    :param registered: returns the numbers of the sessions of this host that have a process.
    """

    def __init__(
        self,
        console: StartConsole,
        attach: StartAttach,
        source: Callable[[Principal], OversightApi],
        files: Callable[[Principal, str], Awaitable[SessionPaths]],
        report: Callable[[Principal, str], Awaitable[SessionSummary]],
        now: Callable[[], float],
        lacking: Callable[[OversightApi], Sequence[str]],
        registered: Callable[[], Iterable[int]],
    ) -> None:
        self._console, self._attach, self._source, self._files, self._now = console, attach, source, files, now
        self._report, self._lacking, self._registered = report, lacking, registered

    async def open(self, who: Principal, command: bytes | None, channel: SessionChannel) -> ChannelProgram:
        """
        Start a program.

        :raises UsageError: there is no such command, or it needs a terminal and has none.
        :raises NotAllowed: the key lacks the role.
        :raises NotFound: there is no such session or escalation.
        """
        asked = Command("console") if command is None else parse(command)
        who.require(_NEEDED.get(asked.name, Role.VIEW))
        if asked.name == "console":
            self._need_terminal(channel, "the console", "ssh -t")
            return self._console(who, channel)
        if asked.session == "last" and asked.name not in ("logs", "audit", "report"):
            asked = replace(asked, session=await self._newest(who, asked.name))
        if asked.name in ("attach", "observe"):
            mode = Mode.DRIVE if asked.name == "attach" else Mode.OBSERVE
            self._need_terminal(channel, asked.name, f"ssh -t ... {asked.name} {asked.session}")
            return await self._attach(who, asked.session, mode, channel)
        if asked.name == "report":
            summary = await self._report(who, asked.session)
            lines = [json_text([summary])] if asked.json else as_text([summary])
            return OutputProgram(channel, lines, 0 if summary.intact else 1)
        return OutputProgram(channel, await self._lines(who, asked))

    async def _newest(self, who: Principal, command: str) -> str:
        known, is_shown = await self._source(who).sessions(), command in ("attach", "observe")
        if (number := newest(known, self._registered(), is_shown)) is None:
            raise NotFound(f"there is no session for {command}: see sessions")
        return str(number)

    def _need_terminal(self, channel: SessionChannel, what: str, how: str) -> None:
        if not channel.has_terminal or channel.environ.get("TERM") == "dumb":
            raise UsageError(
                f"{what} needs a terminal ({how}); without one there are sessions, escalations, escalations show N, "
                "approve N, deny N"
            )

    async def _lines(self, who: Principal, asked: Command) -> Iterable[str]:
        source = self._source(who)
        if asked.name == "sessions":
            found = [info for info in await source.sessions() if info.state != "closed"]
            return [json_text(found)] if asked.json else [*self._lacking(source), *session_lines(found, self._now())]
        if asked.name == "stop":
            info = await source.stop(asked.session)
            return [json_text(info) if asked.json else f"Session {info.number} has ended."]
        if asked.name in ("escalations", "show"):
            return await self._escalations(source, asked)
        if asked.name == "deny" and asked.everything:
            numbers = await source.deny_all(asked.session or None)
            return [json_text(numbers) if asked.json else denied_all(numbers)]
        if asked.name in ("approve", "deny"):
            outcome = Outcome.APPROVED if asked.name == "approve" else Outcome.DENIED
            view = await source.decide(asked.number, outcome, asked.digest, asked.keep)
            return [json_text(view) if asked.json else decided(view)]
        if asked.name == "answer":
            view = await self._answer(source, asked)
            return [json_text(view) if asked.json else decided(view)]
        if asked.name == "permissions":
            kept = await source.permissions()
            return [json_text(kept)] if asked.json else kept_lines(kept, self._now())
        if asked.name == "revoke":
            gone = await source.revoke(asked.number)
            return [json_text(gone) if asked.json else revoked(gone)]
        files = await self._files(who, asked.session)
        if asked.name == "logs":
            lines = _lines_of(files.log)
            return _json_lines(lines) if asked.json else map(log_line, lines)
        lines = _lines_of(files.audit)
        return map(_as_written, lines) if asked.json else map(record_line, lines)

    async def _answer(self, source: OversightApi, asked: Command) -> EscalationView:
        if asked.cancel:
            return await source.answer(asked.number, None, asked.digest)
        views = await source.escalations(closed=True)
        forms = [view.form for view in views if view.number == asked.number and view.form]
        if asked.values and not forms:  # nobody can read them, and no others must be sent instead
            raise NotFound(f"there is no form {asked.number}, or you may not view it: see escalations")
        values = read_words(forms[0], asked.values) if forms else {}
        return await source.answer(asked.number, values, asked.digest)

    async def _escalations(self, source: OversightApi, asked: Command) -> Iterable[str]:
        if asked.name == "escalations":
            views = await source.escalations(asked.everything)
            if asked.json:  # people do not read JSON, so it does not count as shown
                return [json_text(views)]
            listed = listing(views, self._now())
            lines = [*self._lacking(source), *(listed.lines or ["No call waits for a decision."])]
            return _shown(source, lines, listed.whole)
        views = [view for view in await source.escalations(closed=True) if view.number == asked.number]
        if not views:
            raise NotFound(f"there is no escalation {asked.number}: see escalations")
        if asked.json:
            return [json_text(views[0])]
        waiting = [view for view in views if not view.outcome]
        how = [how_to_approve(view, "") for view in waiting]
        return _shown(source, [*whole_lines(views[0], self._now()), *how], waiting)


def _shown(source: OversightApi, lines: Sequence[str], views: Sequence[EscalationView]) -> Iterator[str]:
    """:returns: the lines; when all are written, the escalations count as shown."""
    yield from lines
    for view in views:
        telling = Deferred.fromCoroutine(source.shown(view.number, view.digest, view.calls))
        telling.addErrback(lambda failure: failure.trap(IronCurtainError) and None)  # it was decided meanwhile


def _json_lines(lines: Iterator[bytes]) -> Iterator[str]:
    """:returns: each line as a JSON string, one a line."""
    return (escaped(msgspec.json.encode(_as_written(line))) for line in lines)


def _as_written(line: bytes) -> str:
    return line.decode(errors="backslashreplace").rstrip("\n")


def _lines_of(path: Path) -> Iterator[bytes]:
    """:raises NotFound: there is no such file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"there is no {path}") from None

    def lines() -> Iterator[bytes]:
        with file:
            yield from file

    return lines()


def session_lines(found: Sequence[SessionInfo], now: float) -> Sequence[str]:
    """:returns: the lines of a table."""
    if not found:
        return ("No sessions.",)
    rows = [_row(info, now) for info in found]
    return (*table(("N", "STATE", "AGE", "WAITING", "SESSION"), rows), *outside_sandboxes(found))


def kept_lines(found: Sequence[PermissionView], now: float) -> Iterator[str]:
    """:returns: the lines of the kept approvals."""
    if not found:
        yield "No kept approvals."
    for view in found:
        yield from permission_lines(view, now)


def log_line(line: bytes) -> str:
    """:returns: a line of a session's log."""
    return paragraphs(line.decode(errors="backslashreplace").rstrip("\n"))


def record_line(line: bytes) -> str:
    """:returns: an audit record."""
    record = read_record(line.removesuffix(b"\n"))
    return render(record) if record is not None else "       (no record)"


def _row(info: SessionInfo, now: float) -> tuple[str, ...]:
    age = ago(now - datetime.fromisoformat(info.started_at).timestamp())
    return str(info.number), info.state, age, str(info.pending), one_line(info.label, 80)
