"""One request and its answer, between two sides that say what a test wants."""

from __future__ import annotations

import time
from typing import Any, cast

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.source import api_key
from ironcurtain.mitm_proxy.account_tokens import AccountTokens
from ironcurtain.mitm_proxy.admission import ProviderObserver
from ironcurtain.mitm_proxy.answer import AnswerRelay
from ironcurtain.mitm_proxy.exchange import Exchange, Outgoing
from ironcurtain.mitm_proxy.fake_tokens import FakeToken
from ironcurtain.mitm_proxy.judgement import Credentials
from ironcurtain.mitm_proxy.recording import Omissions, ProxiedResponse, Recorder, Troubles
from ironcurtain.mitm_proxy.scrub import Scrubber
from ironcurtain.mitm_proxy.shared import Destination
from ironcurtain.mitm_proxy.tls import ServerSide
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamPool
from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.rules import provider_rules
from ironcurtain.providers.usage import UsageReader
from ironcurtain.secrets.redaction import Redactor, Secret
from tests.mitm_proxy.messages import reply


class FakeClient:
    """The agent's side: what it was told."""

    def __init__(self) -> None:
        self.choked = False
        self.got = b""
        self.told: list[Any] = []

    def write(self, data: bytes) -> None:
        self.got += data

    def pause(self, paused: bool) -> None:
        self.told.append("pause" if paused else "go on")

    def over(self) -> None:
        self.told.append("over")

    def refuse(self, refusal: RequestRefusal) -> None:
        self.told.append(refusal.code)

    def broken(self) -> None:
        self.told.append("broken")


class FakeUpstream:
    """The provider's side: what it was sent."""

    def __init__(self) -> None:
        self.user: Any = None
        self.sent, self.paused, self.end = b"", False, ""

    def write(self, data: bytes) -> None:
        self.sent += data

    def pause(self, paused: bool) -> None:
        self.paused = paused

    def abort(self) -> None:
        self.end = "aborted"


class FakePool:
    """Gives no connection by itself."""

    def __init__(self) -> None:
        self.waiting: list[Any] = []
        self.back: list[Any] = []

    def take(self, waiter: Any) -> None:
        self.waiting.append(waiter)

    def forget(self, waiter: Any) -> None:
        if waiter in self.waiting:
            self.waiting.remove(waiter)

    def give_back(self, upstream: Any) -> None:
        self.back.append(upstream)


class FakeRecorder:
    """Keeps what came of requests."""

    def __init__(self) -> None:
        self.responses: list[ProxiedResponse] = []

    def now(self) -> float:
        return Clock().seconds()

    def response(self, response: ProxiedResponse) -> None:
        self.responses.append(response)


class ExchangeTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.client, self.upstream, self.pool, self.recorder = FakeClient(), FakeUpstream(), FakePool(), FakeRecorder()
        self.exchange = self.make(chunked=False)

    def make(self, chunked: bool) -> Exchange:
        """:returns: an exchange that has not begun."""
        (rule,) = provider_rules({}, ["anthropic"])
        tokens = AccountTokens(api_key(Secret("the-real-key", "environment variable KEY")), Redactor(), time.time)
        troubles = Troubles(rule.upstream_host, tokens.description, tokens.advice)
        destination = Destination(
            Credentials(rule, FakeToken(Secret("fake")), tokens),
            cast(ServerSide, None),
            cast(UpstreamPool, self.pool),
            troubles,
            Omissions(rule.upstream_host),
        )
        outgoing = Outgoing("request-1", lambda token: b"HEAD ", chunked)

        def answer() -> AnswerRelay:
            return AnswerRelay("POST", Scrubber(tokens.forms), UsageReader(ANTHROPIC.count), False)

        observer = ProviderObserver(cast(Recorder, self.recorder), destination)
        return Exchange(self.client, outgoing, answer, destination.pool, observer, tokens)

    def connect(self) -> None:
        """Let there be a connection."""
        self.pool.waiting.pop().connected(cast(Upstream, self.upstream))

    def test_a_connection_goes_back_ready_to_be_read(self) -> None:
        self.exchange.send(b"body", True)
        self.connect()
        self.client.choked = True
        self.exchange.choke(True)
        self.assertTrue(self.upstream.paused)
        self.exchange.upstream_data(reply())
        self.assertEqual(self.pool.back, [self.upstream])
        self.assertFalse(self.upstream.paused)

    def test_an_agent_that_reads_nothing_yet(self) -> None:
        self.client.choked = True
        self.exchange.send(b"body", True)
        self.connect()
        self.assertTrue(self.upstream.paused)

    def test_a_body_waits_for_the_connection(self) -> None:
        exchange = self.make(chunked=True)
        exchange.send(b"one", False)
        self.assertEqual(self.client.told, ["pause"])
        exchange.send(b"two", False)
        self.assertEqual(self.pool.waiting, [exchange], "it asks once")
        self.connect()
        self.assertEqual(self.client.told, ["pause", "go on"])
        exchange.send(b"", True)
        self.assertEqual(self.upstream.sent, b"HEAD 3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")

    def test_an_agent_that_leaves_before_there_is_a_connection(self) -> None:
        self.exchange.send(b"body", True)
        self.exchange.cancel()
        self.assertEqual((self.pool.waiting, self.client.told), ([], []))
        self.assertEqual(self.recorder.responses[0].error, "the agent closed its connection")

    def test_an_agent_that_leaves_is_recorded_once(self) -> None:
        self.exchange.send(b"body", True)
        self.connect()
        self.exchange.upstream_data(reply())
        self.exchange.cancel()
        self.exchange.silent()
        self.assertEqual(len(self.recorder.responses), 1)
        self.assertEqual(self.client.told, ["over"])

    def test_an_answer_to_half_a_request(self) -> None:
        self.exchange.send(b"half", False)
        self.connect()
        self.exchange.upstream_data(reply())
        self.assertEqual((self.pool.back, self.upstream.end), ([], "aborted"))
        self.assertIsNone(self.upstream.user)
