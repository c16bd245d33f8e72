"""Requests to hosts that belong to no provider, on real sockets."""

from __future__ import annotations

import socket

from ironcurtain.mitm_proxy.authority import VISITED_LIMIT
from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.tunnel import AHEAD_LIMIT
from tests.mitm_proxy.client import Client
from tests.mitm_proxy.messages import HOST, reply
from tests.mitm_proxy.open_hosts import DENIED, OpenBase, get, port_of
from tests.mitm_proxy.support import Bench
from tests.mitm_proxy.waiting import until


async def inside(bench: Bench) -> tuple[Client, str]:
    """:returns: a client in a tunnel to the origin, and the host with its port."""
    host = f"localhost:{port_of(bench.origin)}"
    return await bench.tunnel(authority=host, name="localhost"), host


class JudgedTests(OpenBase):
    """What policy decides."""

    async def test_allowed_request_reaches_the_host_without_hop_by_hop_headers(self) -> None:
        bench = await self.open_bench()
        client, host = await inside(bench)
        more = ("Authorization: Bearer own", "Proxy-Authorization: secret", "Connection: x-mine", "X-Mine: 1", "TE: x")
        client.send(get(host, "/x?q=1", *more))
        self.assertEqual((await client.response())[2], b"{}")
        lines = bench.origin.got.decode().split("\r\n")
        self.assertEqual(lines, ["GET /x?q=1 HTTP/1.1", f"host: {host}", "authorization: Bearer own", "", ""])
        self.assertEqual(
            bench.judge.asked, [("connect", "localhost", port_of(bench.origin)), ("GET", f"https://{host}/x")]
        )

    async def test_connection_is_judged_once_and_each_request_by_itself(self) -> None:
        bench = await self.open_bench()
        client, host = await inside(bench)
        for path in ("/1", "/2"):
            client.send(get(host, path))
            self.assertEqual((await client.response())[0], 200)
        self.assertEqual([asked[0] for asked in bench.judge.asked], ["connect", "GET", "GET"])
        self.assertEqual(len(bench.origin.connections), 1)

    async def test_refused_connection_is_neither_resolved_nor_made_and_answered_inside_tls(self) -> None:
        bench = await self.open_bench()
        bench.judge.answers["connect"] = DENIED
        resolved: list[str] = []
        bench.proxy._dialer._resolver = type("Resolver", (), {"resolveHostName": lambda s, r, h: resolved.append(h)})()
        client, host = await inside(bench)
        client.send(get(host))
        status, headers, body = await client.response()
        self.assertEqual((status, headers["content-type"]), (403, "text/plain; charset=utf-8"))
        self.assertEqual(body, b"IronCurtain: localhost is not open: ask the user\n")
        self.assertEqual((resolved, bench.origin.connections), ([], []))

    async def test_request_can_be_refused_on_a_connection_that_is_allowed(self) -> None:
        bench = await self.open_bench()
        bench.judge.answers["request"] = DENIED
        client, host = await inside(bench)
        client.send(get(host, "/x", method="POST", body=b"secret"))
        self.assertEqual((await client.response())[0], 403)
        del bench.judge.answers["request"]
        client.send(get(host))
        self.assertEqual((await client.response())[0], 200)
        self.assertNotIn(b"secret", bench.origin.got)

    async def test_client_waits_for_a_person_longer_than_the_limits_of_requests(self) -> None:
        bench = await self.open_bench()
        question = bench.judge.ask("connect")
        client, host = await inside(bench)
        client.send(get(host, method="POST", body=b"the body"))
        await until(lambda: bench.judge.asked, "the question")
        bench.later(bench.limits.idle_seconds + bench.limits.body_seconds)
        del bench.judge.answers["connect"]
        question.callback(None)
        self.assertEqual((await client.response())[0], 200)
        self.assertTrue(bench.origin.got.endswith(b"the body"))

    async def test_question_is_withdrawn_if_the_client_goes_away(self) -> None:
        bench = await self.open_bench()
        bench.judge.ask("connect")
        client, host = await inside(bench)
        client.send(get(host))
        await until(lambda: bench.judge.asked, "the question")
        client.close()
        await until(lambda: bench.judge.withdrawn == 1, "the withdrawal")
        self.assertEqual(bench.origin.connections, [])

    async def test_question_is_withdrawn_if_the_client_goes_away_with_much_ahead(self) -> None:
        bench = await self.open_bench()
        bench.judge.ask("connect")
        client, host = await inside(bench)
        client.send(get(host, "/x", "Content-Length: 9000000", method="PUT") + bytes(AHEAD_LIMIT + 1000))
        await until(lambda: bench.judge.asked, "the question")
        client.close()
        await until(lambda: bench.judge.withdrawn == 1, "the withdrawal")
        self.assertEqual(bench.origin.connections, [])

    async def test_judge_that_fails_refuses(self) -> None:
        bench = await self.open_bench()
        question = bench.judge.ask("connect")
        client, host = await inside(bench)
        client.send(get(host))
        await until(lambda: bench.judge.asked, "the question")
        question.errback(ValueError("broken"))
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertEqual(bench.origin.connections, [])

    async def test_upload_and_download_are_streamed(self) -> None:
        bench = await self.open_bench()
        bench.origin.answer = lambda origin: None
        client, host = await inside(bench)
        size = 3_000_000
        client.send(get(host, "/x", f"Content-Length: {size}", method="PUT") + bytes(1_000_000))
        await until(lambda: len(bench.origin.got) > 1_000_000, "the first part")
        client.send(bytes(size - 1_000_000))
        await until(lambda: len(bench.origin.got) > size, "the rest")
        (origin,) = bench.origin.connections
        origin.send(b"HTTP/1.1 200 Anything\r\nset-cookie: a=b\r\ncontent-encoding: gzip\r\nalt-svc: h3\r\n\r\npart")
        await until(lambda: b"part" in client.got, "the first part of the response")
        self.assertIn(b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-encoding: gzip\r\ntransfer-", bytes(client.got))

    async def test_certificates_for_hosts_that_agents_choose_are_evicted(self) -> None:
        bench = await self.open_bench()
        for number in range(VISITED_LIMIT + 3):
            bench.authority.visited_leaf(f"host{number}.example")
        self.assertEqual(len(bench.authority._visited), VISITED_LIMIT)
        self.assertNotIn("host2.example", bench.authority._visited)


class AttackTests(OpenBase):
    """What a hostile agent tries."""

    async def test_layers_that_name_different_hosts(self) -> None:
        bench = await self.open_bench()
        port = port_of(bench.origin)
        for name, host in (
            ("other.example", f"localhost:{port}"),
            ("", f"localhost:{port}"),
            ("localhost", "other.example"),
            ("localhost", f"localhost:{port + 1}"),
            ("localhost", f"localhost.:{port}"),
            ("localhost", HOST),
        ):
            client = await bench.tunnel(authority=f"localhost:{port}", name=name)
            client.send(get(host))
            self.assertEqual((await client.response())[0], 403, (name, host))
            record = bench.records("model-request")[-1]
            self.assertEqual((record["rule"], record["serverName"]), ("host-mismatch", name))
        self.assertEqual((bench.judge.asked, bench.origin.connections), ([], []))

    async def test_addresses_are_judged_as_such_and_private_ones_are_not_dialled(self) -> None:
        bench = await self.open_bench()
        bench.judge.private = False
        port = port_of(bench.origin)
        for address in (f"127.0.0.1:{port}", f"[::1]:{port}", "169.254.169.254:80", f"localhost:{port}"):
            client = await bench.tunnel(authority=address, name="localhost" if address[0] == "l" else "")
            client.send(get(address))
            status, _, body = await client.response()
            self.assertEqual(status, 403, address)
            self.assertIn(b"not on the public internet", body)
        self.assertEqual(bench.origin.connections, [])
        self.assertEqual(bench.judge.asked[0], ("connect", "127.0.0.1", port))

    async def test_other_ports_are_judged_with_their_port(self) -> None:
        bench = await self.open_bench()
        bench.judge.answers["connect"] = DENIED
        for port in (22, 8080, 8443):
            client = await bench.tunnel(authority=f"{HOST}:{port}", name=HOST)
            client.send(get(f"{HOST}:{port}"))
            self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.judge.asked, [("connect", HOST, port) for port in (22, 8080, 8443)])

    async def test_upgrades_and_second_connects_are_refused(self) -> None:
        bench = await self.open_bench()
        for data, status in (
            (("/x", "Connection: Upgrade", "Upgrade: websocket"), 403),
            (("/x", "X-HTTP-Method-Override: DELETE"), 400),
            (("/a/../b",), 400),
            (("/a/%2e%2E/b",), 400),
            (("/a%2f..%2fb",), 400),
            (("/a/.",), 400),
        ):
            client, host = await inside(bench)
            client.send(get(host, *data))
            self.assertEqual((await client.response())[0], status, data)
        for raw in (
            b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET https://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"GET /x HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
            b"GET /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ):
            client, host = await inside(bench)
            client.send(raw)
            self.assertEqual((await client.response())[0], 400, raw)
            await client.closed()
        self.assertEqual((bench.judge.asked, bench.origin.connections), ([], []))

    async def test_host_that_switches_protocols_is_cut_off(self) -> None:
        bench = await self.open_bench()
        bench.origin.answer = lambda origin: origin.send(b"HTTP/1.1 101 Switching Protocols\r\n\r\nraw")
        client, host = await inside(bench)
        client.send(get(host, "/x", "Connection: Upgrade", "Upgrade: h2c"))
        self.assertEqual((await client.response())[0], 502)
        self.assertNotIn(b"pgrade", bench.origin.got)

    async def test_refusal_of_the_host_cannot_be_taken_for_one_of_ours(self) -> None:
        bench = await self.open_bench()
        bench.origin.answer = lambda origin: origin.send(reply(b"no", "403 IronCurtain: forbidden"))
        client, host = await inside(bench)
        client.send(get(host))
        await until(lambda: b"no" in client.got, "the response")
        self.assertTrue(client.got.startswith(b"HTTP/1.1 403 Forbidden\r\n"))

    async def test_fake_key_goes_to_no_other_host(self) -> None:
        bench = await self.open_bench()
        client, host = await inside(bench)
        client.send(get(host, "/x", f"X-Api-Key: {bench.key}"))
        self.assertEqual((await client.response())[0], 403)
        client.send(get(host, f"/x?key={bench.key}"))
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.origin.got, b"")
        self.assertEqual({record["rule"] for record in bench.records("model-request")}, {"session-key"})

    async def test_certificate_of_the_host_must_be_valid_for_it(self) -> None:
        bench = await self.open_bench()
        listening = socket.socket()
        self.addCleanup(listening.close)
        address = f"127.0.0.1:{port_of(bench.origin)}"  # its certificate is for localhost
        client = await bench.tunnel(authority=address, name="")
        client.send(get(address))
        self.assertEqual((await client.response())[0], 502)
        self.assertEqual(bench.origin.got, b"")

    async def test_query_strings_and_headers_of_connect_are_not_recorded(self) -> None:
        bench = await self.open_bench()
        port = port_of(bench.origin)
        client = await bench.client()
        client.send(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\nAuthorization: CANARY\r\n\r\n".encode())
        self.assertEqual((await client.response())[0], 403)
        client, host = await inside(bench)
        client.send(get("other.example", "/x?CANARY=1", "X-Canary: CANARY"))
        await client.response()
        client.send(get(host, "/x?CANARY=1"))
        await client.response()
        self.assertNotIn("CANARY", bench.audit.path.read_text())
        self.assertNotIn("CANARY", str(bench.judge.asked))

    async def test_body_that_comes_while_a_person_is_asked_is_bounded(self) -> None:
        bench = await self.open_bench(MitmLimits())
        bench.judge.ask("connect")
        client, host = await inside(bench)
        client.send(get(host, "/x", "Content-Length: 50000000", method="PUT") + bytes(50_000_000))
        await until(lambda: bench.judge.asked, "the question")
        await bench.still(client.unsent)
        (tunnel,) = bench.tunnels()
        self.assertLess(len(tunnel._ahead), 1_000_000)
