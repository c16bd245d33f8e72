"""Providers that cannot be reached, are not who they should be, or do not answer as they should."""

from __future__ import annotations

import json
from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.sections import Provider
from ironcurtain.mitm_proxy.recording import ProviderNotice, Troubles
from ironcurtain.providers.rules import provider_rules
from tests.mitm_proxy.client import Client
from tests.mitm_proxy.messages import HOST, reply
from tests.mitm_proxy.origin import Origin
from tests.mitm_proxy.support import REAL_KEY, Base, Bench
from tests.mitm_proxy.waiting import the_reactor, until
from tests.network.names import Names


async def refusal(client: Client, status: int = 502) -> str:
    """:returns: why there is no answer."""
    got, _, body = await client.response()
    assert got == status, (got, body)
    return str(json.loads(body)["error"]["message"])


class AddressTests(Base):
    """Whom a name is taken for."""

    async def resolving(self, *addresses: str) -> tuple[Bench, Names]:
        """:returns: a bench whose provider has these addresses, and is no gateway."""
        bench, names = Bench(), Names(*addresses)
        self.addCleanup(bench.stopped)
        bench.resolver = names
        await bench.origin.start("localhost")
        await bench.start_proxy(provider_rules({}, ["anthropic"]))
        dialled: list[tuple[str, int]] = []
        bench.reactor.connectTCP = lambda host, port, *more, **options: dialled.append((host, port))
        bench.dialled = dialled
        return bench, names

    async def test_addresses_inside_are_not_dialled(self) -> None:
        bench, names = await self.resolving("127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "::ffff:127.0.0.1")
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("not on the public internet", await refusal(client))
        self.assertEqual(bench.dialled, [])
        self.assertIn(HOST, names.asked)

    async def test_only_the_others_are_dialled(self) -> None:
        bench, _ = await self.resolving("127.0.0.1", "203.0.113.1", "1.1.1.1", "10.0.0.1")
        await bench.tunnel()
        await until(lambda: bench.dialled)
        self.assertEqual(bench.dialled, [("1.1.1.1", 443)])

    async def test_every_connection_is_looked_up_anew(self) -> None:
        bench, names = await self.resolving("1.1.1.1")
        await bench.tunnel()
        await until(lambda: bench.dialled)
        names.addresses = ("127.0.0.1",)
        client = await bench.tunnel()
        client.send(bench.request() + bench.request())
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("127.0.0.1", await refusal(client))
        self.assertEqual(bench.dialled, [("1.1.1.1", 443)])
        self.assertGreater(len(names.asked), 1)

    async def test_a_name_without_address(self) -> None:
        bench, _ = await self.resolving()
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("cannot be found", await refusal(client))


class ConnectionTests(Base):
    """Connections that fail."""

    async def test_nobody_listens(self) -> None:
        bench = await self.bench(base_url="https://localhost:1")
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("localhost cannot be reached", await refusal(client))
        (answered,) = bench.records("model-response")
        self.assertEqual(answered["status"], 0)

    async def test_a_certificate_for_another_name(self) -> None:
        bench = await self.bench(names="other.example")
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("it is for another name", await refusal(client))
        self.assertEqual(bench.origin.got, b"")

    async def test_a_certificate_from_nobody(self) -> None:
        bench = await self.bench(ca_file="")
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("an authority that this system does not know", await refusal(client))
        self.assertEqual(bench.origin.got, b"")

    async def test_a_gateway_by_its_address(self) -> None:
        bench = Bench(names="127.0.0.1")
        self.addCleanup(bench.stopped)
        port = await bench.origin.start("127.0.0.1")
        (bench.top / "origin.pem").write_bytes(bench.origin.authority.pem)
        table = Provider(base_url=f"https://127.0.0.1:{port}/gate", ca_file=str(bench.top / "origin.pem"))
        await bench.start_proxy(provider_rules({"anthropic": table}, ["anthropic"]))
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertEqual((await client.response())[0], 200)
        self.assertTrue(bench.origin.got.startswith(b"POST /gate/v1/messages HTTP/1.1\r\nhost: 127.0.0.1:"))

    async def test_it_closes_without_an_answer(self) -> None:
        """The request is not sent again: it may have been heard."""
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.abort()
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("closed the connection before its answer was whole", await refusal(client))
        self.assertEqual(bytes(bench.origin.got).count(b"POST"), 1)

    async def test_it_closed_before_the_request(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        for _ in range(3):
            client.send(bench.request())
            self.assertEqual((await client.response())[0], 200)
            bench.origin.connections[-1].abort()
            await until(lambda: not bench.pool()._idle, "the end of the idle connection")
        self.assertEqual(len(bench.origin.connections), 3)

    async def test_silence(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request())
        await until(lambda: b"messages" in bench.origin.got, "the request")
        bench.later(1)  # what happens at the start counts as a sign of life
        await until(lambda: not bench.active())
        bench.later(bench.limits.silence_seconds)
        self.assertIn("did not answer in time", await refusal(client, 504))
        await until(lambda: bench.origin.connections[0].lost)

    async def test_an_answer_without_end(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(b"HTTP/1.1 200 OK\r\n\r\ndata: ")
        client = await bench.tunnel()
        client.send(bench.request())
        await until(lambda: b"data: " in client.got)
        bench.later(bench.limits.answer_seconds)
        await client.closed()
        self.assertFalse(client.got.endswith(b"0\r\n\r\n"))

    async def test_a_connection_that_is_not_used(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request())
        await client.response()
        bench.later(bench.limits.provider_idle_seconds)
        await until(lambda: bench.origin.connections[0].lost, "the end of the idle connection")


class AnswerTests(Base):
    """Answers that cannot be passed on, or not wholly."""

    async def test_what_is_no_answer(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        for data in (b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 101 X\r\n\r\n", reply(b"x", "200 OK", "content-encoding: br")):
            bench.origin.answer = lambda origin, data=data: origin.send(data)  # type: ignore[misc]
            client.send(bench.request())
            self.assertIn("could not be understood", await refusal(client))
        self.assertEqual(len(bench.origin.connections), 3, "none is used again")

    async def test_half_an_answer_does_not_look_whole(self) -> None:
        bench = await self.bench()

        def half(origin: Origin) -> None:
            origin.send(answers[len(bench.origin.connections) - 1])
            origin.close()

        bench.origin.answer = half
        chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"
        answers = (reply(b"half of it")[:-3], chunked)
        for _ in answers:
            client = await bench.tunnel()
            client.send(bench.request())
            await client.closed()
            self.assertIn(b"half", client.got)
            self.assertFalse(client.got.endswith(b"0\r\n\r\n"))
            self.assertNotEqual(bench.records("model-response")[-1].get("error"), None)

    async def test_more_than_an_answer(self) -> None:
        bench = await self.bench()
        planted = reply(b"planted")
        bench.origin.answer = lambda origin: origin.send(reply(b"true") + planted)
        client = await bench.tunnel()
        for number in (1, 2):
            client.send(bench.request())
            self.assertEqual((await client.response())[2], b"true")
            await until(lambda number=number: bench.origin.connections[number - 1].lost)  # type: ignore[misc]
        bench.origin.answer = lambda origin: origin.send(reply(b"true"))
        client.send(bench.request())
        await client.response()
        bench.origin.connections[-1].send(planted)
        await until(lambda: bench.origin.connections[-1].lost, "the end of a connection that spoke unasked")
        client.send(bench.request())
        self.assertEqual((await client.response())[2], b"true")

    async def test_an_answer_before_the_request_is_whole(self) -> None:
        bench = await self.bench(endpoints=("POST /v1/upload",))
        bench.origin.answer = lambda origin: origin.send(reply(b"no", "413 Too Large")) if origin.lost is None else None
        client = await bench.tunnel()
        client.send(bench.upload(bytes(1000))[:-1])
        self.assertEqual((await client.response())[0], 413)
        await client.closed()

    async def test_the_key_repeated_in_an_answer(self) -> None:
        bench = await self.bench()
        event = f"data: {json.dumps({'key': REAL_KEY})}\n\n".encode()
        stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-key: %b\r\n\r\n" % REAL_KEY.encode()

        def answer(origin: Origin) -> None:
            origin.send(stream + event[:30])
            the_reactor.callLater(0.05, origin.send, event[30:])
            the_reactor.callLater(0.1, origin.close)

        bench.origin.answer = answer
        client = await bench.tunnel()
        client.send(bench.request())
        _, headers, body = await client.response()
        self.assertNotIn(REAL_KEY[20:], f"{headers}{body.decode()}")
        self.assertEqual(len(body), len(event))
        self.assertNotIn(REAL_KEY, bench.audit.path.read_text())


def answering(status: str, origin: Origin) -> None:
    """Answer with this status."""
    origin.send(reply(status=status))


class TroubleTests(Base):
    """Agents say nothing for minutes while they try again: the proxy does at once."""

    def told(self, bench: Bench) -> list[str]:
        """:returns: what the person was told."""
        return [event.text for event in bench.events if isinstance(event, ProviderNotice)]

    async def test_each_status_is_told_once_until_a_request_is_answered(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        for status in ("401 x", "401 x", "529 x", "400 x", "401 x", "200 OK", "401 x"):
            bench.origin.answer = partial(answering, status)
            client.send(bench.request())
            self.assertEqual((await client.response())[0], int(status[:3]))
        refused = "localhost refuses the API key from the settings (401): put a valid one there, and start again"
        fails = "localhost fails (HTTP 529): it is overloaded or broken; the agent may try again"
        self.assertEqual(self.told(bench), [refused, fails, refused])

    async def test_a_provider_out_of_reach_is_told_once(self) -> None:
        bench = await self.bench(base_url="https://localhost:1")
        client = await bench.tunnel()
        for _ in range(2):
            client.send(bench.request())
            await refusal(client)
        self.assertEqual(self.told(bench), ["localhost cannot be reached: nothing listens there"])

    async def test_an_agent_that_goes_is_no_fault_of_the_provider(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request())
        await until(lambda: bench.origin.got)
        client.close()
        await until(lambda: bench.records("model-response"))
        self.assertEqual(self.told(bench), [])


class WordsTests(SynchronousTestCase):
    def test_what_to_do(self) -> None:
        payer, advice = "the API key from the environment variable KEY", "put a valid one there"
        troubles = Troubles("api.example.com", payer, advice)
        for status, words in (
            (401, "refuses the API key from the environment variable KEY (401): put a valid one there"),
            (403, "variable KEY does not"),
        ):
            self.assertIn(words, troubles.after(status, ""))
        self.assertIn("a limit of the account", troubles.after(429, ""))
        for status in (0, 200, 301, 400, 404, 413):
            self.assertEqual(troubles.after(status, ""), "")
