"""Tunnels to hosts that are not decrypted: the connection is judged, and the name in its TLS handshake compared."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.client_hello import ClientHelloReader
from ironcurtain.http.hosts import Host
from ironcurtain.mitm_proxy.open_hosts import record_refusal
from ironcurtain.mitm_proxy.refusals import refusal_response
from ironcurtain.mitm_proxy.shared import Shared
from ironcurtain.network.relay import AHEAD_LIMIT, Splice
from ironcurtain.providers.provider import RequestRefusal

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
"""The response to a CONNECT request that opens a tunnel."""


class UndecryptedTunnel(Protocol):
    """
    Answers a CONNECT request once it is judged, and then passes bytes on. Whatever is refused later resets the
    connection, since nothing can be said inside.
    """

    log = Logger()
    transport: Any

    def __init__(self, shared: Shared, host: Host, port: int) -> None:
        self._shared, self._host, self._port = shared, host, port
        self._splice, self._hello, self._ahead = Splice(), ClientHelloReader(), b""
        self._work: Deferred[None] | None = None
        self._until = inf
        self._allowed = self._spliced = False
        self._release: Callable[[], None] = lambda: None

    def connectionMade(self) -> None:
        self._work = Deferred.fromCoroutine(self._judge()).addErrback(self._failed)

    def dataReceived(self, data: bytes) -> None:
        if self._spliced:
            self._splice.near.dataReceived(data)
            return
        self._ahead += data
        if self._allowed:
            self._read_hello(data)
        elif len(self._ahead) > AHEAD_LIMIT:
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._shared.connections.remove(self)
        self._release()
        if self._work is not None:
            self._work.cancel()
        if self._spliced:
            self._splice.near.connectionLost(reason)
        else:
            self._splice.reset()

    def check(self, now: float) -> None:
        """See :class:`~ironcurtain.mitm_proxy.shared.ProxyConnection`."""
        if now >= self._until:
            self.abort()

    def abort(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.shared.ProxyConnection`."""
        self.transport.abortConnection()

    async def _judge(self) -> None:
        hosts, judge = self._shared.open_hosts, self._shared.open_hosts.judge
        refusal = hosts.closed(self._host.name, self._port)
        if refusal is not None:
            record_refusal(hosts.recorder, self._host.name, None, refusal)
        else:
            assert judge is not None
            refusal = await judge.connect(self._host.name, self._port)
            if refusal is None:
                self._release = judge.hold(self._host.name, self._port, self._revoked)
        now, limits = self._shared.recorder.now(), self._shared.limits
        if refusal is not None:
            self._until = now + limits.linger_seconds
            self.transport.write(refusal_response(refusal, close=True))
            self.transport.loseConnection()
            return
        self._until, self._allowed = now + limits.head_seconds, True
        self.transport.write(ESTABLISHED)
        if self._ahead:
            self._read_hello(self._ahead)

    def _read_hello(self, data: bytes) -> None:
        try:
            name = self._hello.feed(data)
        except ProtocolViolation as e:
            self._mismatch(e.detail, "")
            return
        if name is None:
            return
        if name != ("" if self._host.is_address else self._host.name):
            self._mismatch("the CONNECT request and the TLS handshake name different hosts", name)
            return
        self._until, self._spliced = inf, True
        self._work = Deferred.fromCoroutine(self._connect()).addErrback(self._failed)
        self._splice.near.makeConnection(self.transport)
        ahead, self._ahead = self._ahead, b""
        self._splice.near.dataReceived(ahead)

    async def _connect(self) -> None:
        await self._shared.open_hosts.connect(self._host.name, self._port, self._splice.far)

    def _revoked(self) -> None:
        self._splice.reset()
        self.abort()

    def _mismatch(self, why: str, name: str) -> None:
        refusal = RequestRefusal(403, "host-mismatch", why)
        record_refusal(self._shared.recorder, self._host.name, None, refusal, {"serverName": name})
        self.abort()

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            self.log.warn("a tunnel to {host} failed: {why}", host=self._host.name, why=failure.getErrorMessage())
            if self._spliced:
                self._splice.reset()
            else:
                self.abort()
