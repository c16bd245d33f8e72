from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.sections import Telemetry
from ironcurtain.traces.context import (
    DEEPEST,
    ELSEWHERE,
    SinkChoice,
    TraceContext,
    join_trace,
    sink_from_url,
    with_sink,
)
from ironcurtain.traces.span import SPAN_BEGINS, TEXT_LIMIT, Span, TracedAction, moment, recent, written

START = 1_767_225_600.0  # 2026-01-01
SPAN = Span(
    trace_id="7f3a2b",
    span_id="a1b2c3",
    parent_span="d4e5f6",
    pid=1001,
    host="staging-1",
    start=moment(START),
    end=moment(START + 5.25),
    instruction="apply latest release",
    backend="anthropic",
    model="claude-opus-5-5",
    actions=(
        TracedAction(command="git pull", exit=0, duration_ms=1200),
        TracedAction(command="make install", exit=None, duration_ms=0),
    ),
    tokens_in=1500,
    tokens_out=800,
    approval="policy",
    result="success",
    feedback="too slow",
)


def plain(text: str) -> str:
    return text


def new_id(size: int) -> str:
    return "ab" * size


class ContextTests(SynchronousTestCase):
    def test_the_first_agent_begins_a_trace(self) -> None:
        context = join_trace({}, new_id)
        self.assertEqual(context, TraceContext("ab" * 16, "ab" * 8))
        self.assertEqual(
            context.environment(),
            {
                "UA_TRACE_ID": "ab" * 16,
                "UA_SPAN_ID": "ab" * 8,
                "UA_TRACE_DEPTH": "0",
                ELSEWHERE: f"{'ab' * 16}:{'ab' * 8}:0",
            },
        )

    def test_over_ssh_one_variable_is_enough(self) -> None:
        above = TraceContext("ab" * 16, "cd" * 8, "", 2, SinkChoice("file", "/traces"))
        found = join_trace({ELSEWHERE: above.environment()[ELSEWHERE]}, new_id)
        self.assertEqual((found.trace_id, found.parent_span, found.depth), ("ab" * 16, "cd" * 8, 3))
        self.assertIsNone(found.sink)
        for wrong in ("", "ab", "::", "x:y:z", ":" * 9):
            self.assertEqual(join_trace({ELSEWHERE: wrong}, new_id).parent_span, "", wrong)

    def test_another_one_is_below_it(self) -> None:
        sink = SinkChoice("file", "/var/log/ua/my traces.jsonl")
        first = TraceContext("7f3a2b", "a1b2c3", sink=sink)
        second = join_trace(first.environment(), new_id)
        self.assertEqual(second, TraceContext("7f3a2b", "ab" * 8, "a1b2c3", 1, sink))
        third = join_trace(second.environment(), lambda size: "cd" * size)
        self.assertEqual((third.trace_id, third.parent_span, third.depth), ("7f3a2b", "ab" * 8, 2))
        self.assertEqual(third.environment()["UA_TRACE_SINK"], "file:///var/log/ua/my%20traces.jsonl")

    def test_what_is_no_place_in_a_trace_is_not_believed(self) -> None:
        for trace, span in (("7f3a2b", ""), ("", "a1"), ("x", "a1"), ("7F", "a1"), ("a" * 33, "a1"), ("a1", "b" * 17)):
            context = join_trace({"UA_TRACE_ID": trace, "UA_SPAN_ID": span, "UA_TRACE_DEPTH": "3"}, new_id)
            self.assertEqual((context.trace_id, context.parent_span, context.depth), ("ab" * 16, "", 0))

    def test_depths(self) -> None:
        for given_depth, depth in (("0", 1), ("7", 8), ("", 1), ("-1", 1), ("x", 1), ("9" * 30, 1), ("9999", DEEPEST)):
            environ = {"UA_TRACE_ID": "a1", "UA_SPAN_ID": "b2", "UA_TRACE_DEPTH": given_depth}
            self.assertEqual(join_trace(environ, new_id).depth, depth, given_depth)

    def test_the_agent_above_says_where_spans_go_and_then_the_settings(self) -> None:
        context, above = TraceContext("7f", "a1"), SinkChoice("syslog")
        for telemetry, inherited, sink in (
            (Telemetry(), None, SinkChoice("file", "/home/traces.jsonl")),
            (Telemetry(path="/var/log/ua"), None, SinkChoice("file", "/var/log/ua")),
            (Telemetry(sink="journald", path="/var/log/ua"), None, SinkChoice("journald")),
            (Telemetry(sink="journald"), above, above),
            (Telemetry(enabled=False), above, None),
        ):
            chosen = with_sink(replace(context, sink=inherited), telemetry, "/home/traces.jsonl")
            self.assertEqual(chosen, replace(context, sink=sink))

    def test_as_a_header(self) -> None:
        self.assertEqual(TraceContext("7f", "a1").traceparent, f"00-{'0' * 30}7f-{'0' * 14}a1-01")

    @given(st.text("/abc %#?\u00e9\n"), st.sampled_from(["journald", "syslog", "stdout"]))
    def test_sinks_are_read_as_they_are_written(self, path: str, kind: str) -> None:
        for choice in (SinkChoice("file", f"/{path}"), SinkChoice(kind)):  # type: ignore[arg-type]
            self.assertEqual(sink_from_url(choice.url), choice)

    def test_other_sinks_are_none(self) -> None:
        for url in ("", "file:", "file:a", "file://host/a", "file:///a%00b", "http://x", "syslog:x", "kafka:"):
            self.assertIsNone(sink_from_url(url), url)

    @given(
        st.dictionaries(
            st.sampled_from(["UA_TRACE_ID", "UA_SPAN_ID", "UA_TRACE_DEPTH", "UA_TRACE_SINK", ELSEWHERE]), st.text()
        )
    )
    def test_any_environment_gives_a_place(self, environ: dict[str, str]) -> None:
        context = join_trace(environ, new_id)
        self.assertEqual(join_trace(context.environment(), new_id).trace_id, context.trace_id)


