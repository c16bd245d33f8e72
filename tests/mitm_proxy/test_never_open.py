"""What policy cannot open."""

from __future__ import annotations

from tests.mitm_proxy.open_hosts import OpenBase, get, port_of
from tests.mitm_proxy.test_plain_http import absolute

HOST = "api.anthropic.com"


class NeverOpenTests(OpenBase):
    """On real sockets, with a judge that allows everything."""

    async def test_hosts_of_providers_are_reached_as_providers_only(self) -> None:
        bench = await self.open_bench(undecrypted=["*.anthropic.com"])
        for authority in (HOST, f"{HOST}:80", f"{HOST}:443", "API.Anthropic.com:443"):
            client = await bench.client()
            client.send(absolute(authority, "/v1/files", "X-Api-Key: of-somebody-else"))
            status, _, body = await client.response()
            self.assertEqual((status, body[:56]), (403, b"IronCurtain: api.anthropic.com is reached for models onl"))
        client = await bench.client()
        client.send(f"CONNECT {HOST}:80 HTTP/1.1\r\nHost: {HOST}:80\r\n\r\n".encode())
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.judge.asked, [])
        rules = {(record["host"], record["rule"]) for record in bench.records("model-request")}
        self.assertEqual(rules, {(HOST, "provider-host")})

    async def test_hosts_of_providers_are_not_reached_in_tunnels_to_other_ports_of_the_web(self) -> None:
        bench = await self.open_bench()
        client = await bench.tunnel(authority=f"{HOST}:80", name=HOST)
        client.send(get(HOST, "/v1/files") + get(f"{HOST}:80", "/v1/files"))
        for _ in range(2):
            self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.judge.asked, [])

    async def test_methods_that_open_tunnels_or_send_back_requests_are_refused(self) -> None:
        bench, origin = await self.open_bench(), await self.plain_origin()
        host, plain = f"localhost:{bench.port}", f"localhost:{port_of(origin)}"
        client = await bench.tunnel(authority=host, name="localhost")
        client.send(get(host, "/evil.example:443", method="CONNECT") + get(host, "/", method="TRACE"))
        other = await bench.client()
        other.send(absolute(plain, "/", method="TRACE"))
        for each in (client, client, other):
            self.assertEqual((await each.response())[0], 403)
        self.assertEqual((bench.judge.asked, bytes(bench.origin.got), bytes(origin.got)), ([], b"", b""))
