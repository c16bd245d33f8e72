"""Messages in HTTP answers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.http_messages import EventRewriter, MessageReader


def message(**members: Any) -> bytes:
    """:returns: one message."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


class MessageReaderTests(SynchronousTestCase):
    """What the SDK gets to see."""

    def setUp(self) -> None:
        self.unread: dict[codec.Id, str] = {}
        self.told: list[str] = []

    def reader(self, request: codec.Id | None = 7) -> MessageReader:
        """:returns: the reader of an answer."""
        return MessageReader(request, self.unread.__setitem__, self.told.append)

    def test_any_answer_is_that_to_its_request(self) -> None:
        for identifier in (7, "7", 7.0, 99, None):
            for body in (message(id=identifier, error="no"), b"\xef\xbb\xbf" + message(id=identifier or 7, result={})):
                self.assertEqual(json.loads(self.reader().body(body))["id"], 7)
        self.assertEqual(self.unread, {})

    def test_unreadable_answer_is_an_error_with_a_reason(self) -> None:
        for body, why in ((b"<html>", "not JSON"), (b"", "not JSON"), (message(id=7, result=float("nan")), "NaN")):
            self.assertEqual(json.loads(self.reader().body(body))["error"]["code"], codec.PARSE_ERROR)
            self.assertIn(why, self.unread.pop(7))

    def test_event_that_answers_nothing_is_dropped_and_told(self) -> None:
        self.assertEqual(self.reader().event(b"keep-alive"), b"")
        self.assertEqual(self.reader(None).event(message(id=7, result=float("nan"))), b"")
        self.assertEqual(self.reader(None).event(message(id=None, error="no")), b"")
        self.assertEqual(self.reader().event(message(method="x", params=[1])), b"")
        self.assertEqual((len(self.told), self.unread), (4, {}))

    def test_requests_and_notifications_pass(self) -> None:
        for sent in (message(id="q", method="ping"), message(method="x", params={"a": 1})):
            self.assertEqual(json.loads(self.reader(None).event(sent)), json.loads(sent))

    def test_body_of_an_http_error_passes_unless_it_is_a_message(self) -> None:
        self.assertEqual(self.reader().error(b"{}"), b"{}")
        self.assertEqual(json.loads(self.reader().error(message(id=None, error="no")))["error"]["message"], "no")


class EventRewriterTests(SynchronousTestCase):
    """Streams of events."""

    def rewritten(self, stream: bytes, size: int = 1000, limit: int = 1000) -> bytes:
        """:returns: the stream with messages in capital letters, given in slices."""
        rewriter = EventRewriter(bytes.upper, limit)
        return b"".join(rewriter.feed(stream[i : i + size]) for i in range(0, len(stream), size)) + rewriter.end()

    @given(st.integers(1, 60))
    def test_any_slicing_gives_the_same_stream(self, size: int) -> None:
        first = b"\xef\xbb\xbfid: 0\nretry: 100\ndata:\n\n"
        stream = first + b": note\r\nevent:message\rdata:a\r\ndata: b\n\nevent: x\ndata: c\n\n"
        written = b"id: 0\nretry: 100\ndata: \n\n: note\nevent:message\ndata: A\ndata: B\n\nevent: x\ndata: c\n\n"
        self.assertEqual(self.rewritten(stream, size), written)

    def test_complete_message_without_the_end_of_its_event_counts(self) -> None:
        whole = message(id=1, result={})
        for end in (b"", b"\n"):
            self.assertEqual(self.rewritten(b"data: " + whole + end), b"data: " + whole.upper() + b"\n\n")
            self.assertEqual(self.rewritten(b"data: " + whole[:-1] + end), b"")

    def test_dropped_message_leaves_the_other_fields(self) -> None:
        rewriter = EventRewriter(lambda data: b"", 1000)
        self.assertEqual(rewriter.feed(b"id: 5\ndata: x\n\n"), b"id: 5\n\n")

    def test_event_over_the_limit_is_left_to_the_reader_behind(self) -> None:
        stream = b"data: a\n\ndata: bb\ndata: " + b"c" * 100 + b"\n\ndata: d\n\n"
        self.assertEqual(self.rewritten(stream, 7, 50), stream.replace(b"data: a", b"data: A", 1))
