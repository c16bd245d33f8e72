"""
The outcome of a turn: an answer, or an explanation of why there is none.

The output comes from an untrusted program: texts are escaped before a person reads them.
"""

from __future__ import annotations

import re
import signal
from typing import Literal

import msgspec

from ironcurtain.errors import SessionError
from ironcurtain.llm.model import TokenUsage
from ironcurtain.text.display import one_line, paragraphs

REASON_LIMIT = 1000
"""Maximum length in characters of the agent's reason."""

TAIL_LINES, TAIL_LIMIT = 15, 2000
"""Maximum number of lines and characters of output in a message."""

OURS = "IronCurtain: "
"""Beginning of the reason of every refusal by the MITM proxy."""

_QUOTA = re.compile(
    r"quota|rate.?limit|too many requests|usage limit|credit balance|billing|payment|resource_exhausted", re.IGNORECASE
)
_OVERLOADED = re.compile(
    r"overloaded|at capacity|unavailable|internal server error|bad gateway|gateway time|server_error", re.IGNORECASE
)
_UNFINISHED = re.compile(
    r"number of function response parts is equal|ids were found without .tool_result|no tool output found for",
    re.IGNORECASE,
)
"""
What Google, Anthropic and OpenAI answer to a conversation with a call that has no result. Gemini CLI 0.61.0 leaves one
when a turn is cancelled while a tool runs, and keeps it.
"""
_DEADLY = {
    128 + number: number.name
    for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)
}
"""
Signals by the exit status that stands for them. Others are left out: Gemini CLI's status is one of HTTP modulo 256, so
144 to 173 may be 400 to 429.
"""
_ADVICE: dict[Kind, str] = {
    "quota": "the account at the model's provider has reached a limit, or needs a payment",
    "overloaded": "the model's provider is unavailable: try again later",
    "refused": "the MITM proxy refused a request to the model: see the audit log",
    "empty": "it ended without an answer: ask again, or in other words",
    "mcp-down": "it had no connection to its tools: try again; if that does not help, see the session's log",
    "unfinished": "its conversation has a tool call without a result, which the model refuses: /clear begins a new one",
    "failed": "it failed",
}

Kind = Literal["quota", "overloaded", "refused", "empty", "mcp-down", "unfinished", "failed"]
"""
Why a turn has no answer.

``quota``: a limit or payment at the provider; ``overloaded``: the provider has no capacity, or an internal error;
``refused``: the MITM proxy refused a request to the model; ``empty``: the agent succeeded without text; ``mcp-down``:
the agent had no connection to its tools; ``unfinished``: its conversation cannot go on after a tool call that was
cancelled; ``failed``: any other reason.
"""


class TurnFailed(SessionError):
    """
    A message has no answer. The conversation can continue.

    :param detail: for the user: the agent's error, and the end of its output.
    """

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__("MESSAGE_FAILED", detail)
        self.kind = kind


class TurnOutcome(msgspec.Struct, frozen=True):
    """
    The outcome of the agent's command.

    :ivar exit_code: its exit status; 128 and more after a signal; ``None``: the program goes on.
    :ivar stdout: its output. The caller bounds it: lines may be missing, or cut, at its beginning.
    :ivar stderr: likewise.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes


class AgentAnswer(msgspec.Struct, frozen=True):
    """
    The agent's answer.

    :ivar usage: tokens of the turn as the agent counted them; ``None`` if unknown.
    """

    text: str
    usage: TokenUsage | None = None


CUT = "[cut at the model's limit: say 'continue']"
"""What ends an answer that the model did not finish."""


def failure(
    agent: str, outcome: TurnOutcome, reason: str = "", *, status: int | None = None, kind: Kind | None = None
) -> TurnFailed:
    """
    Explain to the user why there is no answer.

    :param agent: its display name.
    :param reason: the agent's own reason, if any.
    :param status: the HTTP status of the model's response, if the agent reported it.
    :param kind: the kind, if certain; else it is derived from reason, status and standard error.
    """
    end = _end(outcome.stderr)
    kind = kind or _judge(reason or end, status)
    status_words = f"exit status {outcome.exit_code}"
    if deadly := _DEADLY.get(outcome.exit_code or 0):
        status_words = f"ended by {deadly}"
    exited = "" if outcome.exit_code is None else f" ({status_words})"
    lines = [f"{agent} gave no answer{exited}: {_ADVICE[kind]}"]
    if reason.strip():
        lines[0] += f". It said: {one_line(' '.join(reason.split()), REASON_LIMIT)}"
    if kind == "failed" or not reason.strip():
        shown = end or _end(b"\n".join(line for line in outcome.stdout.splitlines() if not line.startswith(b"{")))
        lines += ["The end of its output:", *(f"  {line}" for line in shown.split("\n"))] if shown else []
    return TurnFailed(kind, "\n".join(lines))


def _judge(reason: str, status: int | None) -> Kind:
    server_error = status is not None and status >= 500
    if OURS in reason:
        return "overloaded" if server_error else "refused"
    if _UNFINISHED.search(reason):
        return "unfinished"
    if status in (402, 429) or _QUOTA.search(reason):
        return "quota"
    return "overloaded" if server_error or _OVERLOADED.search(reason) else "failed"


def _end(data: bytes) -> str:
    """:returns: the last non-blank lines, escaped."""
    text = paragraphs(data[-4 * TAIL_LIMIT :].decode("utf-8", "replace")).strip()
    return "\n".join(text[-TAIL_LIMIT:].split("\n")[-TAIL_LINES:])
