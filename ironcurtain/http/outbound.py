"""Requests from this process to servers: the way to each host, and verified TLS."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from treq.client import HTTPClient
from twisted.internet.address import HostnameAddress
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, connectProtocol, wrapClientTLS
from twisted.internet.interfaces import IProtocol, IProtocolFactory, IStreamClientEndpoint
from twisted.internet.task import Cooperator
from twisted.web.client import URI, Agent, FileBodyProducer
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IPolicyForHTTPS, IResponse
from zope.interface import implementer

from ironcurtain.http.connections import RequestConnectionPool
from ironcurtain.http.proxies import Proxy
from ironcurtain.http.streaming import deliver
from ironcurtain.http.tunnels import open_tunnel
from ironcurtain.http.upstream_proxies import UpstreamProxies

CONNECT_SECONDS: Final = 30.0
"""Time limit in seconds for a connection to one address."""


@implementer(IAgentEndpointFactory)
class Outbound:
    """
    Requests to hosts that a person named: their addresses are not vetted.

    :param policy: verifies servers.
    :param proxies: upstream proxies.
    """

    def __init__(self, reactor: Any, policy: IPolicyForHTTPS, proxies: UpstreamProxies) -> None:
        self._reactor, self._policy, self._proxies = reactor, policy, proxies

    def request(
        self, connections: RequestConnectionPool, method: str, url: str, headers: Headers, body: bytes | None = None
    ) -> Deferred[IResponse]:
        """
        Send a request whose response is read as it comes. Redirects are not followed.

        :param connections: to be dropped after the response.
        """
        agent = Agent.usingEndpointFactory(self._reactor, self, connections)
        cooperator = Cooperator(scheduler=lambda work: self._reactor.callLater(0, work))
        return HTTPClient(agent).request(  # type: ignore[return-value]
            method,
            url,
            headers=headers,
            data=None if body is None else FileBodyProducer(io.BytesIO(body), cooperator=cooperator),
            allow_redirects=False,
            unbuffered=True,
            reactor=self._reactor,
        )

    async def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
        limit: int = 0,
    ) -> tuple[int, bytes]:
        """
        Send a request, and read the beginning of its answer.

        :param seconds: time limit for all of it.
        :param limit: most bytes of the answer's body that are read.
        :returns: status and body of the answer, whatever they are.
        """
        connections, answer = RequestConnectionPool(self._reactor), bytearray()
        sent = Headers({name: [value] for name, value in {**headers, "user-agent": "ironcurtain"}.items()})

        def take(data: bytes) -> bool:
            answer.extend(data[: limit - len(answer)])
            return len(answer) >= limit

        async def ask() -> int:
            response = await self.request(connections, method, url, sent, body)
            if limit:
                await deliver(self._reactor, response, take)
            return int(response.code)

        try:
            return await Deferred.fromCoroutine(ask()).addTimeout(seconds, self._reactor), bytes(answer)
        finally:
            connections.drop()

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """See :class:`~twisted.web.iweb.IAgentEndpointFactory`."""
        endpoint = self._way(uri.scheme.decode("ascii"), uri.host.decode("ascii").strip("[]"), uri.port)
        if uri.scheme != b"https":
            return endpoint
        return wrapClientTLS(self._policy.creatorForNetloc(uri.host, uri.port), endpoint)

    def _way(self, scheme: str, host: str, port: int) -> IStreamClientEndpoint:
        proxy = self._proxies.choose(scheme, host, port)
        if proxy is None:
            return self._direct(host, port)
        return _TunnelEndpoint(
            self._reactor, self._proxies, proxy, self._direct(proxy.host.name, proxy.port), (host, port)
        )

    def _direct(self, host: str, port: int) -> IStreamClientEndpoint:
        return HostnameEndpoint(self._reactor, host, port, CONNECT_SECONDS)


@implementer(IStreamClientEndpoint)
class _TunnelEndpoint:
    def __init__(
        self, reactor: Any, proxies: UpstreamProxies, proxy: Proxy, way: IStreamClientEndpoint, target: tuple[str, int]
    ) -> None:
        self._reactor, self._proxies, self._proxy, self._way, self._target = reactor, proxies, proxy, way, target

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        return Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: Any) -> IProtocol:
        inner: IProtocol = factory.buildProtocol(HostnameAddress(self._target[0].encode("ascii"), self._target[1]))
        reach = partial(connectProtocol, self._way)
        await open_tunnel(self._proxies, self._proxy, self._target, inner, reach, self._reactor, CONNECT_SECONDS)
        return inner
