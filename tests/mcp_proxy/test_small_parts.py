"""The small pure parts: progress, the circuit breaker, path mapping of messages, inspection of results."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.jsonrpc.codec import InvalidMessage
from ironcurtain.mcp_proxy.calls import PathRewriter, clean, failure_text
from ironcurtain.mcp_proxy.circuit_breaker import REMEMBERED, CircuitBreaker
from ironcurtain.mcp_proxy.connection import ProgressLine
from ironcurtain.policy.pathmap import PathMap


class ProgressTests(SynchronousTestCase):
    """Values grow, whoever reports."""

    def setUp(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.line = ProgressLine("7", lambda raw: self.told.append(json.loads(raw)))

    @given(st.integers(0, 20), st.lists(st.integers(1, 100), unique=True).map(sorted), st.integers(-3, 3))
    def test_ours_and_then_the_servers_grow(self, waits: int, steps: list[int], shift: int) -> None:
        told: list[float] = []
        line = ProgressLine(1, lambda raw: told.append(json.loads(raw)["progress"]))
        for _ in range(waits):
            line.waiting("wait")
        for step in steps:
            line.relay({"progressToken": 99, "progress": step + shift})
        self.assertEqual(told, sorted(set(told)))

    def test_a_server_that_starts_at_one_is_not_changed(self) -> None:
        self.line.waiting("wait")
        self.line.relay({"progressToken": 3, "progress": 1, "total": 4, "x": None})
        self.assertEqual(self.told[0], {"progressToken": "7", "progress": 1e-06, "message": "wait"})
        self.assertEqual(self.told[1], {"progressToken": "7", "progress": 1, "total": 4, "x": None})

    def test_a_server_that_starts_at_zero_is_shifted_with_its_total(self) -> None:
        self.line.waiting("wait")
        self.line.relay({"progressToken": 3, "progress": 0, "total": 4})
        self.assertEqual(self.told[1], {"progressToken": "7", "progress": 2e-06, "total": 4.000002})

    def test_without_waiting_nothing_is_changed(self) -> None:
        self.line.relay({"progressToken": 3, "progress": 0})
        self.assertEqual(self.told, [{"progressToken": "7", "progress": 0}])


class BreakerTests(SynchronousTestCase):
    """The same call over and over."""

    def test_it_trips_after_the_limit_and_recovers(self) -> None:
        breaker = CircuitBreaker(repeats=3, window=10.0)
        self.assertEqual([breaker.trips("a", now) for now in (0.0, 1.0, 2.0, 3.0, 9.9)], [False] * 3 + [True] * 2)
        self.assertFalse(breaker.trips("a", 10.0))
        self.assertTrue(breaker.trips("a", 10.5))

    def test_other_calls_do_not_count(self) -> None:
        breaker = CircuitBreaker(repeats=1)
        self.assertFalse(breaker.trips("a", 0.0))
        self.assertFalse(breaker.trips("b", 0.0))
        self.assertTrue(breaker.trips("a", 0.0))

    def test_it_remembers_only_so_many(self) -> None:
        breaker = CircuitBreaker()
        for number in range(REMEMBERED + 10):
            breaker.trips(str(number), 0.0)
        self.assertEqual(len(breaker._seen), REMEMBERED)


class OutwardTests(SynchronousTestCase):
    """The host's name of the workspace never reaches the agent."""

    def setUp(self) -> None:
        self.rewriter = PathRewriter(PathMap("/srv/my sandböx"))

    def test_other_messages_pass_as_they_came(self) -> None:
        raw = b'{ "text" : "/srv/other", "n": 1.10, "big": 1e999 }'
        self.assertIs(self.rewriter.raw(raw), raw)

    def test_every_form_of_the_path_is_found(self) -> None:
        values = {"text": "see /srv/my sandböx/a.txt", "/srv/my sandböx": ["/srv/my sandböx"], "n": 2**70}
        mapped = {"text": "see /workspace/a.txt", "/workspace": ["/workspace"], "n": 2**70}
        for encoded in (
            json.dumps(values),
            json.dumps(values, ensure_ascii=False),
            json.dumps(values).replace("/", "\\/"),
            json.dumps(values, ensure_ascii=False).replace("/", "\\/"),
        ):
            self.assertEqual(json.loads(self.rewriter.raw(encoded.encode())), mapped)

    def test_uris_are_mapped(self) -> None:
        raw = b'{"uri":"file:///srv/my%20sandb%C3%B6x/a%20b.txt"}'
        self.assertEqual(self.rewriter.raw(raw), b'{"uri":"file:///workspace/a%20b.txt"}')

    def test_binary_content_is_not_touched(self) -> None:
        rewriter = PathRewriter(PathMap("/srv"))
        raw = b'{"text":"/srv","data":"AAAA/srv/BBBBAAA"}'
        self.assertEqual(rewriter.raw(raw), b'{"text":"/workspace","data":"AAAA/srv/BBBBAAA"}')

    def test_a_path_that_is_the_same_on_both_sides_costs_nothing(self) -> None:
        raw = b'{"text":"/srv/x"}'
        self.assertIs(PathRewriter(PathMap("/srv", "/srv")).raw(raw), raw)

    def test_what_cannot_be_looked_into_does_not_pass(self) -> None:
        with self.assertRaises(InvalidMessage):
            PathRewriter(PathMap("/srv")).raw(b'{"text":"/srv/x","n":1e999}')


class InspectionTests(SynchronousTestCase):
    """Results and the other parameters of calls."""

    def test_failures_are_told_apart(self) -> None:
        self.assertIsNone(failure_text(b'{"content":[],"isError":false}'))
        self.assertIsNone(failure_text(b'{"isError":"true"}'))
        text = b'{"isError": true, "content":[{"type":"text","text":"a"},{"type":"image"},7,{"text":"b"}]}'
        self.assertEqual(failure_text(text), "a\nb")
        self.assertEqual(failure_text(b'{"isError":true}'), "")

    def test_what_is_no_result_is_refused(self) -> None:
        for raw in (b"[]", b"1", b"null", b'"x"'):
            self.assertRaises(InvalidMessage, failure_text, raw)

    def test_unknown_parameters_pass_and_ways_round_us_do_not(self) -> None:
        meta = {
            "progressToken": 1,
            "traceparent": "kept",
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
            "io.modelcontextprotocol/clientInfo": {},
        }
        params = {
            "name": "n",
            "arguments": {},
            "x": 1,
            "task": {},
            "inputResponses": {},
            "requestState": "",
            "_meta": meta,
        }
        self.assertEqual(clean(params), {"x": 1, "_meta": {"traceparent": "kept"}})
        self.assertEqual(clean({"_meta": "odd"}), {})