class SpanTests(SynchronousTestCase):
    def test_a_span_is_a_line_with_all_fields(self) -> None:
        line = written(SPAN, plain, anonymize=False)
        self.assertTrue(line.startswith(SPAN_BEGINS))
        self.assertEqual((line.count(b"\n"), line[-1:]), (1, b"\n"))
        self.assertEqual(
            json.loads(line),
            {
                "trace_id": "7f3a2b",
                "span_id": "a1b2c3",
                "parent_span": "d4e5f6",
                "pid": 1001,
                "host": "staging-1",
                "start": "2026-01-01T00:00:00.000Z",
                "end": "2026-01-01T00:00:05.250Z",
                "instruction": "apply latest release",
                "backend": "anthropic",
                "model": "claude-opus-5-5",
                "actions": [
                    {"type": "shell", "command": "git pull", "exit": 0, "duration_ms": 1200},
                    {"type": "shell", "command": "make install", "exit": None, "duration_ms": 0},
                ],
                "tokens_in": 1500,
                "tokens_out": 800,
                "approval": "policy",
                "result": "success",
                "feedback": "too slow",
            },
        )

    def test_without_texts_it_has_hashes(self) -> None:
        line = written(SPAN, plain, anonymize=True)
        for text in (b"apply", b"git", b"make", b"slow"):
            self.assertNotIn(text, line)
        span = json.loads(line)
        again = json.loads(written(SPAN, plain, anonymize=True))
        self.assertEqual(span, again)
        self.assertRegex(span["instruction"], r"^sha256:[0-9a-f]{16}$")
        hashes = {span["instruction"], *(action["command"] for action in span["actions"])}
        self.assertEqual(len(hashes), 3)

    def test_secrets_are_left_out(self) -> None:
        line = written(SPAN, lambda text: text.replace("git", "[redacted]"), anonymize=False)
        self.assertIn(b'"[redacted] pull"', line)

    @given(st.text(max_size=3 * TEXT_LIMIT), st.booleans())
    def test_any_text_fits_into_a_line(self, text: str, anonymize: bool) -> None:
        span = Span(**{name: getattr(SPAN, name) for name in Span.__struct_fields__} | {"instruction": text})
        line = written(span, plain, anonymize=anonymize)
        self.assertEqual(line.count(b"\n"), 1)
        self.assertLessEqual(len(json.loads(line)["instruction"]), TEXT_LIMIT)


class RetentionTests(SynchronousTestCase):
    def test_old_spans_go_and_so_does_what_is_none(self) -> None:
        old, young = (
            written(SPAN, plain, anonymize=True),
            written(
                Span(
                    **{name: getattr(SPAN, name) for name in Span.__struct_fields__} | {"start": moment(START + 86400)}
                ),
                plain,
                anonymize=True,
            ),
        )
        now = START + 30 * 86400 + 1
        self.assertEqual(recent(old + b"torn\n" + young + b'{"trace_id":"', now, 30), young)
        self.assertEqual(recent(old + young, now - 2, 30), old + young)

    @given(st.binary(max_size=200))
    def test_anything_is_read(self, lines: bytes) -> None:
        self.assertEqual(recent(lines, START, 1), b"")
