"""Accounts of the person at hosts that belong to no provider: the agent's token is replaced for them only."""

from __future__ import annotations

import base64
import gzip
import os
import socket
from typing import Any

from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.github import API, github_accounts, github_variables
from ironcurtain.home.github_section import GitHub
from ironcurtain.home.sections import SecretSource
from ironcurtain.mitm_proxy.host_accounts import BODY_LIMIT, HostAccount
from ironcurtain.secrets.redaction import Secret
from tests.mitm_proxy.client import Client
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.open_hosts import DENIED, OpenBase, get, port_of
from tests.mitm_proxy.support import Bench, Shifted
from tests.mitm_proxy.waiting import the_reactor, until
from tests.network.names import Names
from tests.programs import program

REAL = "ghp_realCANARYrealCANARYrealCANARYreal12"
SETTINGS = GitHub(token=SecretSource(env="X"), repositories=("me/shop",))


def account() -> HostAccount:
    """:returns: the account at GitHub."""

    async def fetch() -> Secret:
        return Secret(REAL)

    return github_accounts(SETTINGS, os.urandom, fetch)[API]


class SwapTests(OpenBase):
    async def inside(self, own: HostAccount, *, elsewhere: bool = False) -> tuple[Bench, Client, str]:
        """
        :param elsewhere: whether the account is at another host.
        :returns: a bench, a client in a tunnel to a host, and that host.
        """
        bench = await self.open_bench(accounts=lambda port: {API if elsewhere else ("localhost", port): own})
        host = f"localhost:{port_of(bench.origin)}"
        return bench, await bench.tunnel(authority=host, name="localhost"), host

    async def test_token_is_replaced_and_the_judge_is_told(self) -> None:
        own = account()
        fake = own.fake.reveal()
        bench, client, host = await self.inside(own)
        for scheme, path, listed in (("token", "/repos/Me/shop/issues", True), ("Bearer", "/user/repos", False)):
            client.send(get(host, path, f"Authorization: {scheme} {fake}"))
            self.assertEqual((await client.response())[0], 200)
            self.assertEqual(bench.judge.asked[-1], ("GET", f"https://{host}{path}", "GitHub", listed))
        got = bench.origin.got.decode()
        self.assertIn(f"authorization: token {REAL}\r\n", got)
        self.assertIn(f"authorization: Bearer {REAL}\r\n", got)
        self.assertNotIn(fake, got)

    async def test_the_judge_is_told_the_query_too(self) -> None:
        own = account()
        bench, client, host = await self.inside(own)
        bench.judge.answers["request"] = DENIED
        target = "/search/code?q=password+repo:me/secret"
        client.send(get(host, target, f"Authorization: token {own.fake.reveal()}"))
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.judge.asked[-1], ("GET", f"https://{host}{target}", "GitHub", False))

    async def test_refused_request_reaches_nobody(self) -> None:
        own = account()
        fake = own.fake.reveal()
        bench, client, host = await self.inside(own)
        bench.judge.answers["request"] = DENIED
        client.send(get(host, "/repos/me/shop", f"Authorization: token {fake}", method="DELETE"))
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.judge.asked[-1][2:], ("GitHub", False))
        self.assertEqual(bench.origin.got, b"")

    async def test_the_judge_is_told_what_the_body_says_and_the_same_is_sent(self) -> None:
        own = account()
        bench, client, host = await self.inside(own)
        body = b'{"title":  "Fix\\u0020it", "labels": ["bug"]}'
        posted = get(
            host, "/repos/me/shop/issues", f"Authorization: token {own.fake.reveal()}", method="POST", body=body
        )
        client.send(posted)
        self.assertEqual((await client.response())[0], 200)
        said = {"title": "Fix it", "labels": ["bug"]}
        self.assertEqual(bench.judge.asked[-1][2:], ("GitHub", False, said))
        self.assertTrue(bench.origin.got.endswith(body))
        bench.judge.answers["request"] = DENIED
        client.send(posted)
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.origin.got.count(body), 1)

    async def test_body_waits_for_the_person_and_later_requests_for_both(self) -> None:
        own = account()
        bench, client, host = await self.inside(own)
        answer = bench.judge.ask("request")
        token, chunked = f"Authorization: token {own.fake.reveal()}", "Transfer-Encoding: chunked"
        client.send(get(host, "/repos/me/shop/issues", token, chunked, method="POST"))
        client.send(b'7\r\n{"a": 1\r\n1\r\n}\r\n0\r\n\r\n' + get(host, "/next"))
        await until(lambda: [each[2:] for each in bench.judge.asked[1:]] == [("GitHub", False, {"a": 1})])
        self.assertEqual(bench.origin.got, b"")
        del bench.judge.answers["request"]
        answer.callback(None)
        self.assertEqual([(await client.response())[0] for _ in range(2)], [200, 200])
        self.assertIn(b"content-length: 8\r\n\r\n" + b'{"a": 1}', bench.origin.got)

    async def test_bodies_that_nobody_can_be_shown_are_refused(self) -> None:
        own = account()
        token = f"Authorization: token {own.fake.reveal()}"
        for status, body, more in (
            (400, b'{"title": "a", "title": "b"}', ()),
            (400, b'{"n": 1e999}', ()),
            (400, b'{"t": "\\ud800"}', ()),
            (400, b"title=a", ()),
            (415, b"{}", ("Content-Encoding: gzip",)),
            (413, b" " * (BODY_LIMIT + 1), ()),
        ):
            bench, client, host = await self.inside(own)
            client.send(get(host, "/repos/me/shop/issues", token, *more, method="POST", body=body))
            self.assertEqual((await client.response())[0], status, body[:40])
            self.assertEqual((bench.origin.got, len(bench.judge.asked)), (b"", 1))
            client.close()

    async def test_requests_without_the_token_get_none(self) -> None:
        bench, client, host = await self.inside(account())
        client.send(get(host, "/x", "Authorization: token other"))
        self.assertEqual((await client.response())[0], 200)
        self.assertEqual(bench.judge.asked[-1], ("GET", f"https://{host}/x"))
        self.assertNotIn(REAL, bench.origin.got.decode())

    async def test_token_elsewhere_is_refused(self) -> None:
        for head in (
            "X-Copy: {}",
            "Cookie: {}",
            "Authorization: token {}\r\nX-Copy: {}",
            "Authorization: token {0}{0}",
        ):
            own = account()
            fake = own.fake.reveal()
            bench, client, host = await self.inside(own)
            client.send(get(host, "/x", head.format(fake, fake)))
            self.assertEqual((await client.response())[0], 403, head)
            self.assertEqual(bench.origin.got, b"")
            client.close()

    async def test_other_hosts_do_not_get_the_token(self) -> None:
        own = account()
        bench, client, host = await self.inside(own, elsewhere=True)
        client.send(get(host, "/x", f"Authorization: token {own.fake.reveal()}"))
        self.assertEqual((await client.response())[0], 403)
        self.assertEqual(bench.origin.got, b"")


