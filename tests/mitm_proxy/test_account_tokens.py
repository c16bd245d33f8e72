"""Tokens that expire: renewed before they are used, and once when the provider refuses them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.source import ACCOUNT_ID, Kind, Token
from ironcurtain.errors import ConfigurationError, IronCurtainError, Unavailable
from ironcurtain.mitm_proxy.account_tokens import EARLY_SECONDS, AccountTokens
from ironcurtain.mitm_proxy.recording import ProviderNotice
from ironcurtain.mitm_proxy.scrub import Scrubber
from ironcurtain.secrets.redaction import Redactor, Secret
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.origin import Origin
from tests.mitm_proxy.support import Base, Bench
from tests.mitm_proxy.waiting import until

OLD, NEW = "sk-ant-oat01-CANARY-old-0123456789", "sk-ant-oat01-CANARY-new-9876543210"
REFUSED = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 4\r\n\r\nnope"
COMMAND = "run ironcurtain login claude"


class Login:
    """
    An account that is renewed when a test says so.

    :ivar failure: why it cannot be renewed.
    """

    kind: Kind = "claude"
    description = "your Claude subscription (max), from a test"

    def __init__(self, expires: float | None = None, extra: Mapping[str, Secret] | None = None) -> None:
        self.token = Token(Secret(OLD), expires, extra or {})
        self.stale: list[Token] = []
        self.failure: IronCurtainError | None = None
        self.gone: IronCurtainError | None = None
        self.held: Deferred[None] | None = None

    def current(self) -> Token:
        """See :class:`~ironcurtain.accounts.source.TokenSource`."""
        if self.gone is not None:
            raise self.gone
        return self.token

    async def refreshed(self, stale: Token) -> Token:
        """See :class:`~ironcurtain.accounts.source.TokenSource`."""
        self.stale.append(stale)
        if self.held is not None:
            await self.held
        if self.failure is not None:
            raise self.failure
        if stale == self.token:
            self.token = Token(Secret(NEW), None, self.token.extra)
        return self.token


class TokenTests(SynchronousTestCase):
    def tokens(self, login: Login, now: float = 1000.0) -> AccountTokens:
        self.redactor = Redactor()
        return AccountTokens(login, self.redactor, lambda: now)

    def test_token_is_due_shortly_before_its_end_and_not_without_one(self) -> None:
        for expires, due in ((None, False), (1000 + EARLY_SECONDS, False), (999 + EARLY_SECONDS, True), (1.0, True)):
            self.assertEqual(self.tokens(Login(expires)).due(), due, expires)

    def test_new_token_that_seems_old_is_not_renewed_again(self) -> None:
        login = Login(1.0)
        tokens = self.tokens(login)
        fresh = Token(Secret(NEW), 2.0)
        login.token = fresh
        self.successResultOf(Deferred.fromCoroutine(tokens.renewed(Token(Secret(OLD), 1.0))))
        self.assertFalse(tokens.due())

    def test_old_and_new_tokens_and_ids_are_known_to_redactor_and_scrubber(self) -> None:
        login = Login(extra={ACCOUNT_ID: Secret("11112222-canary-account")})
        tokens = self.tokens(login)
        self.successResultOf(Deferred.fromCoroutine(tokens.renewed(tokens.current())))
        text = f"{OLD} {NEW} 11112222-canary-account {base64.b64encode(NEW.encode()).decode()} {OLD.encode().hex()}"
        for clean in (self.redactor.text(text), Scrubber(tokens.forms).feed(text.encode(), last=True).decode()):
            for secret in ("CANARY", "11112222", NEW.encode().hex(), base64.b64encode(NEW.encode()).decode()[4:20]):
                self.assertNotIn(secret, clean)

    def test_token_that_another_process_renewed_is_learned_before_it_is_used(self) -> None:
        login = Login()
        tokens = self.tokens(login)
        login.token = Token(Secret(NEW))
        self.assertEqual(tokens.current().secret.reveal(), NEW)
        self.assertNotIn(NEW, self.redactor.text(NEW))


class RenewalTests(Base):
    """Requests with a token that is renewed."""

    async def with_login(self, login: Login) -> Bench:
        """:returns: a bench whose provider accepts only the new token."""
        bench = Bench()
        self.addCleanup(bench.stopped)
        bench.account = lambda name: login
        bench.reactor.shift = 0.0
        self.bodies: list[bytes] = []

        def answer(origin: Origin) -> None:
            head, blank, body = bytes(origin.got).partition(b"\r\n\r\n")
            if not blank or len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
                return
            origin.got.clear()
            self.bodies.append(body)
            origin.send(reply() if NEW.encode() in head else REFUSED)

        bench.origin.answer = answer
        return await bench.start()

    async def test_refused_token_is_renewed_and_the_request_sent_again(self) -> None:
        login = Login()
        bench = await self.with_login(login)
        client = await bench.tunnel()
        for _ in range(2):
            client.send(bench.request())
            self.assertEqual((await client.response())[0], 200)
        self.assertEqual([token.secret.reveal() for token in login.stale], [OLD])
        self.assertEqual(len(self.bodies), 3)
        self.assertEqual(self.bodies[0], self.bodies[1])
        self.assertEqual([record["status"] for record in bench.records("model-response")], [200, 200])
        self.assertEqual(bench.buffered(), 0)

    async def test_token_that_is_refused_twice_is_told(self) -> None:
        login = Login()
        bench = await self.with_login(login)
        bench.origin.answer = lambda origin: origin.send(REFUSED)
        client = await bench.tunnel()
        client.send(bench.request())
        status, _, body = await client.response()
        self.assertEqual((status, body, len(login.stale)), (401, b"nope", 1))
        self.assertIn("refuses your Claude subscription (max)", self.told(bench)[0])
        self.assertEqual(bench.buffered(), 0)

    async def test_login_that_cannot_be_renewed_is_refused_with_what_to_do(self) -> None:
        login = Login()
        login.failure = ConfigurationError("login", COMMAND)
        bench = await self.with_login(login)
        client = await bench.tunnel()
        for _ in range(2):
            client.send(bench.request())
            status, _, body = await client.response()
            self.assertEqual(status, 403)
            self.assertIn(COMMAND, json.loads(body)["error"]["message"])
        self.assertEqual(self.told(bench), [f"login: {COMMAND}"], "told once")

    async def test_expired_token_is_not_sent(self) -> None:
        login = Login(expires=1.0)
        bench = await self.with_login(login)
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertEqual((await client.response())[0], 200)
        self.assertEqual((len(login.stale), len(self.bodies)), (1, 1))
        login.token, login.failure = Token(Secret(OLD), 1.0), Unavailable("the host cannot be reached")
        client.send(bench.request())
        status, _, body = await client.response()
        self.assertEqual((status, len(self.bodies)), (403, 1))
        self.assertIn(b"the host cannot be reached", body)

    async def test_token_that_is_still_valid_is_sent_if_it_cannot_be_renewed(self) -> None:
        login = Login(expires=time.time() + EARLY_SECONDS / 2)
        login.failure = Unavailable("not now")
        bench = await self.with_login(login)
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertEqual((await client.response())[0], 200)

    async def test_login_that_was_removed_is_not_used(self) -> None:
        login = Login()
        bench = await self.with_login(login)
        login.gone = Unavailable(COMMAND)
        client = await bench.tunnel()
        client.send(bench.request())
        status, _, body = await client.response()
        self.assertEqual((status, self.bodies), (403, []))
        self.assertIn(COMMAND.encode(), body)

    async def test_agent_that_leaves_meanwhile_ends_the_exchange(self) -> None:
        login = Login()
        login.held = Deferred()
        bench = await self.with_login(login)
        client = await bench.tunnel()
        client.send(bench.request())
        await until(lambda: login.stale)
        client.close()
        await until(lambda: bench.records("model-response"))
        login.held.callback(None)
        self.assertEqual((len(self.bodies), bench.buffered()), (1, 0))

    async def test_no_token_is_anywhere(self) -> None:
        bench = await self.with_login(Login())
        bench.origin.answer = lambda origin: origin.send(
            b"HTTP/1.1 200 OK\r\nx-echo: %b\r\ncontent-length: %d\r\n\r\n%b" % (OLD.encode(), len(OLD), OLD.encode())
        )
        client = await bench.tunnel()
        client.send(bench.request())
        _, headers, body = await client.response()
        everything = f"{headers}{body!r}{bench.audit.path.read_text()}{bench.events}{bench.proxy.__dict__}"
        self.assertNotIn("CANARY", everything)

    def told(self, bench: Bench) -> list[str]:
        """:returns: what people are told."""
        return [event.text for event in bench.events if isinstance(event, ProviderNotice)]
