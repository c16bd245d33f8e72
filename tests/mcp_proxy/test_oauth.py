"""OAuth: logging in, and tokens in sessions."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, IronCurtainError, NotAllowed, NotFound, Unavailable, UsageError
from ironcurtain.http.trust import ssl_context
from ironcurtain.mcp_proxy import oauth
from ironcurtain.mcp_proxy.logins import Login, LoginFile, LoginFiles, parse_redirect
from ironcurtain.mcp_proxy.oauth import log_in
from ironcurtain.mcp_proxy.redirects import RedirectListener
from ironcurtain.mcp_proxy.servers_config import HttpServer
from ironcurtain.secrets.redaction import Secret
from ironcurtain.services.asyncio_bridge import from_asyncio, to_asyncio
from tests.audit.doubles import scratch
from tests.http.direct import DIRECT
from tests.mcp_proxy.oauth_server import CANARY, OAuthServer
from tests.mcp_proxy.support import Bench, the_reactor, until
from tests.mcp_proxy.test_calls import text
from tests.mcp_proxy.test_protocol import Base


class OAuthCase(Base):
    """A server that wants OAuth."""

    def setUp(self) -> None:
        super().setUp()
        self.far = OAuthServer()
        self.addCleanup(self.far.port.stopListening)
        self.config = HttpServer("far", Secret(self.far.url))

    async def log_in(self, file: LoginFile, change: Any = lambda url: url, browser: bool = False) -> None:
        """Log in; ``change`` changes the address to which the browser is sent."""
        listener = RedirectListener(the_reactor)
        self.addCleanup(listener.stop)

        def show(url: str) -> None:
            target = change(self.far.browse(parse_qs(urlsplit(url).query)))
            if browser:
                deferToThread(lambda: urllib.request.urlopen(target, None, 60).close()).addErrback(lambda _: None)
            elif target:
                listener.enter(target)

        context = ssl_context("")
        waiting = lambda: to_asyncio(listener.received)  # noqa: E731
        await from_asyncio(log_in(self.config, file, context, DIRECT, the_reactor, listener.uri, show, waiting))

    async def entered(self, *, lifetime: int = 3600) -> Bench:
        """:returns: a proxy before the server, at which there is a login."""
        self.far.lifetime = lifetime
        bench = Bench([self.config], annotate={"echo": {"value": ("none",)}})
        self.top = bench
        self.addCleanup(bench.stopped)
        self.file = LoginFiles(bench.top / "oauth").of("far")
        await self.log_in(self.file)
        self.far.lifetime = 3600
        await bench.start()
        await bench.proxy.gate.settled(60)
        return bench

    def token(self, file: LoginFile) -> str:
        """:returns: the kept access token."""
        login = file.read(self.config.url)
        assert login is not None
        return str(json.loads(login.tokens.reveal())["access_token"])


class LoginTests(OAuthCase):
    """Logging in."""

    def setUp(self) -> None:
        super().setUp()
        self.file = LoginFiles(scratch(self) / "oauth").of("far")

    async def test_the_tokens_are_kept_for_this_url_by_their_owner_alone(self) -> None:
        await self.log_in(self.file, browser=True)
        self.assertEqual(self.token(self.file), f"{CANARY}-access-1")
        self.assertEqual(self.file.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.file.path.parent.stat().st_mode & 0o777, 0o700)
        self.assertIsNone(self.file.read(Secret(self.far.url + "2")))
        self.assertNotIn(CANARY, repr(self.file.read(self.config.url)))
        self.assertTrue(self.file.remove())
        self.assertFalse(self.file.remove())

    async def fails(self, kind: type[IronCurtainError], words: str, change: Any = lambda url: url) -> None:
        """Check that a login fails and leaves nothing."""
        attempt: Deferred[Any] = Deferred.fromCoroutine(self.log_in(self.file, change))
        failed = await self.assertFailure(attempt, kind)
        self.assertIn(words, str(failed))
        self.assertNotIn(CANARY, str(failed))
        self.assertFalse(self.file.path.exists())

    async def test_a_wrong_state_is_refused(self) -> None:
        await self.fails(NotAllowed, "wrong state or issuer", lambda url: url.replace("state=", "state=x"))

    async def test_a_wrong_issuer_is_refused(self) -> None:
        await self.fails(NotAllowed, "wrong state or issuer", lambda url: url.replace("iss=", "iss=x"))

    async def test_a_denied_login(self) -> None:
        await self.fails(NotAllowed, "refused the login", lambda url: url.replace("code=", "error="))

    async def test_nobody_logs_in(self) -> None:
        self.patch(oauth, "LOGIN_SECONDS", 0.5)
        await self.fails(Unavailable, "nobody logged in", lambda url: "")

    async def test_a_server_without_login(self) -> None:
        self.far.access.add("")
        await self.fails(UsageError, "needs no login")


class SessionTests(OAuthCase):
    """Tokens in a session."""

    async def test_tokens_are_sent_and_appear_nowhere(self) -> None:
        bench = await self.entered()
        agent = await bench.agent()
        await agent.call("far__echo", {"value": f"{self.far.sent[-1]} and {self.far.refresh}"})
        self.assertEqual(bench.records("call")[0]["arguments"], {"value": "[redacted] and [redacted]"})
        seen = json.dumps([bench.records("call"), bench.errors, bench.down, bench.told])
        self.assertNotIn(CANARY, seen)

    async def test_expired_tokens_are_refreshed_once_for_all_sessions(self) -> None:
        bench = await self.entered(lifetime=1)
        agent = await bench.agent()
        await gatherResults([Deferred.fromCoroutine(agent.call("far__echo")) for _ in range(3)])
        self.assertEqual((self.far.refreshed, self.token(self.file)), (1, f"{CANARY}-access-2"))
        self.assertEqual(bench.down, [])

    async def test_a_revoked_access_token_is_refreshed(self) -> None:
        bench = await self.entered()
        self.far.access.clear()
        self.assertEqual(text(await (await bench.agent()).call("far__echo")), f"got {CANARY}-access-2")
        self.assertEqual((self.far.refreshed, bench.down), (1, []))

    async def test_revoked_tokens_put_it_down_with_the_reason_until_a_login(self) -> None:
        bench = await self.entered()
        self.far.access.clear()
        self.far.refresh = ""
        agent = await bench.agent()
        await agent.call("far__echo")
        await until(lambda: bool(bench.down), "the reason")
        self.assertIn("needs a login: ironcurtain mcp login far", bench.down[0][1])
        await self.log_in(self.file)
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")

    async def test_a_failing_authorization_server_is_named_and_the_login_stays(self) -> None:
        bench = await self.entered()
        self.far.access.clear()
        self.far.failing = True
        agent = await bench.agent()
        await agent.call("far__echo")
        await until(lambda: bool(bench.down), "the reason")
        self.assertIn("authorization server answered with HTTP status 503", bench.down[0][1])
        self.far.failing = False
        await agent.expect(lambda m: m.get("method") == "notifications/tools/list_changed")
        self.assertEqual(text(await agent.call("far__echo")), f"got {self.token(self.file)}")

    async def test_two_proxies_refresh_once(self) -> None:
        first = await self.entered()
        logins = LoginFiles(self.file.path.parent)
        second = Bench([self.config], annotate={"echo": {"value": ("none",)}}, logins=logins)
        self.addCleanup(second.stopped)
        await second.start()
        await second.proxy.gate.settled(60)
        agents = [await bench.agent() for bench in (first, second)]
        self.far.access.clear()
        answers = await gatherResults([Deferred.fromCoroutine(agent.call("far__echo")) for agent in agents])
        self.assertEqual([text(answer) for answer in answers], [f"got {CANARY}-access-2"] * 2)
        self.assertEqual((self.far.refreshed, first.down, second.down), (1, [], []))

    async def test_a_server_without_handshake(self) -> None:
        self.far.modern = True
        agent = await (await self.entered()).agent()
        self.assertEqual(text(await agent.call("far__echo")), f"got {CANARY}-access-1")
        self.far.access.clear()
        self.assertEqual(text(await agent.call("far__echo")), f"got {CANARY}-access-2")

    async def test_without_a_login(self) -> None:
        bench = await self.bench(self.config)
        await until(lambda: bool(bench.down), "the reason")
        self.assertEqual(bench.down[0], ("far", "did not start: needs a login: ironcurtain mcp login far"))

    async def test_tokens_of_another_url_are_not_sent(self) -> None:
        bench = Bench([replace(self.config, url=Secret(self.far.url + "?x=1"))])
        self.addCleanup(bench.stopped)
        await self.log_in(LoginFiles(bench.top / "oauth").of("far"))
        sent = len(self.far.sent)
        await bench.start()
        await until(lambda: bool(bench.down), "the reason")
        self.assertEqual(len(self.far.sent), sent)


class FileTests(SynchronousTestCase):
    """Files and redirects."""

    def test_names_and_damage(self) -> None:
        files = LoginFiles(scratch(self) / "oauth")
        self.assertRaises(NotFound, files.of, "../x")
        file = files.of("far")
        self.assertIsNone(file.read(Secret("u")))
        file.lock()
        file.path.write_text("{")
        self.assertRaises(ConfigurationError, file.read, Secret("u"))

    def test_what_is_written_is_read(self) -> None:
        file = LoginFiles(scratch(self) / "oauth").of("far")
        login = Login(Secret("u"), Secret('{"access_token": "a"}'), Secret("{}"), 1.5, "null", '{"a": 1}')
        file.lock()
        file.write(login)
        self.assertEqual((file.read(Secret("u")), login.renewable), (login, False))

    @given(st.text())
    def test_any_redirect_is_read_or_refused(self, url: str) -> None:
        for candidate in (url, f"http://127.0.0.1/callback?{url}"):
            with contextlib.suppress(NotAllowed, UsageError):
                self.assertTrue(parse_redirect(candidate).code.reveal())
