"""The proxy as a whole: its socket, its keys, and its end."""

from __future__ import annotations

import stat

from ironcurtain.accounts.source import TokenSource, api_key
from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.providers.rules import provider_rules
from ironcurtain.secrets.redaction import Secret
from tests.mitm_proxy.messages import HOST, reply
from tests.mitm_proxy.support import REAL_KEY, Base, Bench
from tests.mitm_proxy.waiting import sleep, until


class SocketTests(Base):
    """Where agents come in."""

    async def test_only_its_owner_may_use_the_socket(self) -> None:
        bench = await self.bench()
        self.assertEqual(stat.S_IMODE(bench.socket.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(bench.socket.parent.stat().st_mode), 0o700)

    async def test_a_socket_in_use_is_not_taken(self) -> None:
        bench = await self.bench()
        with self.assertRaises(Unavailable):
            await bench.proxy.listen(bench.socket)
        await bench.tunnel()

    async def test_its_end_ends_everything(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(b"HTTP/1.1 200 OK\r\n\r\ndata")
        idle, busy, other = await bench.tunnel(), await bench.tunnel(), await bench.client()
        busy.send(bench.request())
        await until(lambda: b"data" in busy.got)
        await bench.proxy.stop()
        for client in (idle, busy, other):
            await client.closed()
        await until(lambda: all(origin.lost for origin in bench.origin.connections), "the provider's connections")
        self.assertFalse(bench.socket.exists())
        self.assertEqual(bench.downs, [], "nobody needs to be told")

    async def test_a_socket_that_vanishes_is_reported(self) -> None:
        bench = await self.bench()
        bench.socket.unlink()
        await until(lambda: bench.downs, "the report")
        await sleep(0.6)
        self.assertEqual(len(bench.downs), 1)

    async def test_a_socket_that_is_replaced_is_reported(self) -> None:
        bench = await self.bench()
        bench.socket.rename(bench.socket.with_suffix(".old"))
        bench.socket.write_text("another file")
        await until(lambda: bench.downs, "the report")


class KeyTests(Base):
    """Fake keys and real ones."""

    async def test_each_session_has_fake_keys_of_its_own(self) -> None:
        one, two = await self.bench(), await self.bench()
        self.assertNotEqual(one.key, two.key)
        self.assertTrue(one.key.startswith("sk-ant-api03-"))

    async def test_only_the_keys_of_its_providers_are_fetched(self) -> None:
        bench = Bench()
        self.addCleanup(bench.stopped)
        await bench.origin.start("localhost")
        asked: list[str] = []

        def account(name: str) -> TokenSource:
            asked.append(name)
            return api_key(Secret(REAL_KEY))

        bench.account = account
        await bench.start_proxy(provider_rules({}, ["anthropic", "google"]))
        self.assertEqual(asked, ["anthropic", "google"])
        self.assertEqual(set(bench.proxy.fakes), {"anthropic", "google"})
        self.assertEqual(bench.redactor.text(f"<{REAL_KEY}>"), "<[redacted]>")

    async def test_a_key_that_is_missing_stops_the_start(self) -> None:
        bench = Bench()
        self.addCleanup(bench.stopped)
        await bench.origin.start("localhost")

        def account(name: str) -> TokenSource:
            raise ConfigurationError("config.toml", "no key")

        bench.account = account
        with self.assertRaises(ConfigurationError):
            await bench.start_proxy(provider_rules({}, ["anthropic"]))
        self.assertFalse(bench.socket.exists())

    async def test_a_budget_that_is_used_up_stops_the_next_request(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertEqual((await client.response())[0], 200)
        sent, bench.why = bytes(bench.origin.got), "the budget is used up"
        client.send(bench.request())
        status, _, body = await client.response()
        self.assertEqual((status, bench.origin.got), (403, sent))
        self.assertIn(b"the budget is used up", body)

    async def test_no_provider_at_all(self) -> None:
        bench = Bench()
        self.addCleanup(bench.stopped)
        await bench.origin.start("localhost")
        await bench.start_proxy([])
        client = await bench.tunnel()
        client.send(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        status, _, body = await client.response()
        self.assertEqual(status, 403)
        self.assertIn(b"nothing may be reached", body)

    async def test_a_connection_is_ready_before_the_first_request(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        await until(lambda: bench.pool()._idle, "a connection")
        client.send(bench.request())
        await client.response()
        self.assertEqual(len(bench.origin.connections), 1)
