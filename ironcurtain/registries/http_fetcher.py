"""Fetch from registries by HTTP: dialled and vetted by us, redirects followed by us, and everything bounded."""

from __future__ import annotations

import base64
from collections.abc import Collection
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

import msgspec
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, DeferredSemaphore, TimeoutError
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IProtocolFactory,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.internet.task import deferLater
from twisted.web.client import URI, Agent
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgentEndpointFactory, IResponse
from zope.interface import implementer

from ironcurtain.http.connections import QuietConnectionPool
from ironcurtain.http.failures import explain, is_cancelled
from ironcurtain.http.fields import Fields
from ironcurtain.http.streaming import Watch
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.http.urls import UnclearAddress, WebAddress, read_web_address
from ironcurtain.network.dialling import AddressRefused, Dialer
from ironcurtain.registries.body_stream import BodyStream
from ironcurtain.registries.fetching import DOCUMENT_LIMIT, Document, FetchFailed, FileStream, Unusable
from ironcurtain.registries.inflating import Inflating
from ironcurtain.secrets.redaction import Secret

REDIRECTS: Final = 5
"""Maximum number of redirects of one request."""

SILENCE_SECONDS: Final = 60.0
"""Time limit in seconds for silence of a server."""

DOCUMENTS: Final = 16
"""Maximum number of documents that are fetched at a time, since each is held in memory."""

CONNECTIONS_KEPT: Final = 32
"""Maximum number of unused connections to one host."""

KEPT_SECONDS: Final = 30
"""How long an unused connection is kept, in seconds."""

DIALS: Final = 4
"""Maximum number of connections that are opened at a time: name servers drop bursts of equal questions."""

HOSTS_KEPT: Final = 16
"""Maximum number of hosts whose TLS contexts are kept."""

_REDIRECTING = (301, 302, 303, 307, 308)


class Credential(msgspec.Struct, frozen=True):
    """
    What a registry of the settings takes as proof of who asks.

    :ivar header: in lower case.
    """

    header: str
    secret: Secret

    def value(self) -> str:
        """:returns: the header's value, which contains the key."""
        key = self.secret.reveal()
        if self.header != "authorization":
            return key
        return f"Basic {base64.b64encode(key.encode()).decode('ascii')}" if ":" in key else f"Bearer {key}"


class HttpFetcher:
    """
    See :class:`~ironcurtain.registries.fetching.Fetcher`.

    :param base: the configured address of the registry, which may be without TLS; empty: a public one.
    :param private: further hosts, in canonical form, that may have addresses that are not public.
    :param ca_file: PEM certificates to trust for the host of ``base`` besides the system's; empty: none.
    :param table: where the settings of the registry are, for messages.
    :raises ConfigurationError: the ``ca_file`` cannot be used.
    """

    def __init__(
        self,
        reactor: Any,
        dialer: Dialer,
        base: str,
        *,
        private: Collection[str] = (),
        ca_file: str = "",
        table: str = "[registries]",
    ) -> None:
        self._clock: IReactorTime = reactor
        self._table = table
        self._origin = read_web_address(base).origin if base else ""
        self.credential: Credential | None = None
        """Sent to the origin of the configured address only."""
        self._pool = QuietConnectionPool(reactor)
        self._pool.maxPersistentPerHost, self._pool.cachedConnectionTimeout = CONNECTIONS_KEPT, KEPT_SECONDS
        endpoints = _Endpoints(dialer, self._origin, private, ca_file)
        self._agent = Agent.usingEndpointFactory(reactor, endpoints, self._pool)
        self._documents = DeferredSemaphore(DOCUMENTS)

    async def document(self, url: str, accept: str, limit: int = DOCUMENT_LIMIT) -> Document:
        """See :class:`~ironcurtain.registries.fetching.Fetcher`."""
        await self._documents.acquire()
        try:
            response, found = await self._get(url, (("accept", accept or "*/*"), ("accept-encoding", "gzip")))
            body = await self._inflated(response, found, limit)
            return Document(response.code, _fields(response), body, found)
        finally:
            self._documents.release()

    async def file(self, url: str) -> FileStream:
        """See :class:`~ironcurtain.registries.fetching.Fetcher`."""
        response, found = await self._get(url, (("accept", "*/*"), ("accept-encoding", "identity")))
        length = None if response.length is UNKNOWN_LENGTH else int(response.length)
        host = read_web_address(found).host.name
        return FileStream(response.code, _fields(response), length, self._stream(response, host))

    def credential_for(self, origin: str) -> Credential | None:
        """
        :param origin: scheme, host and port.
        :returns: what is sent there as proof of who asks; ``None``: nothing.
        """
        return self.credential if origin == self._origin else None

    async def close(self) -> None:
        """Close unused connections."""
        await self._pool.closeCachedConnections()

    async def _get(self, url: str, headers: Fields) -> tuple[IResponse, str]:
        """:returns: the response that is no redirect, and its address."""
        before = ""
        for _ in range(REDIRECTS + 1):
            url, _fragment = urldefrag(url)
            address = self._checked(url, before)
            response = await self._request(url, address, headers)
            location = response.headers.getRawHeaders(b"location")
            if response.code not in _REDIRECTING or not location:
                return response, url
            before = f"{address.host.name} redirects to an address"
            await self._stream(response, address.host.name).aclose()
            url = urljoin(url, location[0].decode("latin-1"))
        raise Unusable(f"{read_web_address(url).host.name} redirects more than {REDIRECTS} times")

    def _checked(self, url: str, before: str) -> WebAddress:
        """:param before: who refers to it, in words; empty: the metadata."""
        before = before or "the registry's metadata have an address"
        try:
            address = read_web_address(url)
        except UnclearAddress as e:
            raise Unusable(f"{before} that is refused: {e}") from None
        if address.authority.user:
            raise Unusable(f"{before} with a user name")
        if address.scheme != "https" and address.origin != self._origin:
            raise Unusable(f"{before} without TLS")
        return address

    async def _request(self, url: str, address: WebAddress, fields: Fields) -> IResponse:
        headers = Headers({name: [value] for name, value in fields})
        headers.setRawHeaders("user-agent", ["IronCurtain"])
        if (credential := self.credential_for(address.origin)) is not None:
            headers.setRawHeaders(credential.header, [credential.value()])
        watch = Watch(self._clock, SILENCE_SECONDS)
        try:
            requesting = self._agent.request(b"GET", url.encode("ascii"), headers)
            response: IResponse = await watch.over(requesting)
        except Exception as e:
            raise failure(e, address.host.name, watch.expired, self._table) from None
        finally:
            watch.stop()
        return response

    async def _inflated(self, response: IResponse, url: str, limit: int) -> bytes:
        host = read_web_address(url).host.name
        codings = b",".join(response.headers.getRawHeaders(b"content-encoding", [])).decode("latin-1")
        async with aclosing(self._stream(response, host)) as pieces:
            inflating = Inflating(host, codings, limit)
            async for piece in pieces:
                inflating.feed(piece)
        return inflating.whole()

    def _stream(self, response: IResponse, host: str) -> UpstreamBody:
        return UpstreamBody(response, host, self._clock, self._table)


