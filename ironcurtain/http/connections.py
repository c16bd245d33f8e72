"""treq connections that are not kept, are not logged, and can be closed at once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory, IStreamClientEndpoint
from twisted.web.client import HTTPConnectionPool
from zope.interface import implementer


class QuietConnectionPool(HTTPConnectionPool):
    """A pool whose connections do not log each start and stop of a factory."""

    def getConnection(self, key: Hashable, endpoint: IStreamClientEndpoint) -> Deferred[Any]:
        """See :class:`~twisted.web.client.HTTPConnectionPool`."""
        return super().getConnection(key, _QuietEndpoint(endpoint))


class RequestConnectionPool(QuietConnectionPool):
    """
    The connections of one request and its retries; none is kept.

    An ``Agent`` cannot close its connection at once: a proper end of TLS waits for the other side, which may have
    stalled. So this pool remembers its connections.
    """

    def __init__(self, reactor: Any) -> None:
        super().__init__(reactor, persistent=False)
        self._opened: list[Any] = []

    def getConnection(self, key: Hashable, endpoint: IStreamClientEndpoint) -> Deferred[Any]:
        """See :class:`~twisted.web.client.HTTPConnectionPool`."""
        return super().getConnection(key, endpoint).addCallback(self._remember)

    def _remember(self, connection: Any) -> Any:
        self._opened.append(connection)
        return connection

    def drop(self) -> None:
        """Abort every connection."""
        for connection in self._opened:
            # Twisted's TLS cannot abort once the connection is gone.
            if connection.state != "CONNECTION_LOST":
                connection.transport.abortConnection()
        self._opened.clear()


@implementer(IStreamClientEndpoint)
class _QuietEndpoint:
    def __init__(self, endpoint: IStreamClientEndpoint) -> None:
        self._endpoint = endpoint

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        """See :class:`~twisted.internet.interfaces.IStreamClientEndpoint`."""
        factory: Any = protocolFactory
        factory.noisy = False
        return self._endpoint.connect(factory)
