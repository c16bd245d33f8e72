"""Spans as a collector gets them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.settings import load
from ironcurtain.traces.otlp import TEXT_LIMIT, ExportedSpan, from_shell, header_values, request_body
from ironcurtain.traces.span import Span, TracedAction, moment


def sent(span: ExportedSpan) -> dict[str, Any]:
    """:returns: the span in a request's body."""
    (resource,) = json.loads(request_body([span]))["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    (found,) = scope["spans"]
    return dict(found)


class BodyTests(SynchronousTestCase):
    """:func:`request_body`"""

    def test_a_span_has_the_form_of_otlp(self) -> None:
        span = ExportedSpan("ab" * 16, "cd" * 8, "", "message", 1.5, 2.25, {"a": "b", "n": 3, "x": 0.5}, failed=True)
        self.assertEqual(
            sent(span),
            {
                "traceId": "ab" * 16,
                "spanId": "cd" * 8,
                "name": "message",
                "kind": 1,
                "startTimeUnixNano": "1500000000",
                "endTimeUnixNano": "2250000000",
                "attributes": [
                    {"key": "a", "value": {"stringValue": "b"}},
                    {"key": "n", "value": {"intValue": "3"}},
                    {"key": "x", "value": {"doubleValue": 0.5}},
                ],
                "status": {"code": 2},
            },
        )

    def test_a_clock_that_was_set_back_gives_no_negative_duration(self) -> None:
        span = sent(ExportedSpan("ab" * 16, "cd" * 8, "ef" * 8, "message", 9.0, 3.0))
        self.assertEqual(span["startTimeUnixNano"], span["endTimeUnixNano"])
        self.assertEqual(span["parentSpanId"], "ef" * 8)

    @given(st.text(st.characters(exclude_categories=()), max_size=2 * TEXT_LIMIT))
    def test_any_text_can_be_sent_and_is_limited(self, text: str) -> None:
        (attribute,) = sent(ExportedSpan("ab" * 16, "cd" * 8, "", "message", 0.0, 0.0, {"text": text}))["attributes"]
        self.assertEqual(len(attribute["value"]["stringValue"]), min(len(text), TEXT_LIMIT))


class ShellSpanTests(SynchronousTestCase):
    """:func:`from_shell`"""

    def test_ids_and_times_are_kept_and_texts_are_not(self) -> None:
        action = TracedAction(command="cat secret", exit=0, duration_ms=7)
        span = from_shell(
            Span(
                trace_id="7f", span_id="a1", parent_span="b2", pid=1, host="h", start=moment(1.5), end=moment(2.5),
                instruction="find the secret", backend="anthropic", model="m-1", actions=(action,), tokens_in=10,
                tokens_out=2, approval="human", result="denied", feedback="a secret",
            )
        )  # fmt: skip
        ids = (span.trace_id, span.span_id, span.parent)
        self.assertEqual(ids, ("7f".zfill(32), "a1".zfill(16), "b2".zfill(16)))
        self.assertEqual((span.name, span.start, span.end, span.failed), ("instruction", 1.5, 2.5, True))
        self.assertEqual(span.attributes["gen_ai.usage.input_tokens"], 10)
        self.assertEqual(
            (span.attributes["ironcurtain.approval"], span.attributes["ironcurtain.actions"]), ("human", 1)
        )
        self.assertNotIn("secret", str(span))


class SettingTests(SynchronousTestCase):
    """What the user says."""

    def test_headers_as_opentelemetry_writes_them(self) -> None:
        self.assertEqual(header_values("X-Key=a%20b, other=1=2"), {"x-key": "a b", "other": "1=2"})
        self.assertEqual(header_values("a=x%0d%0ab: c,=v,none,b c=1,e="), {})

    @given(st.text())
    def test_headers_from_any_text_can_be_sent(self, text: str) -> None:
        for name, value in header_values(text).items():
            self.assertTrue(name.isascii() and value.isascii() and value.isprintable())

    def test_an_endpoint_has_tls_or_is_on_this_machine(self) -> None:
        for good in ("", "http://127.0.0.1:4318", "https://otel.example/base"):
            load("config.toml", f'[telemetry]\notlp_endpoint = "{good}"', {})
        for bad in ("127.0.0.1:4318", "http://otel.example:4318", "https://me:pw@otel.example", "https://x/?q=1"):
            with self.assertRaisesRegex(ConfigurationError, "otlp_endpoint must look like"):
                load("config.toml", f'[telemetry]\notlp_endpoint = "{bad}"', {})
