"""
TCP ports of this machine for one sidecar: whoever connects has to prove first that it knows the session's secret.

Every program of this machine can connect to such a port, of other users, too. Until the proof is complete, nothing that
a client sends reaches a proxy, and the proxy says nothing. :mod:`ironcurtain.container.sidecar_program` describes it.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IHalfCloseableProtocol,
    IProtocol,
    IProtocolFactory,
    IReactorTime,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.container.sidecar_program import PART, proof
from ironcurtain.errors import ProtocolViolation
from ironcurtain.secrets.redaction import Secret
from ironcurtain.services.client_limits import REFUSAL_SECONDS
from ironcurtain.services.rate_limit import Pace
from ironcurtain.services.stream import Wrap

UNPROVEN = 32
"""
Maximum number of clients of one port that have not proved anything yet. The oldest has to go when another one comes, so
that clients which only wait keep nobody out: a sidecar needs milliseconds.
"""

PROVE_SECONDS = 5.0
"""Time limit in seconds for the proof."""

Accept = Callable[[socket.socket, Wrap], Awaitable[asyncio.Server]]
"""Lets a proxy accept on a bound socket."""


class HostProof:
    """
    The host's side of the proof of one connection.

    :param name: of the socket for which the port is.
    :param number: the host's random number, of :data:`PART` bytes: what to send first.
    """

    def __init__(self, secret: bytes, name: str, number: bytes) -> None:
        self._secret, self._name, self._number = secret, name.encode(), number
        self._read = bytearray()

    def feed(self, data: bytes) -> bytes | None:
        """
        Take bytes as they come, in any slicing.

        :returns: what to answer, once the client has proved that it knows the secret; ``None`` before.
        :raises ProtocolViolation: it does not know it, or sent more before the answer.
        """
        self._read += data
        if len(self._read) < 2 * PART:
            return None
        numbers = self._number + self._read[:PART]
        if not hmac.compare_digest(bytes(self._read[PART:]), proof(self._secret, b"sidecar", self._name, numbers)):
            raise ProtocolViolation("sidecar", "a wrong proof")
        return proof(self._secret, b"host", self._name, numbers)


class ProvenFactory(Factory):
    """
    Builds the protocols of clients that have proved that they know the secret.

    :param inner: builds what they reach then.
    :param name: of the socket for which the port is.
    :param clock: for the time limit.
    """

    noisy = False
    log = Logger()

    def __init__(self, inner: IProtocolFactory, secret: Secret, name: str, clock: IReactorTime) -> None:
        self._inner, self._secret, self._name, self.clock = inner, bytes.fromhex(secret.reveal()), name, clock
        self._unproven: dict[_Client, None] = {}
        self._clients: set[_Client] = set()
        self._pace = Pace(1, lambda: clock.seconds() / REFUSAL_SECONDS)

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """:returns: a new client's protocol."""
        if len(self._unproven) >= UNPROVEN:
            next(iter(self._unproven)).end()
        client = _Client(self, HostProof(self._secret, self._name, number := os.urandom(PART)), number)
        self._unproven[client] = None
        self._clients.add(client)
        return client

    def proven(self, client: _Client) -> IProtocol | None:
        """:returns: the protocol that a client reaches now; ``None``: it is refused."""
        self._unproven.pop(client, None)
        return self._inner.buildProtocol(None)  # type: ignore[arg-type]  # as for UNIX sockets, nobody looks at it

    def refused(self, why: ProtocolViolation) -> None:
        """Log that a client cannot prove anything, but not each one of many."""
        if (more := self._pace.take()) is not None:
            before = f", as were {more} since the last message" if more else ""
            text = "a client of the port for {name} was refused{before}: {why}"
            self.log.warn(text, name=self._name, before=before, why=why)

    def left(self, client: _Client) -> None:
        """A client disconnected, or has to."""
        self._unproven.pop(client, None)
        self._clients.discard(client)

    def close(self) -> None:
        """End all clients' connections."""
        for client in list(self._clients):
            client.end()


@implementer(IHalfCloseableProtocol)
class _Client(Protocol):
    transport: Any

    def __init__(self, factory: ProvenFactory, host: HostProof, number: bytes) -> None:
        self._factory, self._host, self._number = factory, host, number
        self._inner: IProtocol | None = None
        self._timer: IDelayedCall | None = None

    def connectionMade(self) -> None:
        self._timer = self._factory.clock.callLater(PROVE_SECONDS, self.end)
        self.transport.write(self._number)

    def dataReceived(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.dataReceived(data)
            return
        try:
            answer = self._host.feed(data)
        except ProtocolViolation as e:
            self._factory.refused(e)
            self.end()
            return
        if answer is not None:
            self._stop_timer()
            self.transport.write(answer)
            self._pass_to(self._factory.proven(self))

    def readConnectionLost(self) -> None:
        if IHalfCloseableProtocol.providedBy(self._inner):
            self._inner.readConnectionLost()
        else:
            self.transport.loseConnection()

    def writeConnectionLost(self) -> None:
        pass

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_timer()
        self._factory.left(self)
        if self._inner is not None:
            self._inner.connectionLost(reason)

    def end(self) -> None:
        """End the connection at once."""
        self._stop_timer()
        self._factory.left(self)
        if self.transport is not None:
            self.transport.abortConnection()

    def _pass_to(self, inner: IProtocol | None) -> None:
        if inner is None:
            self.end()
            return
        self._inner = inner
        inner.makeConnection(self.transport)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()


class ProvenPorts:
    """
    The ports for one sidecar.

    :param clock: for time limits.
    :ivar secret: what its connections prove to know, in hexadecimal.
    :ivar ports: by the name of the socket that stands for each.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self.secret = Secret(os.urandom(PART).hex(), "the secret of a sidecar")
        self.ports: dict[str, int] = {}
        self._factories: list[ProvenFactory] = []
        self._servers: list[asyncio.Server] = []

    async def open(self, address: str, name: str, accept: Accept) -> None:
        """
        Open a port that the system chooses.

        :param address: of this machine.
        :param name: of the socket that stands for it.
        :param accept: lets the proxy accept there.
        """
        listening = socket.create_server((address, 0))

        def wrap(inner: IProtocolFactory) -> IProtocolFactory:
            self._factories.append(factory := ProvenFactory(inner, self.secret, name, self._clock))
            return factory

        self.ports[name] = listening.getsockname()[1]
        self._servers.append(await accept(listening, wrap))

    def close(self) -> None:
        """Stop listening, and end all connections."""
        for server in self._servers:
            server.close()
        for factory in self._factories:
            factory.close()