class EchoTests(OpenBase):
    """A host that repeats what it got."""

    async def answered(self, *more: str, answer: bytes, parts: int = 0) -> tuple[int, dict[str, str], bytes, Bench]:
        """
        :param answer: of the host.
        :param parts: size in bytes of the parts in which it comes; zero: whole.
        :returns: what an agent gets; the real token is in it nowhere.
        """
        own = account()
        bench = await self.open_bench(accounts=lambda port: {("localhost", port): own})
        host = f"localhost:{port_of(bench.origin)}"
        client = await bench.tunnel(authority=host, name="localhost")

        def send(origin: Any) -> None:
            for at in range(0, len(answer), parts or len(answer)):
                origin.send(answer[at : at + (parts or len(answer))])

        bench.origin.answer = send
        client.send(get(host, "/headers", f"Authorization: token {own.fake.reveal()}", *more))
        status, fields, body = await client.response()
        self.assertIn(f"token {REAL}", bench.origin.got.decode())
        for form in (REAL, base64.b64encode(f"me:{REAL}".encode()).decode()[4:-4], REAL.encode().hex()):
            self.assertNotIn(form, f"{status} {fields} {body!r}")
        return status, fields, body, bench

    async def test_token_is_overwritten_in_head_and_body(self) -> None:
        encoded = base64.b64encode(f"me:{REAL}".encode()).decode()
        said = f'{{"Authorization": "token {REAL}", "Basic": "{encoded}", "hex": "{REAL.encode().hex()}"}}'.encode()
        head = f"Location: https://elsewhere.example/?t={REAL}\r\nX-Got: token {REAL}\r\nSet-Cookie: t={REAL}\r\n"
        for status in ("200 OK", "302 Found", "500 Oops"):
            sent = f"HTTP/1.1 {status}\r\n{head}Content-Length: {len(said)}\r\n\r\n".encode() + said
            got, fields, body, _ = await self.answered(answer=sent)
            self.assertEqual((got, len(body)), (int(status[:3]), len(said)))
            self.assertEqual(fields["x-got"], "token " + "*" * len(REAL))

    async def test_token_is_overwritten_in_chunks_of_any_size(self) -> None:
        data = f"data: {REAL}\n\n".encode()
        for size in (1, 7):
            chunks = b"".join(b"1\r\n%b\r\n" % data[at : at + 1] for at in range(len(data)))
            sent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
            _, _, body, _ = await self.answered(answer=sent, parts=size)
            self.assertEqual(body, f"data: {'*' * len(REAL)}\n\n".encode())

    async def test_no_answer_is_compressed_or_partial(self) -> None:
        packed = gzip.compress(f"token {REAL}".encode())
        sent = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
        asked = ("Accept-Encoding: gzip", "Range: bytes=5-20", 'If-Range: "x"')
        status, _, body, bench = await self.answered(*asked, answer=sent)
        self.assertEqual(status, 502)
        self.assertNotIn(packed, body)
        self.assertNotRegex(bench.origin.got.decode().lower(), "accept-encoding|range:")


