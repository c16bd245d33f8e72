"""What a hostile agent tries, on real sockets."""

from __future__ import annotations

import json

from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.tunnel import DRAIN_LIMIT
from tests.mitm_proxy.messages import HOST, MESSAGES, reply
from tests.mitm_proxy.support import Base, Bench
from tests.mitm_proxy.waiting import until

SMUGGLED = b"POST /v1/files HTTP/1.1\r\nHost: api.anthropic.com\r\ncontent-length: 0\r\n\r\n"


class DestinationTests(Base):
    """Where a tunnel may lead."""

    async def test_only_hosts_of_the_session(self) -> None:
        bench = await self.bench()
        for authority in (
            "evil.example:443",
            "api.openai.com:443",
            f"{HOST}:22",
            f"x.{HOST}:443",
            "localhost:443",
            "127.0.0.1:443",
            "[::1]:443",
            "169.254.169.254:443",
        ):
            host = authority.rpartition(":")[0]
            client = await bench.tunnel(authority=authority, name=host.strip("[]") if host[-1].isalpha() else "")
            client.send(f"GET /x?y=z HTTP/1.1\r\nHost: {authority}\r\nAccept: application/json\r\n\r\n".encode())
            status, headers, body = await client.response()
            self.assertEqual((status, headers["content-type"]), (403, "application/json"), authority)
            self.assertEqual(json.loads(body)["error"], f"IronCurtain: only {HOST}:443 may be reached")
        self.assertEqual(bench.origin.connections, [])
        self.assertEqual(set(bench.authority._leaves), {HOST})
        records = bench.records("model-request")
        self.assertEqual({(record["rule"], record["path"]) for record in records}, {("host-not-allowed", "/x")})

    async def test_hosts_that_programs_read_differently_are_refused_at_connect(self) -> None:
        bench = await self.bench()
        for authority in (
            f"{HOST}.:443",
            "2130706433:443",
            "0x7f.1:443",
            "127.1:443",
            "[::ffff:127.0.0.1]:443",
            "[64:ff9b::7f00:1]:443",
            "[fe80::1%eth0]:443",
            "xn--a:443",
        ):
            client = await bench.client()
            client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
            status, _, body = await client.response()
            self.assertEqual(status, 403, authority)
            self.assertIn(b"IronCurtain: the host is unclear", body)
            await client.closed()
        self.assertEqual({record["rule"] for record in bench.records("model-request")}, {"unclear-host"})

    async def test_requests_of_a_plain_proxy(self) -> None:
        bench = await self.bench()
        for line, expected in ((f"GET http://{HOST}/v1/models HTTP/1.1", 403), ("POST /v1/messages HTTP/1.1", 400)):
            client = await bench.client()
            client.send(f"{line}\r\nHost: {HOST}\r\nx-api-key: {bench.key}\r\n\r\n".encode())
            self.assertEqual((await client.response())[0], expected)
        self.assertEqual(bench.origin.connections, [])

    async def test_what_is_no_connect_request(self) -> None:
        bench = await self.bench()
        for line in (
            b"CONNECT evil.test\0.api.anthropic.com:443",
            b"CONNECT api.anthropic.com@evil.test:443",
            b"\x16\x03",
        ):
            client = await bench.client()
            client.send(line + b" HTTP/1.1\r\n\r\n")
            self.assertEqual((await client.response())[0], 400)
            await client.closed()
        self.assertEqual(bench.origin.connections, [])

    async def test_layers_that_name_different_hosts(self) -> None:
        bench = await self.bench()
        for name, host in (("other.example", HOST), ("", HOST), (HOST, "other.example"), (HOST, f"{HOST}:80")):
            client = await bench.tunnel(name=name)
            client.send(bench.request(host=host))
            self.assertEqual((await client.response())[0], 403)
            record = bench.records("model-request")[-1]
            self.assertEqual((record["serverName"], record["hostHeader"]), (name, host))
            self.assertEqual((record["host"], record["rule"]), (HOST, "host-mismatch"))
        client = await bench.client()
        client.send(f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n".encode())
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.records("model-request")[-1]["hostHeader"], "other.example:443")
        self.assertEqual(bench.origin.got, b"")


