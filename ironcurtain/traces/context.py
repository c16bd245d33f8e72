"""
The place of an agent in a trace, which tells which agents of shells started which.

An agent finds its place in its environment and gives its own to what it starts, so that the tree of processes is the
tree of the trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from ironcurtain.home.sections import Telemetry
from ironcurtain.home.user_paths import absolute_path

TRACE_BYTES: Final = 16
"""Length of the id of a trace, and :data:`SPAN_BYTES` of a span's (W3C Trace Context, section 3.2.2)."""

SPAN_BYTES: Final = 8

DEEPEST: Final = 1000
"""The highest depth that is believed."""

ELSEWHERE: Final = "LC_IRONCURTAIN_TRACE"
"""
The variable that says the same to agents on other machines: OpenSSH passes it on where ``SendEnv LC_*`` and ``AcceptEnv
LC_*`` are set, as Debian, Ubuntu and Fedora do. Where spans go is the other machine's choice.
"""

_ID: Final = re.compile(r"[0-9a-f]{1,32}")

SinkKind = Literal["file", "journald", "syslog", "stdout"]
"""Where spans can go."""


class SinkChoice(msgspec.Struct, frozen=True):
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


class TraceContext(msgspec.Struct, frozen=True):
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
            ELSEWHERE: f"{self.trace_id}:{self.span_id}:{self.depth}",
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
    there = dict(
        zip(("UA_TRACE_ID", "UA_SPAN_ID", "UA_TRACE_DEPTH"), environ.get(ELSEWHERE, "").split(":"), strict=False)
    )
    environ = {**there, **environ}
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
    path = str(absolute_path(telemetry.path)) if telemetry.path else traces
    configured = SinkChoice(telemetry.sink, path if telemetry.sink == "file" else "")
    return replace(context, sink=context.sink or configured)
