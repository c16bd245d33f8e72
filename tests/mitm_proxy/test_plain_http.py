"""Requests for ``http`` URLs, which agents send to the proxy without TLS."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.mitm_proxy.forwarding import read_absolute
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.open_hosts import DENIED, OpenBase, port_of
from tests.mitm_proxy.refusing import refuses
from tests.mitm_proxy.waiting import until


def absolute(host: str, path: str = "/x", *more: str, method: str = "GET", named: str = "") -> bytes:
    """:returns: a request as proxies get it."""
    lines = [f"{method} http://{host}{path} HTTP/1.1", f"Host: {named or host}", *more, "", ""]
    return "\r\n".join(lines).encode()


class PlainTests(OpenBase):
    """On real sockets."""

    async def test_allowed_request_is_judged_and_sent_without_the_host_in_its_target(self) -> None:
        bench, origin = await self.open_bench(), await self.plain_origin()
        client, host = await bench.client(), f"localhost:{port_of(origin)}"
        client.send(absolute(host, "/x?q=1", "Proxy-Connection: keep-alive"))
        self.assertEqual((await client.response())[2], b"{}")
        self.assertEqual(bytes(origin.got), f"GET /x?q=1 HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        self.assertEqual(bench.judge.asked, [("connect", "localhost", port_of(origin)), ("GET", f"http://{host}/x")])

    async def test_pipelined_requests_are_answered_in_order(self) -> None:
        bench, origin = await self.open_bench(), await self.plain_origin()
        origin.answer = lambda connection: connection.send(reply(bytes(connection.got)[-60:].split()[0] + b"!"))
        client, host = await bench.client(), f"localhost:{port_of(origin)}"
        client.send(b"".join(absolute(host, f"/{number}") for number in range(20)))
        await until(lambda: client.got.count(b"HTTP/1.1 200") == 20, "the responses")
        self.assertEqual([asked[1][-2:] for asked in bench.judge.asked[1:10]], [f"/{n}" for n in range(9)])
        self.assertEqual(len(origin.connections), 1)

    async def test_one_connection_can_ask_for_different_hosts_each_judged(self) -> None:
        bench, one, two = await self.open_bench(), await self.plain_origin(), await self.plain_origin()
        client = await bench.client()
        for origin in (one, two, one):
            client.send(absolute(f"localhost:{port_of(origin)}"))
            self.assertEqual((await client.response())[0], 200)
        self.assertEqual([asked[0] for asked in bench.judge.asked], ["connect", "GET"] * 3)

    async def test_refused_request_is_answered_and_nothing_is_dialled(self) -> None:
        bench, origin = await self.open_bench(), await self.plain_origin()
        bench.judge.answers["connect"] = DENIED
        client, host = await bench.client(), f"localhost:{port_of(origin)}"
        client.send(absolute(host) + absolute(host))
        await until(lambda: client.got.count(b"IronCurtain: localhost is not open: ask the user\n") == 2, "refusals")
        self.assertTrue(client.got.startswith(b"HTTP/1.1 403 IronCurtain: localhost is not open: ask the user\r\n"))
        self.assertEqual(origin.connections, [])

    async def test_requests_that_name_different_hosts_or_ask_for_tunnels_are_refused(self) -> None:
        bench, origin = await self.open_bench(), await self.plain_origin()
        host = f"localhost:{port_of(origin)}"
        for data, status in (
            (absolute(host, named="evil.example"), 403),
            (absolute("169.254.169.254@" + host), 400),
            (absolute("2130706433"), 400),
            (absolute("localhost.", named="localhost."), 400),
            (absolute(host, "/x", "Connection: Upgrade", "Upgrade: websocket"), 403),
            (absolute(host).replace(b"http://", b"https://"), 400),
            (absolute(host).replace(b"http://", b"ftp://"), 400),
            (absolute(host).replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
            (absolute(host, "/a/../b"), 400),
        ):
            client = await bench.client()
            client.send(data)
            self.assertEqual((await client.response())[0], status, data)
        client = await bench.client()
        client.send(absolute(host) + f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        self.assertEqual((await client.response())[0], 200)
        self.assertEqual((await client.response())[0], 400)
        self.assertEqual(len(origin.connections), 1)

    async def test_private_addresses_are_not_dialled_unless_they_are_named(self) -> None:
        bench, origin = await self.open_bench(), await self.plain_origin()
        bench.judge.private = False
        client = await bench.client()
        client.send(absolute(f"localhost:{port_of(origin)}"))
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(origin.connections, [])


class ReadTests(SynchronousTestCase):
    """What is read of the first line."""

    def test_host_port_and_path(self) -> None:
        for target, expected in (
            ("http://a.example/x?y", ("a.example", 80, "/x?y")),
            ("HTTP://A.Example:8080", ("a.example", 8080, "/")),
            ("http://[2001:db8::1]?q", ("2001:db8::1", 80, "/?q")),
        ):
            found: Any = read_absolute(f"GET {target} HTTP/1.1\r\nHost: a".encode())
            host, port, head = found
            line = f"GET {expected[2]} HTTP/1.1\r\nHost: a".encode()
            self.assertEqual((host.name, port, head), (*expected[:2], line))

    def test_hosts_that_programs_read_differently(self) -> None:
        for authority in (
            "a@b",
            "a:b@c",
            "0x7f.1",
            "127.1",
            "a..b",
            "a.",
            "a:0",
            "a:99999",
            "a\\b",
            "[::1",
            "%61",
            "xn--a",
        ):
            self.assertTrue(refuses(read_absolute, f"GET http://{authority}/ HTTP/1.1".encode()), authority)

    @given(st.binary(max_size=80))
    def test_anything_is_read_or_refused(self, rest: bytes) -> None:
        try:
            found = read_absolute(b"GET http://" + rest)
        except ProtocolViolation:
            return
        if found is not None:
            host, port, head = found
            self.assertTrue(host.name and 0 < port < 65536 and head.startswith(b"GET /"))