class SmugglingTests(Base):
    """Requests that could be taken for two, and bodies that could be taken for requests."""

    async def refused(self, bench: Bench, data: bytes, status: int = 400) -> None:
        """Send bytes in a new tunnel: there is one answer, then the connection ends."""
        before = len(bench.records("model-request"))
        client = await bench.tunnel()
        client.send(data + SMUGGLED)
        got, headers, _ = await client.response()
        self.assertEqual((got, headers["connection"]), (status, "close"), data)
        await client.closed()
        self.assertEqual(client.got, b"", data)
        self.assertEqual(len(bench.records("model-request")), before + 1, data)
        self.assertEqual(bench.origin.got, b"", data)

    async def test_lengths(self) -> None:
        bench = await self.bench()
        right = b"content-length: %d" % len(MESSAGES)
        for wrong in (
            right + b"\r\ntransfer-encoding: chunked",
            b"transfer-encoding: chunked\r\n" + right,
            right + b"\r\n" + right,
            b"content-length: +5",
            b"content-length: 0x5",
            b"content-length: 5,5",
            b"content-length: -1",
            b"transfer-encoding: chunked, identity",
            b"transfer-encoding: xchunked",
            b"transfer-encoding:\tchunked",
            right + b"\r\nTransfer-Encoding : chunked",
            right + b"\r\n transfer-encoding: chunked",
            right + b"\ntransfer-encoding: chunked",
        ):
            await self.refused(bench, bench.request().replace(right, wrong))

    async def test_heads(self) -> None:
        bench = await self.bench()
        for wrong in (
            bench.request(method="post"),
            bench.request(path=f"https://{HOST}/v1/messages"),
            bench.request(path="*", method="OPTIONS"),
            bench.request(path=f"{HOST}:443", method="CONNECT"),
            bench.request().replace(b"HTTP/1.1", b"HTTP/1.0", 1),
            bench.request(MESSAGES, "x\0y: z"),
            bench.request(MESSAGES, f"Host: {HOST}"),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n",
            b"a" * 100_000,
        ):
            await self.refused(bench, wrong)

    async def test_chunks(self) -> None:
        bench = await self.bench()
        head = bench.request(b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
        for body in (
            b"5\nhello\r\n",
            b"5;x\r\nhello\r\n",
            b"0\r\nx: y\r\n\r\n",
            b"0x5\r\nhello\r\n",
            b"2\r\nhello\r\n",
        ):
            await self.refused(bench, head + body)

    async def test_a_body_that_was_not_asked_for(self) -> None:
        """A client that waits for leave, and is refused, may send its body or the next request: nobody can tell."""
        bench = await self.bench()
        body = SMUGGLED * 3
        denied = bench.request(body, "expect: 100-continue", path="/v1/files").removesuffix(body)
        await self.refused(bench, denied, 403)

    async def test_the_body_of_a_refused_request_is_no_request(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        body = bench.request() * 3
        whole = bench.request(body, path="/v1/files")
        client.send(whole[:-100])
        self.assertEqual((await client.response())[0], 403)
        client.send(whole[-100:] + bench.request())
        self.assertEqual((await client.response())[0], 200)
        self.assertEqual([record["decision"] for record in bench.records("model-request")], ["deny", "allow"])

    async def test_a_large_body_of_a_refused_request_ends_the_connection(self) -> None:
        bench = await self.bench()
        await self.refused(bench, bench.request(bytes(DRAIN_LIMIT + 100_000), path="/v1/files"), 403)

    async def test_a_second_connect(self) -> None:
        bench = await self.bench()
        await self.refused(bench, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n")


class RequestTests(Base):
    """Requests that are understood, and refused."""

    async def test_they_are_answered_and_the_tunnel_goes_on(self) -> None:
        bench = await self.bench()
        other = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        for status, whole in (
            (403, bench.request(path="/v1/files")),
            (403, bench.request(path="/v1/organizations/x/api_keys", method="GET")),
            (403, bench.request(method="PUT")),
            (403, bench.request(host="other.example")),
            (403, other.request()),
            (403, bench.request(MESSAGES, "authorization: Bearer sk-ant-other")),
            (400, bench.request(MESSAGES, f"x-api-key: {bench.key}")),
            (426, bench.request(MESSAGES, "connection: upgrade", "upgrade: websocket")),
            (426, bench.request(MESSAGES, "connection: Upgrade, HTTP2-Settings", "upgrade: h2c")),
            (400, bench.request(b'{"model": "x", "model": "y"}')),
            (403, bench.request(b'{"mcp_servers": [{"url": "https://evil.example"}], "messages": []}')),
        ):
            client.send(whole)
            got, headers, body = await client.response()
            self.assertEqual((got, headers["content-type"]), (status, "application/json"), whole)
            self.assertEqual(json.loads(body)["type"], "error", "in the provider's own shape")
        self.assertEqual(bench.origin.got, b"")
        client.send(bench.request())
        self.assertEqual((await client.response())[0], 200)
        self.assertEqual(len(bench.records("model-response")), 1)

    async def test_a_refused_request_for_a_head_has_no_body(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request(b"", method="HEAD", path="/v1/files") + bench.request(path="/v1/files"))
        await until(lambda: client.got.count(b"HTTP/1.1 403") == 2, "two answers")
        self.assertTrue(client.got.split(b"\r\n\r\n")[1].startswith(b"HTTP/1.1 403"))

    async def test_half_a_body_is_not_sent(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request()[:-1])
        await until(lambda: bench.buffered() == len(MESSAGES) - 1, "the body")
        client.close()
        await until(lambda: bench.buffered() == 0, "the end of the connection")
        self.assertEqual((bench.origin.got, bench.records("model-request")), (b"", []))

    async def test_bodies_that_are_too_large(self) -> None:
        bench = await self.bench(MitmLimits(buffered_bytes=100_000))
        client = await bench.tunnel()
        client.send(bench.request(b"").replace(b"content-length: 0", b"content-length: 33554433"))
        self.assertEqual((await client.response())[0], 413)
        await client.closed()
        waiting = await bench.tunnel()
        waiting.send(bench.request(b"{" + b" " * 60_000)[:-1])
        await until(lambda: bench.buffered() == 60_000, "the first body")
        client = await bench.tunnel()
        client.send(bench.request(b"{" + b" " * 60_000))
        self.assertEqual((await client.response())[0], 503)
        self.assertEqual(bench.buffered(), 60_000)


class SlowTests(Base):
    """Whoever keeps us waiting."""

    async def test_a_connect_request(self) -> None:
        bench = await self.bench()
        client = await bench.client()
        client.send(b"CONNECT ")
        await until(lambda: bench.connections() == 1)
        bench.later(bench.limits.head_seconds)
        self.assertEqual((await client.response())[0], 408)
        await client.closed()

    async def test_a_handshake(self) -> None:
        bench = await self.bench()
        client = await bench.client()
        client.send(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
        await until(lambda: b"200" in client.got)
        bench.later(bench.limits.head_seconds)
        await client.closed()

    async def test_a_head(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request()[:50])
        await until(lambda: bench.begun() == 50, "the beginning")
        bench.later(bench.limits.head_seconds / 2)
        client.send(bench.request()[50:60])
        await until(lambda: bench.begun() == 60, "a little more")
        bench.later(bench.limits.head_seconds / 2)
        self.assertEqual((await client.response())[0], 408)
        await client.closed()

    async def test_a_body(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request()[:-1])
        await until(lambda: bench.buffered() == len(MESSAGES) - 1, "the body")
        bench.later(bench.limits.body_seconds)
        self.assertEqual((await client.response())[0], 408)
        await client.closed()
        self.assertEqual(bench.origin.got, b"")

    async def test_a_tunnel_that_is_not_used(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        bench.later(bench.limits.idle_seconds)
        await client.closed()
        self.assertEqual(client.got, b"")

    async def test_a_client_that_does_not_close(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request(method="post"))
        client.plain.transport.pauseProducing()
        await until(lambda: len(bench.records("model-request")) == 1)
        bench.later(bench.limits.linger_seconds)
        await until(lambda: bench.connections() == 0, "the end of the connection")
        client.plain.transport.resumeProducing()
