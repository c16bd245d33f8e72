"""
The events of a session in words: the one place for all of them.

The session's log, the marks of a recording, the bell, the conversation and the console take their lines from here, and
choose by role and severity what to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec
from msgspec.structs import replace

from ironcurtain.session import agent_events, events
from ironcurtain.session.server_events import ServerDown, ServersStarting
from ironcurtain.text.columns import Line, Span, Style
from ironcurtain.text.display import elapsed, one_line
from ironcurtain.text.quantities import counted
from ironcurtain.view.escalations import ended_words
from ironcurtain.view.sessions import starting_words

TEXT_LIMIT = 300
"""Maximum length in characters of a line for a screen; a log has all of it."""


class Severity(Enum):
    """How much a line matters, with its style on screens."""

    DETAIL = 1, "dim"
    """Only for who follows everything, as in the console and the log."""
    ROUTINE = 2, "dim"
    GOOD = 3, "good"
    WARNING = 4, "warn"
    BAD = 5, "bad"

    @property
    def style(self) -> Style:
        """How screens show it."""
        style: Style = self.value[1]
        return style


class Role(Enum):
    """What a line is about."""

    STATE = "state"
    MESSAGE = "message"
    """A message of the person, or its end."""
    CALL = "call"
    """A call of a tool: raised, judged, ended."""
    MODEL = "model"
    QUESTION = "question"
    """An escalation that needs a person."""
    DECISION = "decision"
    REFUSAL = "refusal"
    REPORTED = "reported"
    """What the agent's program reports of itself, and nobody judged."""
    LIMIT = "limit"
    FAULT = "fault"
    NOTICE = "notice"


_MARKED = frozenset((Role.CALL, Role.MODEL, Role.DECISION, Role.REFUSAL))
_NEVER_CUT = frozenset((Role.QUESTION, Role.DECISION, Role.FAULT))  # what helps against a fault is said at its end


class EventLine(msgspec.Struct, frozen=True):
    """
    An event in words.

    :param text: not escaped, and as long as the event makes it.
    :param rings: whether a person is called.
    :param about: which call or tool it is about, by an identifier for logs.
    """

    text: str
    role: Role
    severity: Severity = Severity.ROUTINE
    rings: bool = False
    about: str = ""

    @property
    def logged(self) -> str:
        """The text for logs and recordings, not escaped."""
        return f"{self.about} {self.text}".lstrip()

    @property
    def marked(self) -> bool:
        """Whether a recording of the terminal is marked where this happened."""
        return not self.rings and self.role in _MARKED

    @property
    def shown(self) -> str:
        """The text, escaped, and cut unless a part of it would mean something else, or not help."""
        return one_line(self.text, None if self.role in _NEVER_CUT else TEXT_LIMIT)

    @property
    def line(self) -> Line:
        """The line of a screen."""
        return (Span(self.shown, self.severity.style),)


_WORDS: Mapping[type[events.SessionEvent], EventLine] = {
    events.TurnStarted: EventLine("message {e.turn}: {e.message}", Role.MESSAGE),
    agent_events.MessageQueued: EventLine("message {e.number} in the queue: {e.message}", Role.MESSAGE),
    agent_events.MessageTaken: EventLine("message {e.number} of the queue taken by the agent", Role.MESSAGE),
    agent_events.MessageWithdrawn: EventLine("message {e.number} of the queue taken back", Role.MESSAGE),
    events.EscalationRaised: EventLine(
        "escalation {e.number}: {e.server}.{e.tool}", Role.QUESTION, Severity.WARNING, rings=True
    ),
    events.EscalationApproved: EventLine(
        "escalation {e.number} approved by {e.by}, and waits for another person",
        Role.QUESTION,
        Severity.WARNING,
        rings=True,
    ),
    events.EscalationCounted: EventLine(
        "escalation {e.number}: {e.calls} equal calls wait for it", Role.QUESTION, Severity.WARNING
    ),
    events.PermissionRevoked: EventLine("permission {e.number} revoked by {e.by}: {e.scope}", Role.DECISION),
    events.LoopDetected: EventLine("{e.server}.{e.tool} came too often, refused", Role.LIMIT, Severity.WARNING),
    events.BudgetWarning: EventLine("{e.message}", Role.LIMIT, Severity.WARNING, rings=True),
    events.BudgetExhausted: EventLine("{e.message}", Role.LIMIT, Severity.WARNING, rings=True),
    events.ProxyDown: EventLine("the {e.proxy} proxy is dead: {e.reason}", Role.FAULT, Severity.BAD, rings=True),
    events.ContainerEnded: EventLine("{e.reason}", Role.FAULT, Severity.WARNING),
    events.ModelFellBack: EventLine(
        "{e.failed} gave no answer ({e.reason}); {e.model} is asked instead", Role.NOTICE, Severity.WARNING
    ),
    events.ResultTruncated: EventLine(
        "a result was cut: the agent got {e.kept} of {e.size} bytes", Role.NOTICE, Severity.WARNING
    ),
    events.Progress: EventLine("{e.text}", Role.NOTICE, Severity.DETAIL),
    events.AgentDiagnostic: EventLine("{e.text}", Role.NOTICE, Severity.DETAIL),
    events.PackageInstalled: EventLine("fetched from {e.registry}: {e.name} {e.version}", Role.NOTICE, Severity.DETAIL),
    events.FileToReview: EventLine("review {e.path} ({e.what}): {e.reason}", Role.NOTICE, Severity.DETAIL),
}
"""The lines of events whose words depend on nothing else; ``{e}`` is the event."""


