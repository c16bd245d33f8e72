"""A provider that asks a real TLS server on the loopback address; waits are on a ``Clock``, nothing sleeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from ironcurtain.http.outbound import Outbound
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.dialect import Dialect
from ironcurtain.llm.failures import RetryPolicy
from ironcurtain.llm.http_provider import HttpModelClient
from ironcurtain.llm.model import (
    ChatMessage,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextBlock,
    TextDelta,
    ToolSpec,
)
from ironcurtain.secrets.redaction import Secret
from tests.http.direct import DIRECT
from tests.llm.files import written
from tests.model_stub.replies import Answer, Reply, Text
from tests.model_stub.server import DEFAULT_KEY, ModelStub

HELLO = ChatMessage("user", (TextBlock("Hello"),))
TOOL = ToolSpec("execute_code", "Run it.", {"type": "object"})
HI = Answer((Text(("Hi", " there")),))


def request(*messages: ChatMessage) -> ModelRequest:
    return ModelRequest("Be good.", messages or (HELLO,), (TOOL,), "claude-opus-5-5", 1000)


class ProviderCase(TestCase):
    """
    :cvar dialect: of the provider, with ``key`` from ``variable``.
    :cvar root: what stands before the paths of its API.
    """

    dialect: Dialect = AnthropicDialect()
    key = DEFAULT_KEY
    variable = "ANTHROPIC_API_KEY"
    root = ""

    def setUp(self) -> None:
        self.clock = Clock()
        self.proxies = DIRECT
        self.told: list[ModelEvent] = []
        self.stub = ModelStub(reactor)
        self.seen: list[Callable[[ModelEvent], None]] = []

    async def start(self, *replies: Reply, names: tuple[str, ...] = ("localhost",)) -> None:
        self.stub.replies += replies
        await self.stub.start(names=names)
        stub = self.stub
        self.addCleanup(lambda: Deferred.fromCoroutine(stub.stop()))

    def provider(
        self,
        *,
        key: str | None = None,
        no_key: bool = False,
        ca: bytes | None = None,
        attempts: int = 3,
        key_header: str = "",
        base: str = "",
    ) -> HttpModelClient:
        policy = VerifyingPolicy(written(self, self.stub.authority.pem if ca is None else ca))
        secret = Secret(self.key if key is None else key, f"environment variable {self.variable}")
        return HttpModelClient(
            self.dialect,
            base_url=self.stub.url + (base or self.root),
            key=None if no_key else secret,
            key_header=key_header,
            outbound=Outbound(reactor, policy, self.proxies),
            reactor=reactor,
            clock=self.clock,
            random=lambda: 1.0,
            retries=RetryPolicy(attempts=attempts),
            stall=60.0,
        )

    def notify(self, event: ModelEvent) -> None:
        self.told.append(event)
        for seen in self.seen:
            seen(event)

    def ask(self, *messages: ChatMessage, **options: Any) -> Deferred[ModelReply]:
        provider = self.provider(**options)
        return Deferred.fromCoroutine(provider.converse(request(*messages), self.notify))

    async def error(self, asked: Deferred[ModelReply]) -> ModelError:
        try:
            reply = await asked
        except ModelError as e:
            return e
        raise AssertionError(f"no error but {reply}")

    def on(self, kind: type[ModelEvent], act: Callable[[], None]) -> None:
        """Do something once an event of this kind is told; later, since that is within the provider's own work."""

        def seen(event: ModelEvent) -> None:
            if isinstance(event, kind):
                reactor.callLater(0, act)

        self.seen.append(seen)

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.told if isinstance(event, TextDelta)]
