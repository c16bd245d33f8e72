"""
Traces: what agents of shells did, and which of them started which.

An agent finds its place in a trace in its environment and gives its own to what it starts, so that the tree of
processes is the tree of the trace. For itself and for each instruction it writes a span, a line of JSON.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal, get_args
from urllib.parse import quote, unquote

import msgspec

from ironcurtain.home.sections import Telemetry

TRACE_BYTES: Final = 16
"""Length of the id of a trace, and :data:`SPAN_BYTES` of a span's (W3C Trace Context, section 3.2.2)."""

SPAN_BYTES: Final = 8

DEEPEST: Final = 1000
"""The highest depth that is believed."""

TEXT_LIMIT: Final = 2000
"""Most characters of an instruction or a command in a span."""

SPAN_BEGINS: Final = b'{"trace_id":"'
"""What every line of :func:`written` begins with."""

_ID: Final = re.compile(r"[0-9a-f]{1,32}")

SinkKind = Literal["file", "journald", "syslog", "stdout"]
"""Where spans can go."""


@dataclass(frozen=True, slots=True)
class SinkChoice:
    """
    Where spans go.

    :param path: absolute, of a ``file``; else empty.
    """

    kind: SinkKind
    path: str = ""

    @property
    def url(self) -> str:
        """As ``UA_TRACE_SINK`` has it."""
        return f"file://{quote(self.path)}" if self.kind == "file" else f"{self.kind}:"


def sink_from_url(url: str) -> SinkChoice | None:
    """:returns: what a value of ``UA_TRACE_SINK`` names; ``None`` if it names nothing that is known."""
    kind, _, rest = url.partition(":")
    if kind == "file":
        path = unquote(rest.removeprefix("//"))
        return SinkChoice("file", path) if path.startswith("/") and "\0" not in path else None
    known = [name for name in get_args(SinkKind) if name == kind]
    return SinkChoice(known[0]) if known and not rest.strip("/") else None


@dataclass(frozen=True, slots=True)
class TraceContext:
    """
    The place of an agent in a trace.

    :param span_id: the agent's own.
    :param parent_span: of the agent that started it; empty for the first one.
    :param depth: how many agents are above it.
    :param sink: where the first one's spans go, if that was said.
    """

    trace_id: str
    span_id: str
    parent_span: str = ""
    depth: int = 0
    sink: SinkChoice | None = None

    def environment(self) -> dict[str, str]:
        """:returns: the variables for what the agent starts."""
        given = {
            "UA_TRACE_ID": self.trace_id,
            "UA_SPAN_ID": self.span_id,
            "UA_PARENT_SPAN_ID": self.parent_span,
            "UA_TRACE_DEPTH": str(self.depth),
            "UA_TRACE_SINK": self.sink.url if self.sink is not None else "",
        }
        return {name: value for name, value in given.items() if value}

    @property
    def traceparent(self) -> str:
        """As a header has it (W3C Trace Context, section 3.2)."""
        return f"00-{self.trace_id:0>32}-{self.span_id:0>16}-01"


def join_trace(environ: Mapping[str, str], new_id: Callable[[int], str]) -> TraceContext:
    """
    :param environ: of the agent.
    :param new_id: gives random bytes in hexadecimal, such as ``secrets.token_hex``.
    :returns: the place of a new agent: below the one that the environment names, or in a trace of its own.
    """
    trace, parent = environ.get("UA_TRACE_ID", ""), environ.get("UA_SPAN_ID", "")
    sink = sink_from_url(environ.get("UA_TRACE_SINK", ""))
    if not (_ID.fullmatch(trace) and _ID.fullmatch(parent) and len(parent) <= 2 * SPAN_BYTES):
        return TraceContext(new_id(TRACE_BYTES), new_id(SPAN_BYTES), sink=sink)
    depth = environ.get("UA_TRACE_DEPTH", "")
    above = int(depth) if depth.isascii() and depth.isdigit() and len(depth) <= len(str(DEEPEST)) else 0
    return TraceContext(trace, new_id(SPAN_BYTES), parent, min(above + 1, DEEPEST), sink)


def with_sink(context: TraceContext, telemetry: Telemetry, traces: str) -> TraceContext:
    """
    :param telemetry: the settings.
    :param traces: path of the file of spans where the settings name none.
    :returns: the context with the sink that holds for this agent and those below it: that of the agent above, else that
        of the settings; none where the settings want no traces.
    """
    if not telemetry.enabled:
        return replace(context, sink=None)
    path = os.path.abspath(os.path.expanduser(telemetry.path)) if telemetry.path else traces
    configured = SinkChoice(telemetry.sink, path if telemetry.sink == "file" else "")
    return replace(context, sink=context.sink or configured)


class TracedAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="shell"):
    """
    A command that ran, or was not allowed to.

    :param exit: its status, if it has one.
    """

    command: str
    exit: int | None
    duration_ms: int


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """
    What an agent did for one instruction, or in all.

    :param start: as ISO 8601 says it, as is ``end``.
    :param instruction: empty for the span of the agent itself.
    :param approval: who let its commands run: ``policy``, ``human``, both with a comma, or empty.
    :param result: ``success``, ``failure``, ``denied``, ``interrupted``.
    :param feedback: what the user thought of it, as far as they showed it.
    """

    trace_id: str
    span_id: str
    parent_span: str
    pid: int
    host: str
    start: str
    end: str
    instruction: str
    backend: str
    model: str
    actions: tuple[TracedAction, ...]
    tokens_in: int
    tokens_out: int
    approval: str
    result: str
    feedback: str = ""


def moment(seconds: float) -> str:
    """:param seconds: since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def written(span: Span, scrub: Callable[[str], str], *, anonymize: bool) -> bytes:
    """
    :param scrub: takes secrets out of a text.
    :param anonymize: whether texts are replaced by hashes, in which the trace's id is mixed: equal texts of a trace can
        be recognised, and no others.
    :returns: a span as one line.
    """

    def text(value: str) -> str:
        if anonymize:
            digest = hashlib.sha256(f"{span.trace_id} {value}".encode("utf-8", "replace")).hexdigest()
            return f"sha256:{digest[:16]}" if value else ""
        return scrub(value)[:TEXT_LIMIT]

    actions = tuple(msgspec.structs.replace(action, command=text(action.command)) for action in span.actions)
    kept = msgspec.structs.replace(
        span, instruction=text(span.instruction), feedback="" if anonymize else text(span.feedback), actions=actions
    )
    return msgspec.json.encode(kept) + b"\n"


class _Started(msgspec.Struct):
    start: datetime


def recent(lines: bytes, now: float, days: int) -> bytes:
    """
    :param lines: of a file of spans.
    :param now: seconds since 1970.
    :returns: those that began within so many days; what is no span is left out.
    """
    oldest = now - days * 86400
    return b"".join(line for line in lines.splitlines(keepends=True) if _began(line) >= oldest)


def _began(line: bytes) -> float:
    try:
        return msgspec.json.decode(line, type=_Started).start.timestamp()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return 0.0
