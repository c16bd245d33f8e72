"""What goes through a tunnel, on real sockets."""

from __future__ import annotations

import json
from typing import Any

from ironcurtain.llm.model import TokenUsage
from ironcurtain.mitm_proxy.recording import ProxiedRequest, ProxiedResponse
from tests.mitm_proxy.messages import HOST, MESSAGES, reply
from tests.mitm_proxy.origin import Origin
from tests.mitm_proxy.support import REAL_KEY, Base
from tests.mitm_proxy.waiting import until

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """:returns: one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class PassTests(Base):
    """Requests that are allowed."""

    async def test_the_real_key_takes_the_place_of_the_fake_one(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply(b'{"id": 1}'))
        client = await bench.tunnel()
        client.send(bench.request())
        status, _, body = await client.response()
        self.assertEqual((status, body), (200, b'{"id": 1}'))
        self.assertIn(f"x-api-key: {REAL_KEY}".encode(), bench.origin.got)
        self.assertNotIn(bench.key.encode(), bench.origin.got)
        self.assertTrue(bench.origin.got.endswith(MESSAGES))

    async def test_many_requests_share_two_connections(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        for _ in range(5):
            client.send(bench.request())
            self.assertEqual((await client.response())[0], 200)
        self.assertEqual(len(bench.origin.connections), 1)

    async def test_another_tunnel_uses_the_same_connection_to_the_provider(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        for _ in range(3):
            client = await bench.tunnel()
            client.send(bench.request())
            await client.response()
            client.close()
        self.assertEqual(len(bench.origin.connections), 1)

    async def test_requests_one_behind_the_other(self) -> None:
        """They are answered in their order, each judged, the next one only after the answer to the last."""
        bench = await self.bench()
        bodies = [b'{"model": "m%d", "messages": []}' % number for number in range(4)]

        def answer(origin: Origin) -> None:
            if len(found := [body for body in bodies if body in origin.got]) > len(answered):
                answered.append(found[-1])
                origin.send(reply(found[-1]))

        answered: list[bytes] = []
        bench.origin.answer = answer
        client = await bench.tunnel()
        requests = [bench.request(body) for body in bodies]
        client.send(b"".join((*requests[:2], bench.request(path="/v1/files"), *requests[2:])))
        got = [await client.response() for _ in range(5)]
        self.assertEqual([status for status, _, _ in got], [200, 200, 403, 200, 200])
        self.assertEqual([body for status, _, body in got if status == 200], bodies)

    async def test_events_come_at_once(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(STREAM)
        client = await bench.tunnel()
        client.send(bench.request())
        await until(lambda: b"\r\n\r\n" in client.got, "the head")
        for number in range(3):
            event = chunk(b'data: {"number": %d}\n\n' % number)
            bench.origin.connections[0].send(event)
            await until(lambda event=event: client.got.endswith(event), "the event")  # type: ignore[misc]
        bench.origin.connections[0].send(b"0\r\n\r\n")
        await client.response()

    async def test_a_chunked_request_arrives_with_its_length(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply()) if origin.got.endswith(MESSAGES) else None
        client = await bench.tunnel()
        whole = bench.request(b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
        client.send(whole + chunk(MESSAGES[:9]) + chunk(MESSAGES[9:]) + b"0\r\n\r\n")
        self.assertEqual((await client.response())[0], 200)
        self.assertIn(b"\r\ncontent-length: %d\r\n" % len(MESSAGES), bench.origin.got)

    async def test_a_client_that_waits_for_leave_to_send(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request(MESSAGES, "expect: 100-continue").removesuffix(MESSAGES))
        self.assertEqual((await client.response())[0], 100)
        client.send(MESSAGES)
        self.assertEqual((await client.response())[0], 200)
        self.assertNotIn(b"expect", bench.origin.got)

    async def test_a_client_that_wants_to_close(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request(MESSAGES, "connection: close") + bench.request())
        self.assertEqual((await client.response())[1]["connection"], "close")
        await client.closed()
        self.assertEqual(len(bench.records("model-request")), 1)

    async def test_a_response_without_a_body(self) -> None:
        bench = await self.bench(endpoints=("GET /v1/models", "HEAD /v1/models"))
        bench.origin.answer = lambda origin: origin.send(reply(b"[]").removesuffix(b"[]"))
        client = await bench.tunnel()
        whole = bench.request(b"", method="HEAD", path="/v1/models")
        client.send(whole.replace(b"content-type: application/json\r\n", b"") + whole)
        for _ in range(2):
            await until(lambda: b"\r\n\r\n" in client.got, "the head")
            head, _, client.inner.got = client.got.partition(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 200"))
        self.assertNotIn(b"content-length", bench.origin.got)

    async def test_a_request_without_a_body_passes_whatever_its_content_type(self) -> None:
        bench = await self.bench(endpoints=("GET /v1/models", "POST /v1/messages"))
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        for method, path, body, status in (
            ("GET", "/v1/models", b"", 200),
            ("GET", "/v1/models", b"{x}", 400),
            ("POST", "/v1/messages", b"", 400),
        ):
            client.send(bench.request(body, method=method, path=path))
            self.assertEqual((await client.response())[0], status, method)


class RecordTests(Base):
    """What is recorded, and told."""

    async def test_a_request_and_its_answer(self) -> None:
        bench = await self.bench()
        body = b'{"model": "claude-x", "usage": {"input_tokens": 7, "output_tokens": 3}}'
        seen: list[int] = []

        def answer(origin: Origin) -> None:
            seen.append(len(bench.records("model-request")))
            origin.send(reply(body))

        bench.origin.answer = answer
        client = await bench.tunnel()
        client.send(bench.request())
        await client.response()
        await until(lambda: len(bench.events) == 2)
        self.assertEqual(seen, [1], "recorded before it is sent")
        (asked,), (answered,) = bench.records("model-request"), bench.records("model-response")
        wanted: dict[str, Any] = {
            "requestId": "request-1-1",
            "provider": "anthropic",
            "host": HOST,
            "method": "POST",
            "path": "/v1/messages",
            "decision": "allow",
            "rule": "POST /v1/messages",
        }
        self.assertEqual({name: asked[name] for name in wanted}, wanted)
        usage = {"input": 7, "output": 3, "cacheRead": 0, "cacheWrite": 0}
        wanted = {"requestId": "request-1-1", "status": 200, "size": len(body), "usage": usage, "model": "claude-x"}
        self.assertEqual({name: answered[name] for name in wanted}, wanted)
        first, last = bench.events
        assert isinstance(first, ProxiedRequest)
        assert isinstance(last, ProxiedResponse)
        self.assertEqual((first.decision, last.usage, last.estimated), ("allow", TokenUsage(7, 3), False))

    async def test_nothing_is_sent_that_cannot_be_recorded(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request())
        await client.response()
        sent = bench.origin.got
        await bench.audit.close()
        for whole in (bench.request(), bench.request(path="/v1/files")):
            client.send(whole)
            status, _, body = await client.response()
            self.assertEqual(status, 503)
            self.assertIn("audit log", json.loads(body)["error"]["message"])
        self.assertEqual(bench.origin.got, sent)

    async def test_an_agent_that_leaves_stops_the_provider(self) -> None:
        """And what was used until then is counted, though the provider did not come to say it."""
        bench = await self.bench()
        event = b'data: {"type": "content_block_delta", "delta": {"text": "word"}}\n\n'
        bench.origin.answer = lambda origin: origin.send(STREAM + chunk(event) * 200)
        client = await bench.tunnel()
        client.send(bench.request())
        await until(lambda: client.got.count(event) == 200, "the events")
        client.close()
        await until(lambda: bench.origin.connections[0].lost, "the end of the provider's connection")
        (answered,) = bench.records("model-response")
        self.assertEqual(answered["error"], "the agent closed its connection")
        self.assertGreater(answered["usage"]["output"], 200)
        self.assertTrue(answered["estimated"])


class BackPressureTests(Base):
    """Whoever reads slowly slows the other side down, and nothing piles up here."""

    SIZE = 16 * 1024 * 1024

    async def test_an_agent_that_does_not_read(self) -> None:
        bench = await self.bench()
        body = bytes(self.SIZE)
        bench.origin.answer = lambda origin: origin.send(reply(body))
        client = await bench.tunnel()
        client.plain.transport.pauseProducing()
        client.send(bench.request())
        await until(lambda: bench.origin.connections and b"messages" in bench.origin.got, "the request")
        await bench.still(lambda: bench.origin.connections[0].unsent)
        self.assertGreater(bench.origin.connections[0].unsent, self.SIZE // 2)
        client.plain.transport.resumeProducing()
        self.assertEqual((await client.response())[2], body)
        client.send(bench.request(b'{"model": "n", "messages": []}'))
        self.assertEqual(len((await client.response())[2]), self.SIZE)
        self.assertEqual(len(bench.origin.connections), 1)

    async def test_an_agent_that_does_not_wait_for_answers(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request() * (8 * 1024 * 1024 // len(bench.request())))
        await until(lambda: b"messages" in bench.origin.got, "the first request")
        await bench.still(client.unsent)
        self.assertGreater(client.unsent(), 4 * 1024 * 1024)
        bench.origin.answer = lambda origin: origin.send(reply())
        bench.origin.connections[0].send(reply())
        await until(lambda: client.got.count(b"HTTP/1.1 200") > 100, "more answers")

    async def test_an_agent_that_does_not_read_what_it_is_refused(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.plain.transport.pauseProducing()
        one = bench.request(MESSAGES, "x-padding: " + "y" * 4000, path="/v1/files")
        count = 8 * 1024 * 1024 // len(one)
        client.send(one * count)
        await until(lambda: bench.records("model-request"), "the first refusal")
        await bench.still(client.unsent)
        self.assertGreater(client.unsent(), 4 * 1024 * 1024)
        client.plain.transport.resumeProducing()
        await until(lambda: client.got.count(b"HTTP/1.1 403") == count, "all refusals")

    async def test_a_provider_that_does_not_read(self) -> None:
        bench = await self.bench(endpoints=("POST /v1/upload",))
        client = await bench.tunnel()

        def stop_reading(origin: Origin) -> None:
            if len(origin.got) < 100_000:
                origin.transport.pauseProducing()

        bench.origin.answer = stop_reading
        body = bytes(self.SIZE)
        client.send(bench.upload(body))
        await until(lambda: bench.origin.got, "the request")
        await bench.still(client.unsent)
        self.assertGreater(client.unsent(), self.SIZE // 2)
        origin = bench.origin.connections[0]
        bench.origin.answer = lambda origin: origin.send(reply()) if len(origin.got) >= self.SIZE + head else None
        head = bench.origin.got.index(b"\r\n\r\n") + 4
        origin.transport.resumeProducing()
        self.assertEqual((await client.response())[0], 200)
        self.assertEqual(bench.origin.got[head:], body)
