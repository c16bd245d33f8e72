"""The stub itself: an HTTPS server on a loopback port that answers as it is told and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ServerEndpoint
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from tests.model_stub.certificates import Authority
from tests.model_stub.control import PREFIX, Control
from tests.model_stub.exchange import Exchange, Gone
from tests.model_stub.record import Record
from tests.model_stub.replies import Reply

DEFAULT_KEY = "sk-ant-api03-stub-key-for-tests-0000000000000000"
"""The key that the stub accepts in the place of Anthropic's unless told otherwise."""

DEFAULT_KEYS = {
    "anthropic": DEFAULT_KEY,
    "openai": "sk-proj-stub-key-for-tests-0000000000000000000000",
    "google": "AIzaSyStub-key-for-tests-00000000000000",
    "copilot": "gho_stub-key-for-tests-0000000000000000",
    "openai-chat": "stub-key-for-tests-of-compatible-servers",
}
"""The keys that the stub accepts unless told otherwise."""

NAMES = (
    *("localhost", "127.0.0.1"),
    *("api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"),
)
"""What the server's certificate is for unless told otherwise."""


class ModelStub:
    """
    Every model provider, for tests.

    :param replies: used up in order, one a turn of whoever asks; when none is left, turns are refused.
    :param keys: the key of each provider, in place of the default one; or keys that all providers accept.
    :ivar requests: every request made so far.
    :ivar connections: how many connections were ever opened.
    """

    def __init__(
        self, reactor: Any, replies: Iterable[Reply] = (), *, keys: Mapping[str, str] | Iterable[str] = DEFAULT_KEYS
    ) -> None:
        self.reactor = reactor
        self.replies = list(replies)
        self.keys = {
            provider: frozenset((keys.get(provider, default),) if isinstance(keys, Mapping) else keys)
            for provider, default in DEFAULT_KEYS.items()
        }
        self.authority = Authority.make()
        self.requests: list[Record] = []
        self.connections = 0
        self._open: set[Any] = set()
        self._all_closed: Deferred[None] | None = None
        self._held: list[Deferred[None]] = []
        self._releases = 0
        self._port: IListeningPort | None = None

    async def start(self, port: int = 0, *, names: tuple[str, ...] = NAMES, plain: bool = False) -> int:
        """
        Listen on the loopback address.

        :param names: what the server's certificate is for.
        :param plain: whether to serve without TLS.
        :returns: the port.
        """
        endpoint: Any = TCP4ServerEndpoint(self.reactor, port, interface="127.0.0.1")
        if not plain:
            endpoint = SSL4ServerEndpoint(self.reactor, port, self.authority.server(*names), interface="127.0.0.1")
        self._scheme = "http" if plain else "https"
        site = _CountingSite(self)
        self._port = await endpoint.listen(site)
        return self.port

    @property
    def open_connections(self) -> int:
        """How many connections are open."""
        return len(self._open)

    @property
    def port(self) -> int:
        """The port listened on."""
        assert self._port is not None, "not started"
        return int(self._port.getHost().port)  # type: ignore[attr-defined]

    @property
    def url(self) -> str:
        """What clients are to use as base URL (OpenAI's want ``/v1`` after it)."""
        return f"{self._scheme}://{'localhost' if self._scheme == 'https' else '127.0.0.1'}:{self.port}"

    async def stop(self) -> None:
        """Listen no longer, and close what is still open."""
        if self._port is not None:
            stopped, self._port = self._port.stopListening(), None
            if stopped is not None:
                await stopped
        if self._open:
            self._all_closed = Deferred()
            for transport in list(self._open):
                transport.abortConnection()
            await self._all_closed

    def opened(self, transport: Any) -> None:
        """The site has a new connection."""
        self.connections += 1
        self._open.add(transport)

    def closed(self, transport: Any) -> None:
        """One of the site's connections is gone."""
        self._open.discard(transport)
        if self._all_closed is not None and not self._open:
            self._all_closed.callback(None)

    def release(self, count: int = 1) -> None:
        """Let an answer that is ``held`` send its next events."""
        for _ in range(count):
            if self._held:
                self._held.pop(0).callback(None)
            else:
                self._releases += 1

    def hold(self) -> Deferred[None]:
        """:returns: fires at the next :meth:`release`."""
        waiting: Deferred[None] = Deferred()
        if self._releases:
            self._releases -= 1
            waiting.callback(None)
        else:
            self._held.append(waiting)
        return waiting


class _CountingSite(Site):
    def __init__(self, stub: ModelStub) -> None:
        super().__init__(_Everything(stub), reactor=stub.reactor)
        self.timeOut = None
        self._stub = stub

    def buildProtocol(self, addr: IAddress | None) -> Any:
        protocol: Any = super().buildProtocol(addr)
        made, lost, transports = protocol.makeConnection, protocol.connectionLost, []

        def makeConnection(transport: Any) -> None:
            transports.append(transport)
            self._stub.opened(transport)
            made(transport)

        def connectionLost(reason: Failure) -> None:
            self._stub.closed(*transports)
            lost(reason)

        protocol.makeConnection, protocol.connectionLost = makeConnection, connectionLost
        return protocol


class _Everything(Resource):
    """Every path but the stub's own; an API's errors for those that do not exist."""

    log = Logger()

    def __init__(self, stub: ModelStub) -> None:
        super().__init__()
        self._stub = stub
        self.putChild(PREFIX, Control(stub))

    def getChild(self, path: bytes, request: Request) -> Resource:
        return self

    def render(self, request: Any) -> int:
        exchange = Deferred.fromCoroutine(Exchange(self._stub, request).run())
        exchange.addErrback(lambda failure: failure.trap(Gone))
        exchange.addErrback(self._broken, request)
        return NOT_DONE_YET

    def _broken(self, failure: Failure, request: Any) -> None:
        self.log.failure("the stub itself is wrong", failure)
        request.transport.abortConnection()
