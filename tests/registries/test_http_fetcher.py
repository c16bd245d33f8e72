from __future__ import annotations

import base64
import json
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.network.dialling import Dialer
from ironcurtain.registries.fetching import FetchFailed, FileStream, Unusable
from ironcurtain.registries.http_fetcher import Credential, HttpFetcher
from ironcurtain.secrets.redaction import Secret
from tests.http.direct import DIRECT
from tests.network.names import Names
from tests.registries.stub import LyingRegistry, gzipped, response

MIB = 1024 * 1024


class FetcherTestCase(TestCase):
    """Fetches from a registry on this machine; names resolve to what a test says."""

    def setUp(self) -> None:
        self.registry, self.names = LyingRegistry(), Names("10.0.0.1")
        self.addCleanup(lambda: Deferred.fromCoroutine(self.registry.stop()))
        self.fetcher = HttpFetcher(reactor, Dialer(reactor, self.names, DIRECT), self.registry.url)  # type: ignore[arg-type]
        self.addCleanup(lambda: Deferred.fromCoroutine(self.fetcher.close()))

    async def document(self, path: str, **options: Any) -> bytes:
        return (await self.fetcher.document(self.registry.url + path, "application/json", **options)).body

    async def why(self, path: str, kind: type[FetchFailed] = Unusable, **options: Any) -> str:
        """:returns: why a document cannot be had."""
        try:
            await self.document(path, **options)
        except FetchFailed as e:
            self.assertIs(type(e), kind)
            return str(e)
        raise AssertionError("it was fetched")


class DocumentTests(FetcherTestCase):
    async def test_documents_are_inflated(self) -> None:
        self.registry.answers |= {"/a": gzipped(b"x" * MIB), "/b": response(b"plain")}
        self.assertEqual(await self.document("/a"), b"x" * MIB)
        self.assertEqual(await self.document("/b"), b"plain")
        self.assertEqual(len(self.registry.connections), 1)

    async def test_no_condition_range_or_cookie_is_sent(self) -> None:
        self.registry.answers["/a"] = response(b"x", 'ETag: "1"', "Set-Cookie: a=b")
        await self.document("/a")
        await self.document("/a")
        names = {line.partition(":")[0].lower() for line in self.registry.heads[1].splitlines()[1:]}
        self.assertEqual(names, {"host", "accept", "accept-encoding", "user-agent", "connection"} & names)

    async def test_a_gzip_bomb_is_given_up_at_the_limit(self) -> None:
        self.registry.answers["/a"] = gzipped(b"\0" * (64 * MIB))
        self.assertEqual(await self.why("/a", limit=MIB), "127.0.0.1 sends a document of more than 1 MB")

    async def test_an_endless_document_is_given_up_at_the_limit(self) -> None:
        self.registry.answers["/a"] = b"HTTP/1.1 200 OK\r\n\r\n"
        self.registry.endless["/a"] = b"x" * 65536
        self.assertEqual(await self.why("/a", limit=MIB), "127.0.0.1 sends a document of more than 1 MB")
        await self.registry.connections[0].lost

    async def test_a_damaged_document_is_refused(self) -> None:
        whole = gzipped(b"x" * 1000).partition(b"\r\n\r\n")[2]
        for body, why in (
            (whole[:-4], "a document whose end is missing"),
            (whole + b"x", "more than a compressed document"),
            (b"no gzip", "a document that cannot be decompressed"),
        ):
            self.registry.answers["/a"] = response(body, "Content-Encoding: gzip")
            self.assertIn(why, await self.why("/a"))
        self.registry.answers["/a"] = response(b"x", "Content-Encoding: br")
        self.assertIn("in an encoding that was not asked for", await self.why("/a"))

    async def test_a_response_that_is_cut_off_is_no_document(self) -> None:
        self.registry.answers["/a"] = response(b"xx").replace(b"Length: 2", b"Length: 3")
        awaiting = Deferred.fromCoroutine(self.why("/a", FetchFailed))
        while not self.registry.heads:
            await _turn()
        self.registry.connections[0].transport.loseConnection()
        self.assertIn("closed the connection before its answer was whole", await awaiting)

    async def test_a_status_is_returned(self) -> None:
        self.registry.answers["/a"] = response(b"", status=304)
        found = await self.fetcher.document(self.registry.url + "/a", "")
        self.assertEqual((found.status, found.body), (304, b""))


