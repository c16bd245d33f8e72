"""
Spans in the JSON form of OTLP, which OpenTelemetry collectors accept over HTTP.

See the OTLP specification, "JSON Protobuf Encoding": ids are hexadecimal, 64-bit integers are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from ironcurtain import __version__
from ironcurtain.traces.context import SPAN_BYTES, TRACE_BYTES
from ironcurtain.traces.span import Span

TEXT_LIMIT: Final = 200
"""Most characters of a text in an attribute: names, which an MCP server may have chosen."""

_NAME: Final = re.compile(r"[a-z0-9_-]+")
_VALUE: Final = re.compile(r"[ -~]+")
_INTERNAL: Final = 1
_ERROR: Final = 2

Attribute = str | int | float


class ExportedSpan(msgspec.Struct, frozen=True):
    """
    A span that ended.

    :param trace_id: 32 hexadecimal digits; ids of spans have 16.
    :param parent: id of the span above; empty for the root of a trace.
    :param start: seconds since 1970, as is ``end``.
    """

    trace_id: str
    span_id: str
    parent: str
    name: str
    start: float
    end: float
    attributes: Mapping[str, Attribute] = msgspec.field(default_factory=dict)
    failed: bool = False


Export = Callable[[ExportedSpan], None]
"""Exports a span; neither waits nor raises."""


def from_shell(span: Span) -> ExportedSpan:
    """:returns: the span of a shell's agent, with the same ids, and without texts."""
    attributes: dict[str, Attribute | None] = {
        "ironcurtain.session.kind": "shell",
        "ironcurtain.backend": span.backend,
        "ironcurtain.actions": len(span.actions),
        "ironcurtain.approval": span.approval,
        "ironcurtain.outcome": span.result,
        "gen_ai.request.model": span.model,
        "gen_ai.usage.input_tokens": span.tokens_in,
        "gen_ai.usage.output_tokens": span.tokens_out,
    }
    return ExportedSpan(
        span.trace_id.rjust(2 * TRACE_BYTES, "0"),
        span.span_id.rjust(2 * SPAN_BYTES, "0"),
        span.parent_span.rjust(2 * SPAN_BYTES, "0") if span.parent_span else "",
        "instruction" if span.instruction else "shell",
        datetime.fromisoformat(span.start).timestamp(),
        datetime.fromisoformat(span.end).timestamp(),
        {name: value for name, value in attributes.items() if value not in ("", None)},
        span.result != "success",
    )


def request_body(spans: Sequence[ExportedSpan]) -> bytes:
    """:returns: the body of a request that exports spans."""
    resource = {"attributes": _attributes({"service.name": "ironcurtain", "service.version": __version__})}
    scope = {"name": "ironcurtain", "version": __version__}
    scoped = {"scope": scope, "spans": [_span(span) for span in spans]}
    return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]})


def header_values(text: str) -> dict[str, str]:
    """
    :param text: as ``OTEL_EXPORTER_OTLP_HEADERS`` has it: ``NAME=VALUE`` with commas between, values percent-encoded.
    :returns: the headers; what is none is left out.
    """
    pairs = [entry.partition("=") for entry in text.split(",")]
    headers = {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}
    return {name: value for name, value in headers.items() if _NAME.fullmatch(name) and _VALUE.fullmatch(value)}


def _span(span: ExportedSpan) -> dict[str, Any]:
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.start),
        # A clock that was set back must not give a negative duration.
        "endTimeUnixNano": _nanoseconds(max(span.start, span.end)),
        "attributes": _attributes(span.attributes),
        "status": {"code": _ERROR} if span.failed else {},
    }


def _nanoseconds(seconds: float) -> str:
    return str(max(0, round(seconds * 1e6)) * 1000)


def _attributes(attributes: Mapping[str, Attribute]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    match value:
        case str():
            return {"stringValue": value[:TEXT_LIMIT].encode("utf-8", "replace").decode()}
        case int():
            return {"intValue": str(value)}
        case _:
            return {"doubleValue": value}
