"""What a session's events mean to whoever looks at its terminal, or at the recording of it. Pure."""

from __future__ import annotations

from ironcurtain.session import events
from ironcurtain.session.words import unasked


def bell(event: events.SessionEvent) -> str:
    """:returns: what a person has to be called for, in a few words; empty if nothing is."""
    match event:
        case events.EscalationRaised():
            return f"escalation {event.number}: {event.server}.{event.tool}"
        case events.BudgetWarning() | events.BudgetExhausted():
            return event.message
        case events.ProxyDown():
            return f"the {event.proxy} proxy is dead: {event.reason}"
        case _:
            return ""


def marker(event: events.SessionEvent) -> str:
    """:returns: a mark in the recording, for an event that rings nowhere; empty: none."""
    match event:
        case events.ToolCall():
            return f"call {event.call_id} {event.server}.{event.tool} {event.arguments}"
        case events.ToolDecision():
            by = f" by {event.by}{unasked(event)}" if event.by else ""
            return f"call {event.call_id} {event.decision}{by}"
        case events.ToolFinished():
            return f"call {event.call_id} ended: {event.status}"
        case events.StepFinished():
            return f"model request {event.step}: {event.input_tokens} tokens in, {event.output_tokens} out"
        case events.RequestRefused():
            return f"request refused: {event.method} {event.host}{event.path}"
        case events.EscalationClosed():
            return f"escalation {event.number} {event.outcome}{f' by {event.by}' if event.by else ''}"
        case _:
            return ""
