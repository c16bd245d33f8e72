"""Requests with the token of a login, and what names its account."""

from __future__ import annotations

import secrets
import time

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.source import ACCOUNT_ID, FixedToken, Token
from ironcurtain.mitm_proxy.account_tokens import AccountTokens
from ironcurtain.mitm_proxy.fake_tokens import fake_token
from ironcurtain.mitm_proxy.judgement import ABSENT, Credentials, ForwardedRequest, judge
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.rules import provider_rules
from ironcurtain.secrets.redaction import Redactor, Secret
from tests.mitm_proxy.agents import request
from tests.mitm_proxy.open_hosts import get
from tests.mitm_proxy.support import Base, Bench

REAL = Token(Secret("CANARY.real.token"), None, {ACCOUNT_ID: Secret("CANARY-account")})
JSON = ("content-type", "application/json")


class ChatGptTests(SynchronousTestCase):
    def setUp(self) -> None:
        (rule,) = provider_rules({}, ["chatgpt"])
        tokens = AccountTokens(FixedToken("chatgpt", REAL, "a plan", "log in"), Redactor(), time.time)
        self.held = Credentials(rule, fake_token(rule, secrets.token_bytes), tokens)

    def ask(self, *more: tuple[str, str], target: str = "POST /backend-api/codex/responses") -> object:
        method, _, path = target.partition(" ")
        key = ("authorization", f"Bearer {self.held.fake.secret.reveal()}")
        return judge(request(method, path, ("host", "chatgpt.com"), JSON, key, *more), self.held)

    def test_token_and_account_are_swapped(self) -> None:
        assert self.held.fake.account is not None
        for more in ([("chatgpt-account-id", self.held.fake.account.reveal())], []):
            found = self.ask(*more)
            assert isinstance(found, ForwardedRequest), found
            headers = found.headers(REAL)
            self.assertEqual([value for name, value in headers if name == "chatgpt-account-id"], ["CANARY-account"])
            self.assertEqual(dict(headers)["authorization"], "Bearer CANARY.real.token")
            self.assertNotIn(self.held.fake.account.reveal(), str(headers))
            self.assertNotIn("CANARY", f"{found!r}{self.held!r}")

    def test_another_account_is_refused(self) -> None:
        assert self.held.fake.account is not None
        own = ("chatgpt-account-id", self.held.fake.account.reveal())
        for more in ([("chatgpt-account-id", "other")], [own, ("chatgpt-account-id", "other")]):
            found = self.ask(*more)
            assert isinstance(found, RequestRefusal), found
            self.assertEqual((found.status, found.code), (403, "other-account"))

    def test_requests_that_nothing_needs_get_404_and_others_403(self) -> None:
        for target, status, code in (
            ("GET /backend-api/codex/models", 404, ABSENT),
            ("POST /backend-api/ps/mcp", 404, ABSENT),
            ("GET /backend-api/me", 403, "endpoint-not-allowed"),
            ("POST /backend-api/codex/models", 403, "endpoint-not-allowed"),
        ):
            found = self.ask(target=target)
            assert isinstance(found, RequestRefusal), found
            self.assertEqual((found.status, found.code), (status, code), target)


class GoogleLoginTests(Base):
    """What Gemini CLI asks of another host than that of its models."""

    async def answers(self, *targets: str) -> list[tuple[int, str]]:
        """:returns: status and recorded reason of requests with the fake token, of a host that nobody can look up."""
        bench = Bench()
        self.addCleanup(bench.stopped)
        bench.resolver = None
        bench.account = lambda name: FixedToken("google", REAL, "a login", "log in")
        await bench.origin.start("localhost")
        await bench.start_proxy(provider_rules({}, ["google-login"]))
        host = "www.googleapis.com"
        client = await bench.tunnel(authority=f"{host}:443", name=host)
        token = f"Authorization: Bearer {bench.proxy.fakes['google-login'].secret.reveal()}"
        statuses = []
        for target in targets:
            method, _, path = target.partition(" ")
            client.send(get(host, path, token, method=method))
            statuses.append((await client.response())[0])
        rules = [record["rule"] for record in bench.records("model-request")]
        return list(zip(statuses, rules, strict=True))

    async def test_the_name_of_the_account_is_not_needed(self) -> None:
        self.assertEqual(await self.answers("GET /oauth2/v2/userinfo"), [(404, ABSENT)])

    async def test_other_requests_with_the_token_are_refused_and_told(self) -> None:
        found = await self.answers("GET /oauth2/v2/userinfo2", "DELETE /oauth2/v2/userinfo", "GET /drive/v3/files")
        self.assertEqual(found, [(403, "session-key")] * 3)