class RedirectTests(FetcherTestCase):
    def redirect(self, path: str, to: str, status: int = 302) -> None:
        self.registry.answers[path] = response(b"gone", f"Location: {to}", status=status)

    async def test_redirects_are_followed(self) -> None:
        self.redirect("/a", "/b", 301)
        self.redirect("/b", f"{self.registry.url}/c", 307)
        self.registry.answers["/c"] = response(b"here")
        found = await self.fetcher.document(self.registry.url + "/a", "")
        self.assertEqual((found.body, found.url), (b"here", f"{self.registry.url}/c"))

    async def test_endless_redirects_are_given_up(self) -> None:
        self.redirect("/a", "/a")
        self.assertEqual(await self.why("/a"), "127.0.0.1 redirects more than 5 times")
        self.assertEqual(len(self.registry.heads), 6)

    async def test_private_addresses_are_refused(self) -> None:
        for to in ("https://internal.example/", "https://169.254.169.254/", "https://[::1]/", "https://127.0.0.1:1/"):
            self.redirect("/a", to)
            self.assertIn("is not on the public internet: nothing was sent", await self.why("/a"))

    async def test_unclear_addresses_and_such_without_tls_are_refused(self) -> None:
        for to, why in (
            ("http://public.example/", "without TLS"),
            ("http://127.0.0.1:1/", "without TLS"),
            ("file:///etc/passwd", "that is refused"),
            ("https://0x7f000001/", "that is refused"),
            ("https://public.example\\@evil.example/", "that is refused"),
            ("https://user@public.example/", "with a user name"),
        ):
            self.redirect("/a", to)
            self.assertIn(f"127.0.0.1 redirects to an address {why}", await self.why("/a"))
        self.assertEqual(self.names.asked, [])

    async def test_the_key_is_sent_to_the_origin_of_the_registry_only(self) -> None:
        other = LyingRegistry()
        self.addCleanup(lambda: Deferred.fromCoroutine(other.stop()))
        self.fetcher.credential = Credential("authorization", Secret("tok-1", "a test"))
        self.registry.answers["/a"] = response(b"x")
        await self.document("/a")
        self.assertIn("Authorization: Bearer tok-1", self.registry.heads[0])
        self.redirect("/a", other.url + "/a")
        await self.why("/a")
        self.assertEqual(other.heads, [])
        self.assertIsNotNone(self.fetcher.credential_for(self.registry.url))
        for origin in (self.registry.url.replace("http:", "https:"), "https://storage.example:443", other.url):
            self.assertIsNone(self.fetcher.credential_for(origin))

    async def test_a_password_is_sent_as_basic(self) -> None:
        self.fetcher.credential = Credential("authorization", Secret("ada:secret", "a test"))
        await self.fetcher.document(self.registry.url + "/a", "")
        encoded = base64.b64encode(b"ada:secret").decode()
        self.assertIn(f"Authorization: Basic {encoded}", self.registry.heads[0])

    async def test_hosts_that_are_named_may_be_private(self) -> None:
        dialer = Dialer(reactor, Names("127.0.0.1"), DIRECT)  # type: ignore[arg-type]
        fetcher = HttpFetcher(reactor, dialer, self.registry.url, private={"storage.example"})
        self.addCleanup(lambda: Deferred.fromCoroutine(fetcher.close()))
        port = self.registry.url.rpartition(":")[2]
        self.redirect("/a", f"https://storage.example:{port}/")
        with self.assertRaises(FetchFailed) as caught:
            await fetcher.document(self.registry.url + "/a", "")
        self.assertNotIn("not on the public internet", str(caught.exception))  # it is no TLS server
        self.assertIs(type(caught.exception), FetchFailed)


class FileTests(FetcherTestCase):
    async def file(self, path: str) -> FileStream:
        return await self.fetcher.file(self.registry.url + path)

    async def test_a_file_arrives_in_pieces(self) -> None:
        content = json.dumps(list(range(300_000))).encode()
        self.registry.answers["/a"] = response(content)
        stream = await self.file("/a")
        self.assertEqual((stream.status, stream.length), (200, len(content)))
        self.assertEqual(b"".join([piece async for piece in stream.body]), content)
        await stream.body.aclose()
        await self.document("/a")
        self.assertEqual(len(self.registry.connections), 1)

    async def test_a_server_waits_for_who_does_not_read(self) -> None:
        self.registry.answers["/a"] = b"HTTP/1.1 200 OK\r\n\r\n"
        self.registry.endless["/a"] = b"x" * 65536
        stream = await self.file("/a")
        for _ in range(200):
            await _turn()
        self.assertLess(len(await anext(stream.body)), MIB)
        await stream.body.aclose()
        await self.registry.connections[0].lost

    async def test_a_file_that_nobody_takes_is_given_up(self) -> None:
        self.registry.answers["/a"] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
        stream = await self.file("/a")
        await stream.body.aclose()
        await self.registry.connections[0].lost


def _turn() -> Deferred[None]:
    turned: Deferred[None] = Deferred()
    reactor.callLater(0, turned.callback, None)
    return turned
