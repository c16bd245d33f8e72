"""Heads of requests and responses."""

from __future__ import annotations

import tracemalloc

import h11
from hypothesis import assume, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.fields import FIELD_LIMIT, LINES_KEPT, read_fields
from ironcurtain.http.framing import Chunked, Counted, UntilClose
from ironcurtain.http.head import HEAD_LIMIT, HeadReader, HttpRequest, HttpResponse, read_request, read_response
from tests.mitm_proxy.refusing import refuses

LINE = b"POST /v1/messages HTTP/1.1"
HOST = b"Host: api.example.com"


def requested(*lines: bytes) -> HttpRequest:
    """:returns: the request with these lines."""
    return read_request(b"\r\n".join(lines))


def answered(*lines: bytes, method: str = "POST") -> HttpResponse:
    """:returns: the response with these lines."""
    return read_response(b"\r\n".join(lines), method)


class ReaderTests(SynchronousTestCase):
    """Finding the end of a head."""

    @given(st.integers(1, 50), st.binary(max_size=20))
    def test_any_slicing_gives_the_same_head(self, size: int, rest: bytes) -> None:
        stream = LINE + b"\r\n" + HOST + b"\r\n\r\n" + rest
        slices = [stream[start : start + size] for start in range(0, len(stream), size)]
        reader, found = HeadReader(), None
        while found is None:
            found = reader.feed(slices.pop(0))
        self.assertEqual(found[0], LINE + b"\r\n" + HOST)
        self.assertEqual(found[1] + b"".join(slices), rest)
        self.assertFalse(reader.begun)

    def test_a_long_head(self) -> None:
        reader = HeadReader()
        with self.assertRaises(ProtocolViolation):
            for _ in range(HEAD_LIMIT // 1000 + 1):
                reader.feed(b"a" * 1000)
        with self.assertRaises(ProtocolViolation):
            HeadReader().feed(b"a" * (HEAD_LIMIT + 1) + b"\r\n\r\n")


class RequestTests(SynchronousTestCase):
    """Heads of requests."""

    def test_a_request(self) -> None:
        got = requested(b"GET /v1/models?limit=5&x= HTTP/1.1", HOST, b"X-Api-Key:  secret ", b"x-empty:")
        self.assertEqual((got.head.method, got.head.path, got.head.query), ("GET", "/v1/models", "limit=5&x="))
        self.assertEqual(got.head.target, "/v1/models?limit=5&x=")
        self.assertEqual(got.head.headers[1:], (("x-api-key", "secret"), ("x-empty", "")))
        self.assertEqual((got.host, got.length, got.expects, got.last), ("api.example.com", 0, False, False))

    def test_bodies(self) -> None:
        self.assertEqual(requested(LINE, HOST, b"content-length: 12").length, 12)
        self.assertIsNone(requested(LINE, HOST, b"transfer-encoding: Chunked").length)
        self.assertIsInstance(requested(LINE, HOST, b"transfer-encoding: chunked").framing(), Chunked)
        self.assertTrue(requested(LINE, HOST).framing().done)

    def test_expectations_and_ends(self) -> None:
        self.assertTrue(requested(LINE, HOST, b"content-length: 1", b"expect: 100-Continue").expects)
        self.assertFalse(requested(LINE, HOST, b"expect: 100-continue").expects)
        self.assertTrue(requested(LINE, HOST, b"connection: keep-alive, Close").last)

    def test_lengths_that_two_programs_read_differently(self) -> None:
        heads = (
            (b"content-length: 5", b"transfer-encoding: chunked"),
            (b"content-length: 5", b"content-length: 5"),
            (b"content-length: 5", b"Content-Length: 6"),
            (b"content-length: +5",),
            (b"content-length: 0x5",),
            (b"content-length: 5,5",),
            (b"content-length: 5, 5",),
            (b"content-length: -1",),
            (b"content-length: 5 5",),
            (b"content-length: ",),
            (b"content-length:\t5",),
            (b"content-length: 5\t",),
            (b"content-length: \xb2",),
            (b"content-length: 1_0",),
            (b"content-length: " + b"9" * 16,),
            (b"transfer-encoding: chunked, identity",),
            (b"transfer-encoding: identity",),
            (b"transfer-encoding: gzip, chunked",),
            (b"transfer-encoding: xchunked",),
            (b"transfer-encoding:\tchunked",),
            (b"transfer-encoding: chunked\x0b",),
            (b"transfer-encoding: chunked", b"transfer-encoding: chunked"),
            (b"transfer-encoding: chunked", b"transfer-encoding: x"),
            (b"transfer-encoding:",),
        )
        self.assertEqual([lines for lines in heads if not refuses(requested, LINE, HOST, *lines)], [])

    def test_lines_that_two_programs_read_differently(self) -> None:
        heads = (
            (b"x: a\nb: c",),
            (b"x: a\rb: c",),
            (b" folded: a",),
            (b"x: a", b"\tfolded"),
            (b"x : a",),
            (b"x\x00: a",),
            (b"x\x80: a",),
            (b"x: a\x00",),
            (b"x: a\x7f",),
            (b": a",),
            (b"no colon",),
            (b"",),
            (HOST,),
            (b"host: other.example",),
            (b"expect: something",),
        )
        self.assertEqual([lines for lines in heads if not refuses(requested, LINE, HOST, *lines)], [])
        with self.assertRaises(ProtocolViolation):
            requested(LINE, b"x: a")

    def test_targets_and_methods(self) -> None:
        first = (
            b"POST https://api.example.com/v1/messages HTTP/1.1",
            b"OPTIONS * HTTP/1.1",
            b"CONNECT other.example:443 HTTP/1.1",
            b"post /v1/messages HTTP/1.1",
            b"POST  /v1/messages HTTP/1.1",
            b"POST\t/v1/messages HTTP/1.1",
            b"POST /v1/messages  HTTP/1.1",
            b"POST /v1/messages HTTP/1.0",
            b"POST /v1/messages HTTP/2.0",
            b"POST /v1/messages",
            b"POST /v1/mess ages HTTP/1.1",
            b"POST /v1/messages#x HTTP/1.1",
            b"POST /v1/messages?a#x HTTP/1.1",
            b"POST /v1/m\xc3\xa4 HTTP/1.1",
            b"POST /v1\\messages HTTP/1.1",
            b"POST v1 HTTP/1.1",
            b"PRI * HTTP/2.0",
            b"\r\n" + LINE,
            b" " + LINE,
        )
        self.assertEqual([line for line in first if not refuses(requested, line, HOST)], [])

    def test_many_fields(self) -> None:
        requested(LINE, HOST, *[b"x: a"] * (FIELD_LIMIT - 1))
        with self.assertRaises(ProtocolViolation):
            requested(LINE, HOST, *[b"x: a"] * FIELD_LIMIT)

    def test_memory_of_remembered_lines_is_bounded(self) -> None:
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        size = 2000
        for number in range(4 * LINES_KEPT):
            value = f"{number}".rjust(size, "a")
            self.assertEqual(read_fields(f"x: {value}".encode()), (("x", value),))
        kept, _ = tracemalloc.get_traced_memory()
        self.assertLess(kept, 3 * LINES_KEPT * size)  # each as bytes and as a string


class ResponseTests(SynchronousTestCase):
    """Heads of responses."""

    def test_bodies(self) -> None:
        self.assertIsInstance(answered(b"HTTP/1.1 200 OK", b"content-length: 3").framing, Counted)
        self.assertIsInstance(answered(b"HTTP/1.1 200 OK", b"transfer-encoding: chunked").framing, Chunked)
        self.assertIsInstance(answered(b"HTTP/1.1 200").framing, UntilClose)

    def test_responses_without_a_body(self) -> None:
        for line, method in ((b"HTTP/1.1 200 OK", "HEAD"), (b"HTTP/1.1 204 No", "GET"), (b"HTTP/1.1 304 X", "GET")):
            for field in (b"content-length: 3", b"transfer-encoding: chunked", b"x: y"):
                self.assertTrue(answered(line, field, method=method).framing.done)
        self.assertTrue(answered(b"HTTP/1.1 103 Early Hints", b"link: x").framing.done)

    def test_whether_the_connection_goes_on(self) -> None:
        length = b"content-length: 3"
        self.assertFalse(answered(b"HTTP/1.1 200 OK", length).last)
        self.assertTrue(answered(b"HTTP/1.1 200 OK", length, b"Connection: close").last)
        self.assertTrue(answered(b"HTTP/1.0 200 OK", length).last)
        self.assertTrue(answered(b"HTTP/1.1 200 OK").last)

    def test_what_is_refused(self) -> None:
        heads = (
            (b"HTTP/1.1 99 X",),
            (b"HTTP/1.1 600 X",),
            (b"HTTP/2 200 OK",),
            (b"HTTP/1.1  200 OK",),
            (b"200 OK",),
            (b"HTTP/1.1 200 OK", b"content-length: 3", b"transfer-encoding: chunked"),
            (b"HTTP/1.1 200 OK", b"content-length: 3", b"content-length: 3"),
            (b"HTTP/1.1 200 OK", b"content-length: three"),
            (b"HTTP/1.1 200 OK", b"transfer-encoding: gzip, chunked"),
            (b"HTTP/1.1 200 OK", b"x: a", b" folded"),
        )
        self.assertEqual([lines for lines in heads if not refuses(answered, *lines)], [])


NAMES = st.sampled_from([b"content-length", b"Transfer-Encoding", b"x", b"connection", b"Host", b"expect", b"x y", b""])
VALUES = st.sampled_from(
    [b"5", b"0", b"chunked", b"close", b" a ", b"", b"+5", b"\t5", b"5,5", b"gzip, chunked", b"a\x00"]
)
SEPARATORS = st.sampled_from([b": ", b":", b" : ", b":\t", b": \r\n ", b""])
ENDS = st.sampled_from([b"\r\n"] * 12 + [b"\n", b"\r", b"\r\n\r\n"])
LINES = st.tuples(NAMES, SEPARATORS, VALUES, ENDS).map(b"".join)
FIRST = st.sampled_from([LINE, b"GET / HTTP/1.1", b"HEAD /a?b HTTP/1.1", b"POST / HTTP/1.0", b"POST  / HTTP/1.1"])


class DifferentialTests(SynchronousTestCase):
    """Whoever else reads a head that we take, reads the same."""

    @given(FIRST, st.lists(LINES, max_size=5))
    def test_requests(self, line: bytes, lines: list[bytes]) -> None:
        head = (line + b"\r\n" + HOST + b"\r\n" + b"".join(lines)).removesuffix(b"\r\n")
        assume(b"\r\n\r\n" not in head)
        try:
            ours = read_request(head)
        except ProtocolViolation:
            return
        server = h11.Connection(h11.SERVER)
        server.receive_data(head + b"\r\n\r\n")
        theirs = server.next_event()
        assert isinstance(theirs, h11.Request)
        self.assertEqual((theirs.method, theirs.target), (ours.head.method.encode(), ours.head.target.encode()))
        named = [(name.decode(), value.decode("latin-1")) for name, value in theirs.headers]
        self.assertEqual(named, list(ours.head.headers))
        kind, arguments = h11._connection._body_framing(theirs.method, theirs)
        self.assertEqual(
            (kind, arguments), ("chunked", ()) if ours.length is None else ("content-length", (ours.length,))
        )

    @given(st.sampled_from([b"HTTP/1.1 200 OK", b"HTTP/1.0 404 No", b"HTTP/1.1 204"]), st.lists(LINES, max_size=5))
    def test_responses(self, line: bytes, lines: list[bytes]) -> None:
        head = (line + b"\r\n" + b"".join(lines)).removesuffix(b"\r\n")
        assume(b"\r\n\r\n" not in head)
        try:
            ours = read_response(head, "POST")
        except ProtocolViolation:
            return
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method="POST", target="/", headers=[("host", "a"), ("content-length", "0")]))
        client.send(h11.EndOfMessage())
        client.receive_data(head + b"\r\n\r\n")
        theirs = client.next_event()
        assert isinstance(theirs, h11.Response)
        self.assertEqual(theirs.status_code, ours.status)
        kind, arguments = h11._connection._body_framing(b"POST", theirs)
        expected: dict[type, tuple[str, tuple[int, ...]]] = {
            Chunked: ("chunked", ()),
            UntilClose: ("http/1.0", ()),
            Counted: ("content-length", (getattr(ours.framing, "left", 0),)),
        }
        self.assertEqual((kind, arguments), expected[type(ours.framing)])