def describe(event: events.SessionEvent) -> EventLine | None:
    """:returns: an event in words; ``None`` for those that have none of their own, such as pieces of text."""
    if (plain := _WORDS.get(type(event))) is not None:
        return replace(plain, text=plain.text.format(e=event))
    match event:
        case events.StateChanged():
            why = f": {event.reason}" if event.reason else ""
            severity = Severity.ROUTINE if event.state == "closed" else Severity.DETAIL
            return EventLine(f"the session is {event.state}{why}", Role.STATE, severity)
        case events.TurnFinished(error=""):
            return EventLine(f"message {event.turn} answered", Role.MESSAGE, Severity.GOOD)
        case events.TurnFinished():
            return EventLine(f"message {event.turn} failed: {event.error}", Role.MESSAGE, Severity.BAD)
        case events.EscalationClosed():
            kept = f"; not asked again about {event.kept}" if event.kept else ""
            text = f"escalation {event.number}: {ended_words(event.outcome, event.by)}{kept}"
            good = event.outcome == "approved"
            return EventLine(text, Role.DECISION, Severity.GOOD if good else Severity.BAD)
        case events.ToolCallRaised():
            return EventLine(f"{event.server}.{event.tool} {event.arguments}", Role.CALL, about=f"call {event.call_id}")
        case events.ToolDecision():
            by = f" by {event.by}{unasked(event)}" if event.by else ""
            rule = f" [{event.rule}] {event.reason}".rstrip() if event.rule else ""
            good = event.decision in ("allow", "approved", "escalate")
            severity = Severity.DETAIL if good else Severity.BAD
            return EventLine(f"{event.decision}{by}{rule}", Role.CALL, severity, about=f"call {event.call_id}")
        case events.ToolFinished():
            text = f"ended: {event.status} after {event.duration_ms:.0f} ms, {event.size} bytes"
            severity = Severity.DETAIL if event.status == "success" else Severity.BAD
            return EventLine(text, Role.CALL, severity, about=f"call {event.call_id}")
        case agent_events.AgentToolStarted():
            inside = f" in {event.parent}" if event.parent else ""
            text = f"reported: {event.name} {event.what}".rstrip()
            return EventLine(text, Role.REPORTED, about=f"tool {event.tool_id}{inside}")
        case agent_events.AgentToolFinished():
            severity = {"success": Severity.DETAIL, "error": Severity.WARNING}.get(event.status, Severity.ROUTINE)
            text = f"reported: {event.status} {event.what}".rstrip()
            return EventLine(text, Role.REPORTED, severity, about=f"tool {event.tool_id}")
        case events.CodeFinished() if event.error:
            return EventLine(f"the code failed: {event.error}", Role.CALL, Severity.BAD)
        case events.StepFinished():
            used = f"{event.input_tokens} tokens in, {event.output_tokens} out"
            text = used if event.input_tokens or event.output_tokens else "the model did not say how many tokens"
            return EventLine(f"model request {event.step}: {text}", Role.MODEL, Severity.DETAIL)
        case events.ModelRetry():
            text = f"{event.reason}: trying again{f' in {elapsed(event.delay)}' if event.delay else ''}"
            return EventLine(text, Role.NOTICE, Severity.WARNING)
        case events.MessagesCompacted():
            dropped = f", and {counted(event.turns, 'message')}," if event.turns else ""
            text = f"to fit the model, old programs and their results{dropped} were left out ({event.strategy})"
            return EventLine(text, Role.NOTICE, Severity.WARNING)
        case events.Missed():
            lost = counted(event.count, "event was", "events were")
            return EventLine(f"{lost} lost here: the history has the messages", Role.NOTICE, Severity.WARNING)
        case ServerDown():
            text = f"the MCP server {event.server} {event.reason or 'is starting'}: its tools cannot be called"
            return EventLine(text, Role.FAULT, Severity.WARNING)
        case ServersStarting():
            text = starting_words(event.servers) or "no MCP server is starting any longer"
            return EventLine(text, Role.NOTICE, Severity.DETAIL)
        case events.RequestRefused():
            # Of a tunnel, only host and port.
            target = event.path if event.method == "CONNECT" and event.path else event.host + event.path
            what = f"{event.method} {target}".strip()  # nothing is known of a request that is invalid
            text = ": ".join(("request refused", *([what] if what else []), event.reason))
            return EventLine(text, Role.REFUSAL, Severity.WARNING)
        case events.Notice():
            return EventLine(event.text, Role.NOTICE, Severity.ROUTINE if event.routine else Severity.WARNING)
    return None


def unasked(event: events.ToolDecision) -> str:
    """:returns: words to add to the name of the approver if the approval was a kept one."""
    return f", as kept with escalation {event.permission}" if event.permission else ""