class UpstreamBody:
    """
    See :class:`~ironcurtain.registries.fetching.ByteStream`.

    :param host: for messages.
    :param table: see :class:`HttpFetcher`.
    """

    def __init__(self, response: IResponse, host: str, clock: IReactorTime, table: str) -> None:
        self._host, self._clock, self._stream, self._table = host, clock, BodyStream(), table
        self._watch = Watch(clock, SILENCE_SECONDS)
        response.deliverBody(self._stream)

    def __aiter__(self) -> UpstreamBody:
        return self

    async def __anext__(self) -> bytes:
        """See :class:`~ironcurtain.registries.fetching.ByteStream`."""
        try:
            piece = await self._watch.over(self._stream.next())
        except Exception as e:
            raise failure(e, self._host, self._watch.expired, self._table) from None
        finally:
            self._watch.stop()
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """See :class:`~ironcurtain.registries.fetching.ByteStream`."""
        try:
            await deferLater(self._clock, 0)  # bytes that were read already may complete the response
        finally:
            self._stream.close()


def _fields(response: IResponse) -> Fields:
    return tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, values in response.headers.getAllRawHeaders()
        for value in values
    )


def failure(error: Exception, host: str, expired: bool, table: str) -> Exception:
    """
    :param table: see :class:`HttpFetcher`.
    :returns: the error in words; unchanged if the network is not its cause.
    """
    if isinstance(error, AddressRefused):
        return Unusable(f"{error}. Name a host of yours as url or private in {table}")
    if expired or isinstance(error, TimeoutError):
        return FetchFailed(f"{host} cannot be reached: no answer in time")
    if is_cancelled(error):
        return error
    known = explain(error, host, setting=f"url in {table}", ca_file=f"ca_file in {table}")
    if known is None:
        return error
    return (Unusable if known.lasting else FetchFailed)(known.message.removesuffix("."))


@implementer(IAgentEndpointFactory)
class _Endpoints:
    """Connects where :class:`HttpFetcher` says."""

    def __init__(self, dialer: Dialer, origin: str, private: Collection[str], ca_file: str) -> None:
        self._dialer, self._origin, self._private = dialer, origin, private
        self._own, self._public = VerifyingPolicy(ca_file), VerifyingPolicy("")
        self._dials = DeferredSemaphore(DIALS)
        self._creators: dict[tuple[str, bool], IOpenSSLClientConnectionCreator] = {}

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        address = read_web_address(uri.toBytes().decode("ascii"))
        host, own = address.host.name, address.origin == self._origin
        endpoint = _DialledEndpoint(self._dialer, self._dials, host, uri.port, own or host in self._private)
        if uri.scheme != b"https":
            return endpoint
        policy = self._own if own else self._public
        if (creator := self._creators.get((host, own))) is None:
            # The system's authorities are loaded for each of them, which takes longer than a request.
            if len(self._creators) >= HOSTS_KEPT:
                self._creators.clear()
            creator = self._creators[host, own] = policy.creatorForNetloc(host.encode(), uri.port)
        wrapped: IStreamClientEndpoint = wrapClientTLS(creator, endpoint)
        return wrapped


@implementer(IStreamClientEndpoint)
class _DialledEndpoint:
    def __init__(self, dialer: Dialer, dials: DeferredSemaphore, host: str, port: int, private: bool) -> None:
        self._dialer, self._dials, self._host, self._port, self._private = dialer, dials, host, port, private

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        return Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: IProtocolFactory) -> Any:
        protocol = factory.buildProtocol(IPv4Address("TCP", self._host, self._port))
        assert protocol is not None  # the agent's factories accept every connection
        await self._dials.acquire()
        try:
            await self._dialer.connect(self._host, self._port, protocol, private=self._private)
        finally:
            self._dials.release()
        return protocol
