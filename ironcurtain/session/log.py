"""``session.log``: what happened in a session, in lines for people."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from twisted.logger import Logger

from ironcurtain.audit.chain import timestamp
from ironcurtain.display import one_line
from ironcurtain.secrets import Redactor
from ironcurtain.session import events

TEXT_LIMIT = 2000
"""Most characters of one line's text."""


class SessionLog:
    """
    Writes lines as they come. A line that cannot be written is dropped, and the first such is told to our own log.

    :param now: seconds since the epoch.
    :param redactor: every line goes through it.
    """

    log = Logger()

    def __init__(self, path: Path, now: Callable[[], float], redactor: Redactor) -> None:
        self._path, self._now, self._redactor = path, now, redactor
        self._fd = -1
        self._failed = False

    def open(self) -> None:
        """Make the file, or go on with the one that is there."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags, 0o600)

    def close(self) -> None:
        """Write no more; later lines are dropped."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def write(self, source: str, text: str) -> None:
        """
        :param source: what speaks, in a word.
        :param text: anything; it becomes one line that is safe to show.
        """
        if self._fd < 0:
            return
        clean = one_line(self._redactor.value(text, TEXT_LIMIT), TEXT_LIMIT)
        try:
            os.write(self._fd, f"{timestamp(self._now())} {source}: {clean}\n".encode())
        except OSError as e:
            if not self._failed:
                self.log.error("{path} cannot be written: {error}", path=self._path, error=e)
            self._failed = True


def describe(event: events.SessionEvent) -> str:
    """:returns: an event in words; empty for those that the log leaves out."""
    match event:
        case events.StateChanged():
            return f"{event.state} {event.reason}".rstrip()
        case events.TurnStarted():
            return f"message {event.turn}: {event.message}"
        case events.TurnFinished():
            return f"message {event.turn} failed: {event.error}" if event.error else f"message {event.turn} answered"
        case events.ToolCall():
            return f"call {event.call_id} {event.server}.{event.tool} {event.arguments}"
        case events.ToolDecision():
            by = f" by {event.by}" if event.by else ""
            rule = f" [{event.rule}] {event.reason}" if event.rule else ""
            return f"call {event.call_id} {event.decision}{by}{rule}"
        case events.ToolFinished():
            return f"call {event.call_id} ended: {event.status} after {event.duration_ms:.0f} ms, {event.size} bytes"
        case events.StepFinished():
            return f"model request {event.step}: {event.input_tokens} tokens in, {event.output_tokens} out"
        case events.EscalationRaised():
            return f"escalation {event.number} raised for call {event.call_id}"
        case events.EscalationClosed():
            return f"escalation {event.number} {event.outcome}{f' by {event.by}' if event.by else ''}"
        case events.ModelRetry():
            return f"the model is asked again in {event.delay:.0f} s: {event.reason}"
        case events.BudgetWarning() | events.BudgetExhausted():
            return event.message
        case events.ServerDown():
            return f"the MCP server {event.server} is not up: its tools cannot be called"
        case events.ProxyDown():
            return f"the {event.proxy} proxy is dead: {event.reason}"
        case events.ContainerEnded():
            return f"the container ended: {event.reason}"
        case events.Progress() | events.AgentDiagnostic():
            return event.text
        case events.RequestRefused():
            return f"request refused: {event.method} {event.host}{event.path}: {event.reason}"
        case events.FileToReview():
            return f"look at {event.path} ({event.what}): {event.reason}"
        case events.ResultTruncated():
            return f"a result was cut: the agent got {event.kept} of {event.size} bytes"
        case events.LoopDetected():
            return f"the same call to {event.server}.{event.tool} came too often"
        case events.CodeFinished() if event.error:
            return f"code failed: {event.error}"
        case _:
            return ""