class ReadingTests(SynchronousTestCase):
    def test_only_reading_of_listed_repositories_needs_no_question(self) -> None:
        reads = account().reads
        for path in ("/repos/me/shop", "/repos/ME/Shop/pulls/7/files", "/repos/me/shop/"):
            self.assertTrue(reads("GET", path), path)
        for method, path in (
            ("POST", "/repos/me/shop/issues"),
            ("GET", "/repos/me/shopping"),
            ("GET", "/repos/me/secret"),
            ("GET", "/repos/me/shop/secret-scanning/alerts"),
            ("GET", "/repos/me/shop/compare/main...other:branch"),
            ("GET", "/repos/me/shop/%2e%2e/secret"),
            ("GET", "/repos/me/shop//x"),
            ("GET", "/user/repos"),
            ("POST", "/graphql"),
        ):
            self.assertFalse(reads(method, path), path)

    def test_fake_token_has_the_shape_of_real_ones(self) -> None:
        token = account().fake.reveal()
        self.assertRegex(token, r"\Aghp_[A-Za-z0-9]{36}\Z")
        self.assertNotEqual(token, account().fake.reveal())
        self.assertEqual(
            github_variables({API: account()}).keys(), {"GH_TOKEN", "GH_PROMPT_DISABLED", "GH_NO_UPDATE_NOTIFIER"}
        )
        self.assertEqual(github_variables({}), {})


class Redirecting(Shifted):
    """
    The reactor, with the origin in the place of every host's port for https.

    :ivar port: the origin's.
    """

    port = 0

    def connectTCP(self, host: str, port: int, *more: Any, **named: Any) -> Any:
        """Connect."""
        return the_reactor.connectTCP(host, self.port if port == 443 else port, *more, **named)


class RealProgramTests(OpenBase):
    async def test_gh_of_an_agent_works_with_a_token_that_is_worth_nothing(self) -> None:
        gh, own, redirecting = program("gh"), account(), Redirecting()
        bench = await self.open_bench(
            names="api.github.com", accounts=lambda _: {API: own}, reactor=redirecting, resolver=Names("127.0.0.1")
        )
        redirecting.port = bench.port
        bench.origin.answer = lambda origin: origin.send(reply(b'{"full_name": "me/shop"}'))
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        await bench.proxy.accept(listening)
        (bench.top / "agents.pem").write_bytes(bench.authority.certificate_pem)
        environ = {
            **{"PATH": os.environ["PATH"], "HOME": str(bench.top), "HTTPS_PROXY": f"http://127.0.0.1:{port}"},
            **{"SSL_CERT_FILE": str(bench.top / "agents.pem"), **github_variables({API: own})},
        }
        out, err, status = await getProcessOutputAndValue(gh, ["api", "repos/me/shop", "--jq", ".full_name"], environ)
        self.assertEqual((status, out), (0, b"me/shop\n"), err)
        self.assertEqual(bench.judge.asked[-1], ("GET", "https://api.github.com/repos/me/shop", "GitHub", True))
        self.assertIn(f"authorization: token {REAL}", bench.origin.got.decode())
        words = ["api", "graphql", "-f", "query=query($n: Int!) { a }", "-F", "n=1", "--jq", ".full_name"]
        self.assertEqual((await getProcessOutputAndValue(gh, words, environ))[::2], (b"me/shop\n", 0))
        said = {"query": "query($n: Int!) { a }", "variables": {"n": 1}}
        self.assertEqual(bench.judge.asked[-1][2:], ("GitHub", False, said))
        bench.judge.answers["request"] = DENIED
        out, err, status = await getProcessOutputAndValue(gh, ["api", "-X", "DELETE", "repos/me/shop"], environ)
        self.assertEqual(status, 1)
        self.assertIn(b"403", err)
        self.assertEqual(bench.judge.asked[-1], ("DELETE", "https://api.github.com/repos/me/shop", "GitHub", False))
