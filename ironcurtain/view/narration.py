"""
The state of a session's display: takes events, returns items to print.

Finished items are printed once and stay. Changing ones (unfinished text, the call in progress, pending escalations) are
the *live* part, which is redrawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ironcurtain.session import agent_events, events
from ironcurtain.session.server_events import ServersStarting
from ironcurtain.text.columns import Line, Span, Style
from ironcurtain.text.display import elapsed, left, one_line, paragraphs
from ironcurtain.view.calls import EXPLAINED, ToolsInUse
from ironcurtain.view.escalations import approvals_words
from ironcurtain.view.events import TEXT_LIMIT, Severity, describe
from ironcurtain.view.look import PROMPT, UNICODE, Signs
from ironcurtain.view.sessions import starting_words
from ironcurtain.view.speech import Speech, shown

REMEMBERED = 200
"""Number of outcomes of escalations kept for late answers."""

ERROR_LIMIT = 1000
"""Maximum length in characters of an error of a turn."""

STATE_LIMIT = 40
"""Maximum length in characters of what an agent says that it does."""


class Answers(Enum):
    """
    Where the answer of a message goes.

    ``FLOWING``: printed line by line as it arrives. ``WHOLE``: printed when it is complete. ``ELSEWHERE``: not printed,
    the caller has it.
    """

    FLOWING = 1
    WHOLE = 2
    ELSEWHERE = 3


class Say(NamedTuple):
    """Print a line, which may be one of a complete answer."""

    line: Line
    answer: bool = False


class Ask(NamedTuple):
    """Show an escalation to the person."""

    pending: events.EscalationRaised


Item = Say | Ask


class Live(NamedTuple):
    """The live part: the end of the unfinished text, and a status line."""

    tail: tuple[str, ...]
    status: Line


class _Turn(msgspec.Struct):
    """
    The message that is processed.

    :ivar activity: what the agent does when no tool is in use.
    :ivar since: when it began, in seconds since the epoch.
    """

    activity: str = ""
    since: float = 0.0


class Narration:
    """
    The state of the display of one session.

    :param answers: where answers go.
    :param airy: whether a blank line separates unrelated items.
    :ivar width: columns; may be changed at any time.
    :ivar outcomes: outcomes of escalations in words, the newest last.
    :ivar servers_starting: since when MCP servers start that take long, by name.
    """

    def __init__(self, answers: Answers = Answers.ELSEWHERE, *, airy: bool = True, signs: Signs = UNICODE) -> None:
        self.width = 80
        self.state, self.reason = "initializing", ""
        self.pending: dict[int, events.EscalationRaised] = {}
        self.outcomes: dict[int, str] = {}
        self._before = "" if airy else None
        """The kind of the item before; ``None``: nothing separates items."""
        self._tools, self._turn = ToolsInUse(signs), _Turn()
        self.servers_starting: Mapping[str, float] = {}
        self.begin(answers)
        self._refused = False

    @property
    def working(self) -> bool:
        """Whether a message is being processed."""
        return self.state == "processing"

    def begin(self, answers: Answers) -> None:
        """:param answers: where answers go from now on."""
        self._answers, self._speech = answers, Speech(answers is Answers.FLOWING)

    def apply(self, stamped: events.Stamped) -> list[Item]:
        """:returns: the items to print for an event."""
        return list(self._apply(stamped.event, stamped.time))

    def note(self, text: str, style: Style = "dim", *, escaped: bool = False) -> list[Item]:
        """:returns: a line of the front end; ``text`` may be untrusted, unless it is escaped already."""
        return list(self._say("note", (Span(text if escaped else one_line(text), style),)))

    def report(self, lines: Iterable[Line]) -> list[Item]:
        """:returns: the output of a command."""
        return [*self._gap("report"), *map(Say, lines)]

    def message(self, text: str) -> list[Item]:
        """:returns: a message as the person sent it."""
        first, *rest = shown(text).split("\n")
        items = list(self._say("message", (Span(PROMPT, "key"), Span(first, "bold"))))
        return items + [Say((Span("  "), Span(line, "bold"))) for line in rest]

    def resync(self, state: str, pending: Sequence[events.EscalationRaised]) -> list[Item]:
        """
        Take the session's state after events were lost.

        :param pending: the session's pending escalations.
        """
        self.state = state
        self._tools.forget_calls()
        waiting = {raised.number for raised in pending}
        self.pending = {number: kept for number, kept in self.pending.items() if number in waiting}
        new = [raised for raised in pending if raised.number not in self.pending | self.outcomes]
        return [item for raised in new for item in self._ask(raised)]

    def live(self, now: float) -> Live:
        """:param now: seconds since the epoch."""
        return Live(self._speech.tail(self.width), self._status(now))

    def _apply(self, event: events.SessionEvent, at: float) -> Iterator[Item]:
        was_silent = self._speech.silent
        yield from self._text(self._speech.heard(event))
        match event:
            case events.StateChanged():
                self.state, self.reason = event.state, event.reason
                yield from self._remark(event)
            case events.TurnStarted():
                self._turn = _Turn("thinking", at)
            case events.TurnFinished():
                yield from self._lines("tool", self._tools.abandon(self.width))
                yield from self._turn_over(event)
            case events.EscalationRaised():
                yield from self._ask(event)
            case events.EscalationCounted() if (asked := self.pending.get(event.number)) is not None:
                self.pending[event.number] = replace(asked, calls=event.calls)
                yield from self._remark(event)
            case events.EscalationApproved() if (asked := self.pending.get(event.number)) is not None:
                self.pending[event.number] = asked = replace(asked, approved_by=(*asked.approved_by, event.by))
                yield from self.note(f"escalation {event.number}: {approvals_words(asked)}", "warn", escaped=True)
            case events.EscalationClosed():
                yield from self._closed(event)
            case events.AgentText() if was_silent:
                self._turn.activity = "answering"
            case events.ToolCallRaised() | agent_events.AgentToolStarted():
                if isinstance(event, agent_events.AgentToolStarted) and not self._tools.explained:
                    self._tools.explained = True
                    yield from self.note(EXPLAINED)
                self._tools.began(event, at)
            case events.ToolDecision():
                self._tools.decided(event)
            case ServersStarting():
                self.servers_starting = event.servers
                yield from self._remark(event)
            case events.ToolFinished() | agent_events.AgentToolFinished():
                yield from self._lines("tool", self._tools.over(event, at, self.width))
            case agent_events.AgentActivity():
                self._turn.activity = one_line(event.state, STATE_LIMIT)
            case agent_events.AgentTextDropped():
                yield from self.note("the text above broke off: what follows replaces it")
            case events.StepFinished() if not self._speech.is_reported:
                self._turn.activity = "thinking"
            case events.CodeStarted():
                self._turn.activity = "running code"
            case events.CodeFinished():
                self._turn.activity = "thinking"
                if event.error:
                    yield from self.failed(event.error, "the code failed", TEXT_LIMIT)
            case _:
                yield from self._remark(event)

    def _turn_over(self, event: events.TurnFinished) -> Iterator[Item]:
        if not event.error:
            yield from self.answer(event.answer)
        elif event.code == "CANCELLED":
            yield from self.note("cancelled", "warn")
        elif self._answers is not Answers.ELSEWHERE:
            yield from self.failed(event.error, "no answer" if not event.answer else "incomplete")

    def answer(self, text: str) -> Iterator[Item]:
        """:returns: the items of a complete answer."""
        if self._answers is Answers.FLOWING:
            yield from self._text(self._speech.answered(text))
            return
        self._speech.forget()
        if self._answers is Answers.WHOLE:
            yield from (Say((Span(line),), answer=True) for line in paragraphs(text).split("\n"))

    def _ask(self, raised: events.EscalationRaised) -> Iterator[Item]:
        self.pending[raised.number] = raised
        yield from self._gap("ask")
        yield Ask(raised)

    def _closed(self, event: events.EscalationClosed) -> Iterator[Item]:
        self.pending.pop(event.number, None)
        if (words := describe(event)) is None:
            return
        self.outcomes[event.number] = words.shown
        while len(self.outcomes) > REMEMBERED:
            del self.outcomes[next(iter(self.outcomes))]
        yield from self._say("tool", words.line)

    def _remark(self, event: events.SessionEvent) -> Iterator[Item]:
        match event:
            case events.ModelRetry():
                again = f"trying again in {elapsed(event.delay)}" if event.delay else "trying again"
                self._turn.activity = f"the model gave no answer: {again}"
            case events.RequestRefused() if self._refused:
                return  # the log has the others
        words = describe(event)
        if words is not None and words.severity is not Severity.DETAIL:
            more: Line = ()
            if isinstance(event, events.RequestRefused):
                self._refused, more = True, (Span("; /logs has further refusals", words.severity.style),)
            yield from self._say("note", (*words.line, *more))

    def failed(self, why: str, what: str = "no answer", limit: int = ERROR_LIMIT) -> Iterator[Item]:
        """:returns: the items of an error, of which at most ``limit`` characters are shown."""
        why = why.strip()
        more = f"… (+{len(why) - limit} characters)" if len(why) > limit else ""
        first, *rest = f"{shown(why[:limit])}{more}".split("\n")
        yield from self._say("note", (Span(f"{self._tools.signs.failed} {what}: {first}", "bad"),))
        yield from (Say((Span(f"  {line}", "bad"),)) for line in rest)

    def _text(self, lines: Iterable[str]) -> Iterator[Item]:
        style: Style = "" if self._answers is Answers.FLOWING else "dim"
        yield from self._lines("text", ((Span(shown(line), style),) if line else () for line in lines))

    def _lines(self, kind: str, lines: Iterable[Line]) -> Iterator[Item]:
        for line in lines:
            yield from self._say(kind, line)

    def _say(self, kind: str, line: Line) -> Iterator[Item]:
        yield from self._gap(kind)
        yield Say(line)

    def _gap(self, kind: str) -> Iterator[Item]:
        if self._before is not None:
            before, self._before = self._before, kind
            if before and (kind != before or kind in ("ask", "message", "report")):
                yield Say(())

    def _status(self, now: float) -> Line:
        signs = self._tools.signs
        if self.pending:
            return (Span(f"{signs.working} {self._waiting(now)}", "warn"),)
        starting = starting_words(self.servers_starting, now)
        if self.state != "processing":
            hint = starting or "/help lists the commands"
            words = {"ready": f"ready{signs.dot}{hint}", "initializing": "starting"}
            return (Span(f"{signs.left_out} {words.get(self.state, one_line(self.state, 20))}", "dim"),)
        dot = Span(f"{signs.working} ", "good")
        if self._tools:
            return (dot, *self._tools.status(now, self.width - len(dot.text)))
        # The time is that of the message, so that it does not begin anew with each request to the model.
        time = elapsed(now - (self._turn.since or now))
        waits = f"{signs.dot}{starting}" if starting else ""
        return (dot, Span(f"{self._turn.activity or 'working'} {time}{waits}", "dim"))

    def _waiting(self, now: float) -> str:
        soonest = min(self.pending.values(), key=lambda pending: pending.expires_at)
        time, dot = left(soonest.expires_at - now), self._tools.signs.dot
        if len(self.pending) == 1:
            return f"escalation {soonest.number} waits for you{dot}{time} left"
        numbers = ", ".join(map(str, list(self.pending)[:8]))
        return f"escalations {numbers} wait for you{dot}{time} left for {soonest.number}"
