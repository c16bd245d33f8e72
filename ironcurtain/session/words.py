"""Events as text, for the session's log and for people. Strings that others chose are not escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ironcurtain.sandbox.spec import Kind
from ironcurtain.session import agent_events, events
from ironcurtain.session.model import SessionInfo


def outside_sandboxes(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each session with MCP servers that run outside any sandbox."""
    for info in found:
        if info.unsandboxed:
            yield f"Session {info.number}: outside any sandbox run the MCP servers {', '.join(info.unsandboxed)}."


def weaker_sandboxes(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each session whose sandboxes hold less than others."""
    for info in found:
        if info.sandbox == Kind.LANDLOCK.value:
            yield f"Session {info.number}: what sandboxes of Landlock do not hold says: ironcurtain doctor."


def paid_by(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each session whose models an account pays for."""
    for info in found:
        if info.payers:
            yield f"Session {info.number} is paid by {'; '.join(info.payers)}."


def servers_down(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each MCP server that is down in one of the sessions."""
    for info in found:
        for server, why in info.servers_down.items():
            yield f"Session {info.number}: the MCP server {server} {why}."


def server_faults(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each thing that an MCP server sent and that breaks the protocol."""
    for info in found:
        for server, faults in info.server_faults.items():
            yield from (f"Session {info.number}: the MCP server {server}: {fault}." for fault in faults)


def how_to_resume(info: SessionInfo) -> str:
    """:returns: a sentence on how to resume a session whose process died; empty if it cannot be resumed."""
    command = {"loop": "loop", "mcp-proxy": ""}.get(info.kind, "start")
    return f"To resume session {info.number}: ironcurtain {command} --resume {info.number}" if command else ""


def describe(event: events.SessionEvent) -> str:
    """:returns: an event as text; empty for events that are not logged."""
    match event:
        case events.StateChanged():
            return f"{event.state} {event.reason}".rstrip()
        case events.TurnStarted():
            return f"message {event.turn}: {event.message}"
        case events.TurnFinished():
            return f"message {event.turn} failed: {event.error}" if event.error else f"message {event.turn} answered"
        case events.ToolCallRaised():
            return f"call {event.call_id} {event.server}.{event.tool} {event.arguments}"
        case events.ToolDecision():
            by = f" by {event.by}{unasked(event)}" if event.by else ""
            rule = f" [{event.rule}] {event.reason}" if event.rule else ""
            return f"call {event.call_id} {event.decision}{by}{rule}"
        case events.ToolFinished():
            return f"call {event.call_id} ended: {event.status} after {event.duration_ms:.0f} ms, {event.size} bytes"
        case events.StepFinished():
            return f"model request {event.step}: {event.input_tokens} tokens in, {event.output_tokens} out"
        case events.EscalationRaised():
            return f"escalation {event.number} raised for call {event.call_id}"
        case events.EscalationCounted():
            return f"escalation {event.number}: {event.calls} equal calls wait for it"
        case events.EscalationApproved():
            return f"escalation {event.number} approved by {event.by}, and waits for another person"
        case events.EscalationClosed():
            kept = f", and kept for {event.kept}" if event.kept else ""
            return f"escalation {event.number} {event.outcome}{f' by {event.by}' if event.by else ''}{kept}"
        case events.PermissionRevoked():
            return f"permission {event.number} revoked by {event.by}: {event.scope}"
        case events.ModelRetry():
            return f"the model is asked again in {event.delay:.0f} s: {event.reason}"
        case events.ModelFellBack():
            return f"{event.failed} gave no answer ({event.reason}); {event.model} is asked instead"
        case events.BudgetWarning() | events.BudgetExhausted():
            return event.message
        case events.ServerDown():
            return f"the MCP server {event.server} {event.reason or 'is starting'}: its tools cannot be called"
        case events.ProxyDown():
            return f"the {event.proxy} proxy is dead: {event.reason}"
        case events.ContainerEnded():
            return f"the container ended: {event.reason}"
        case events.Progress() | events.Notice() | events.AgentDiagnostic():
            return event.text
        case events.RequestRefused():
            return f"request refused: {request_line(event)}: {event.reason}"
        case events.PackageInstalled():
            return f"fetched from {event.registry}: {event.name} {event.version}"
        case events.FileToReview():
            return f"review {event.path} ({event.what}): {event.reason}"
        case events.ResultTruncated():
            return f"a result was cut: the agent got {event.kept} of {event.size} bytes"
        case events.MessagesCompacted():
            dropped = f", and {event.turns} messages," if event.turns else ""
            return f"to fit the model, old programs and their results{dropped} were left out ({event.strategy})"
        case events.LoopDetected():
            return f"the same call to {event.server}.{event.tool} came too often"
        case events.CodeFinished() if event.error:
            return f"code failed: {event.error}"
        case _:
            return reported(event)


def reported(event: events.SessionEvent) -> str:
    """:returns: what an agent reports of itself, and a message that waits for it, as text; empty for other events."""
    match event:
        case agent_events.AgentToolStarted():
            inside = f" in {event.parent}" if event.parent else ""
            return f"the agent reports {event.tool_id}{inside}: {event.name} {event.what}".rstrip()
        case agent_events.AgentToolFinished():
            return f"the agent reports {event.tool_id} ended: {event.status} {event.what}".rstrip()
        case agent_events.MessageQueued():
            return f"message {event.number} in the queue: {event.message}"
        case agent_events.MessageTaken():
            return f"message {event.number} of the queue taken by the agent"
        case agent_events.MessageWithdrawn():
            return f"message {event.number} of the queue taken back"
        case _:
            return ""


def request_line(event: events.RequestRefused) -> str:
    """:returns: the refused request on one line; of a tunnel, only host and port."""
    target = event.path if event.method == "CONNECT" and event.path else event.host + event.path
    return f"{event.method} {target}".strip()


def unasked(event: events.ToolDecision) -> str:
    """:returns: words to add to the name of the approver if the approval was a kept one."""
    return f", as kept with escalation {event.permission}" if event.permission else ""
