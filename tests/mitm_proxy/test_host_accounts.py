"""Accounts of the person at hosts that belong to no provider: the agent's token is replaced for them only."""

from __future__ import annotations

import os
import socket
from typing import Any

from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.github import API, github_accounts, github_variables
from ironcurtain.home.github_section import GitHub
from ironcurtain.home.sections import SecretSource
from ironcurtain.mitm_proxy.host_accounts import HostAccount
from ironcurtain.secrets.redaction import Secret
from tests.mitm_proxy.client import Client
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.open_hosts import DENIED, OpenBase, get, port_of
from tests.mitm_proxy.support import Bench, Shifted
from tests.mitm_proxy.waiting import the_reactor
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
        bench.judge.answers["request"] = DENIED
        out, err, status = await getProcessOutputAndValue(gh, ["api", "-X", "DELETE", "repos/me/shop"], environ)
        self.assertEqual(status, 1)
        self.assertIn(b"403", err)
        self.assertEqual(bench.judge.asked[-1], ("DELETE", "https://api.github.com/repos/me/shop", "GitHub", False))
