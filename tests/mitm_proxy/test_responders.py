"""Hosts that are answered here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.errors import Unavailable
from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from tests.mitm_proxy.open_hosts import OpenBase, get
from tests.mitm_proxy.support import Bench
from tests.mitm_proxy.test_plain_http import absolute
from tests.mitm_proxy.waiting import until

PLACE = "packages.example"


class StubResponder:
    """Answers with these pieces; an exception among them is raised."""

    def __init__(self, *pieces: Any, length: int | None = None, status: int = 200) -> None:
        self.pieces, self.length, self.status = pieces, length, status
        self.heads: list[RequestHead] = []
        self.sent = self.closed = 0
        self.answer: Any = None

    async def respond(self, head: RequestHead) -> LocalResponse | RequestRefusal:
        self.heads.append(head)
        if self.answer is not None:
            given: RequestRefusal = await self.answer if isinstance(self.answer, Deferred) else self.answer
            return given
        headers = (("content-type", "text/x"), ("etag", "own"))
        return LocalResponse(self.status, "Fine", headers, self.length, self._body())

    async def _body(self) -> AsyncIterator[bytes]:
        try:
            for piece in self.pieces:
                if isinstance(piece, Exception):
                    raise piece
                self.sent += len(piece)
                yield piece
        finally:
            self.closed += 1


class ResponderTests(OpenBase):
    """On real sockets."""

    async def start(self, responder: StubResponder) -> Bench:
        """:returns: a bench at which this responder answers."""
        return await self.open_bench(responders={(PLACE, 443): responder, (PLACE, 80): responder})

    async def test_request_is_answered_without_asking_the_judge(self) -> None:
        for length in (5, None):
            responder = StubResponder(b"one", b"", b"tw", length=length)
            bench = await self.start(responder)
            client = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
            for _ in range(2):
                client.send(get(PLACE, "/@s%2fn?q"))
                status, headers, body = await client.response()
                self.assertEqual((status, headers["etag"], body), (200, "own", b"onetw"))
            self.assertEqual((responder.heads[0].path, responder.heads[0].query), ("/@s%2fn", "q"))
            self.assertEqual((bench.judge.asked, responder.closed), ([], 2))

    async def test_plain_requests_are_answered_too(self) -> None:
        bench = await self.start(StubResponder(b"deb"))
        client = await bench.client()
        client.send(absolute(PLACE) + absolute(PLACE))
        await until(lambda: client.got.count(b"3\r\ndeb\r\n0\r\n\r\n") == 2, "two responses")

    async def test_nothing_is_answered_once_the_session_must_not_go_on(self) -> None:
        responder = StubResponder(b"deb")
        bench = await self.start(responder)
        kept = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
        kept.send(get(PLACE))
        self.assertEqual((await kept.response())[0], 200)
        bench.why = "the budget is used up"
        new, plain = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE), await bench.client()
        for client, data in ((kept, get(PLACE)), (new, get(PLACE)), (plain, absolute(PLACE))):
            client.send(data)
            status, _, body = await client.response()
            self.assertEqual((status, body), (403, b"IronCurtain: the budget is used up\n"))
        self.assertEqual(len(responder.heads), 1)

    async def test_refusal_is_worded_for_the_client(self) -> None:
        responder = StubResponder()
        responder.answer = RequestRefusal(404, "not-here", "this is not opened")
        bench = await self.start(responder)
        client = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
        client.send(get(PLACE, "/audit", "Accept: application/json", method="POST", body=b"names"))
        status, _, body = await client.response()
        self.assertEqual((status, body[:35]), (404, b'{"error":"IronCurtain: this is not '))
        client.send(get(PLACE))
        self.assertEqual((await client.response())[0], 404)

    async def test_response_to_head_has_no_body(self) -> None:
        responder = StubResponder(b"12345", length=5)
        bench = await self.start(responder)
        client = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
        client.send(get(PLACE, method="HEAD") + get(PLACE, "/y"))
        await until(lambda: client.got.endswith(b"12345"), "the second response")
        self.assertEqual(client.got.count(b"HTTP/1.1 200 Fine"), 2)
        self.assertEqual(client.got.count(b"12345"), 1)

    async def test_body_that_fails_breaks_the_response_off(self) -> None:
        for length, pieces in ((None, (b"one", ValueError("x"))), (9, (b"one", ValueError("x"))), (9, (b"one",))):
            bench = await self.start(StubResponder(*pieces, length=length))
            client = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
            client.send(get(PLACE))
            await client.closed()
            self.assertIn(b"one", client.got)
            self.assertFalse(client.got.endswith(b"0\r\n\r\n"))
            self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    async def test_failure_before_the_response_is_told(self) -> None:
        responder = StubResponder()
        bench = await self.start(responder)
        client = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
        for error, words in (
            (ValueError("inside"), b"see the log"),
            (Unavailable("no such mirror"), b"no such mirror"),
        ):
            responder.answer = Deferred()
            client.send(get(PLACE))
            await until(lambda: responder.heads, "the request")
            responder.heads.clear()
            responder.answer.errback(error)
            status, _, body = await client.response()
            self.assertEqual(status, 502)
            self.assertIn(words, body)
            self.assertNotIn(b"inside", body)
        self.flushLoggedErrors(ValueError, Unavailable)

    async def test_client_that_does_not_read_stops_the_body(self) -> None:
        responder = StubResponder(*[bytes(100_000)] * 200, length=20_000_000)
        bench = await self.start(responder)
        client = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
        client.plain.transport.pauseProducing()
        client.send(get(PLACE))
        await until(lambda: responder.sent, "the beginning")
        await bench.still(lambda: responder.sent)
        self.assertLess(responder.sent, 5_000_000)
        client.plain.transport.resumeProducing()
        self.assertEqual(len((await client.response())[2]), 20_000_000)

    async def test_client_that_goes_away_ends_the_work(self) -> None:
        responder = StubResponder(*[bytes(100_000)] * 200)
        bench = await self.start(responder)
        client = await bench.tunnel(authority=f"{PLACE}:443", name=PLACE)
        client.plain.transport.pauseProducing()
        client.send(get(PLACE))
        await until(lambda: responder.sent, "the beginning")
        await bench.still(lambda: responder.sent)
        client.close()
        await until(lambda: responder.closed == 1, "the end of the body")
