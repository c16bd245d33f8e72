"""The events of calls as events of their session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironcurtain.mcp_proxy.calls import CallDecided, CallEvent, CallFinished, CallRaised
from ironcurtain.mcp_proxy.refusals import BREAKER_RULE
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session import events

ARGUMENTS_SHOWN = 200
"""Maximum length in characters of a call's arguments in an event."""


def brief(arguments: Mapping[str, Any]) -> str:
    """:returns: a call's arguments in short: names and values, texts without quotes."""
    values = ((name, v if isinstance(v, str) else msgspec.json.encode(v).decode()) for name, v in arguments.items())
    return " ".join(f"{name}={value}" for name, value in values)


def teller(
    emit: Callable[[events.SessionEvent], None], redactor: Redactor, shown: Callable[[str], str] = str
) -> Callable[[CallEvent], None]:
    """
    :param shown: gives a text with the names by which people know paths.
    :returns: what turns the events of calls into the session's.
    """

    def tell(event: CallEvent) -> None:
        if isinstance(event, CallRaised):
            clean = redactor.value(event.arguments, ARGUMENTS_SHOWN)
            arguments = shown(brief(clean))
            if len(arguments) > ARGUMENTS_SHOWN:
                arguments = f"{arguments[: ARGUMENTS_SHOWN - 1]}…"
            emit(
                events.ToolCallRaised(call_id=event.call_id, server=event.server, tool=event.tool, arguments=arguments)
            )
            emit(
                events.ToolDecision(
                    call_id=event.call_id, decision=event.decision, rule=event.rule, reason=redactor.text(event.reason)
                )
            )
            if event.rule == BREAKER_RULE:
                emit(events.LoopDetected(server=event.server, tool=event.tool))
        elif isinstance(event, CallDecided):
            emit(
                events.ToolDecision(
                    call_id=event.call_id, decision=event.outcome, by=event.by, permission=event.permission
                )
            )
        elif isinstance(event, CallFinished):
            emit(
                events.ToolFinished(
                    call_id=event.call_id, status=event.status, duration_ms=event.duration * 1000, size=event.size
                )
            )

    return tell
