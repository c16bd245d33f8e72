"""Spans reach a collector, and nobody waits for one that does not answer."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.home.sections import Telemetry
from ironcurtain.traces.exporter import BATCH, DELAY_SECONDS, HEADERS, KEPT, REQUEST_SECONDS, SpanExporter
from ironcurtain.traces.exports import Exports
from ironcurtain.traces.otlp import ExportedSpan
from tests.http.direct import DIRECT
from tests.traces.collector import Collector

reactor: Any = _reactor

NOWHERE = "http://127.0.0.1:9"
"""The port "discard", on which nothing listens."""


def numbered(number: int) -> ExportedSpan:
    """:returns: a span."""
    return ExportedSpan("ab" * 16, f"{number + 1:016x}", "", "message", 1.0, 2.0)


def warnings(logged: Any) -> list[str]:
    """:returns: why spans were said not to arrive."""
    return [event["why"] for event in logged if event["log_level"] is LogLevel.warn]


class CollectorCase(TestCase):
    """With a collector."""

    def collector(self, status: int = 200) -> Collector:
        """:returns: it."""
        made = Collector(status)
        self.addCleanup(made.stop)
        return made

    async def until(self, happened: Any) -> None:
        """Let time pass until something happened."""
        while not happened():
            await deferLater(reactor, 0.01)


class ExporterTests(CollectorCase):
    """:class:`SpanExporter`"""

    async def test_spans_are_sent_together_with_the_users_headers(self) -> None:
        collector = self.collector()
        exporter = SpanExporter(reactor, collector.url + "/", DIRECT, {HEADERS: "X-Key=a%20b"})
        for number in range(3):
            exporter.add(numbered(number))
        await self.until(lambda: collector.requests)
        ((path, headers),) = collector.requests
        self.assertEqual((path, headers["x-key"], headers["content-type"]), ("/v1/traces", "a b", "application/json"))
        self.assertEqual(len(collector.spans), 3)
        await exporter.stop()

    async def test_what_waits_is_sent_at_the_end_in_batches(self) -> None:
        collector = self.collector()
        exporter = SpanExporter(reactor, collector.url, DIRECT, {})
        for number in range(BATCH + 1):
            exporter.add(numbered(number))
        await exporter.stop()
        self.assertEqual((len(collector.requests), len(collector.spans)), (2, BATCH + 1))
        exporter.add(numbered(0))
        await exporter.stop()
        self.assertEqual(len(collector.spans), BATCH + 1)

    async def test_most_spans_that_wait_are_limited(self) -> None:
        collector = self.collector()
        exporter = SpanExporter(reactor, collector.url, DIRECT, {})
        with capturedLogs() as logged:
            for number in range(KEPT + 5):
                exporter.add(numbered(number))
            await exporter.stop()
        self.assertEqual((len(collector.spans), warnings(logged)), (KEPT, ["too many spans wait"]))

    async def test_failures_are_logged_once(self) -> None:
        for endpoint, why in ((NOWHERE, "nothing listens there"), (self.collector(503).url, "it answered 503")):
            with capturedLogs() as logged:
                await self.fail_twice(SpanExporter(reactor, endpoint, DIRECT, {HEADERS: "key=secret"}))
            (said,) = warnings(logged)
            self.assertIn(why, said)
            self.assertNotIn("secret", str(logged))

    async def fail_twice(self, exporter: SpanExporter) -> None:
        """Export two spans, one after the other."""
        for number in range(2):
            exporter.add(numbered(number))
            await self.until(lambda: not exporter.busy)
        await exporter.stop()

    async def test_a_collector_that_does_not_answer_is_given_up(self) -> None:
        asked: Deferred[None] = Deferred()

        class Silent(Protocol):
            def dataReceived(self, data: bytes) -> None:
                if not asked.called:
                    asked.callback(None)

        port = reactor.listenTCP(0, Factory.forProtocol(Silent), interface="127.0.0.1")
        exporter = SpanExporter(reactor, f"http://127.0.0.1:{port.getHost().port}", DIRECT, {})
        exporter.add(numbered(1))
        await asked
        with capturedLogs() as logged:
            await exporter.stop()
        self.assertEqual(warnings(logged), ["no answer in time"])
        await port.stopListening()


class StalledTests(SynchronousTestCase):
    """A collector that accepts a connection and says nothing."""

    def test_a_request_has_a_time_limit(self) -> None:
        clock = MemoryReactorClock()
        exporter = SpanExporter(clock, "http://127.0.0.1:4318", DIRECT, {})
        exporter.add(numbered(1))
        clock.advance(DELAY_SECONDS)
        self.assertTrue(exporter.busy)
        with capturedLogs() as logged:
            clock.advance(REQUEST_SECONDS)
        self.assertEqual((exporter.busy, warnings(logged)), (False, ["127.0.0.1 cannot be reached: no answer in time"]))


class ExportsTests(CollectorCase):
    """:class:`Exports`"""

    async def test_an_endpoint_is_found_again_and_none_where_none_is_wanted(self) -> None:
        collector, exports = self.collector(), Exports(reactor, {})
        self.assertIsNone(exports.find(Telemetry(), DIRECT))
        self.assertIsNone(exports.find(Telemetry(enabled=False, otlp_endpoint=collector.url), DIRECT))
        for number in range(2):
            export = exports.find(Telemetry(otlp_endpoint=collector.url), DIRECT)
            assert export is not None
            export(numbered(number))
        await exports.stop()
        self.assertEqual((len(collector.requests), len(collector.spans)), (1, 2))
