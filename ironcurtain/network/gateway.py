"""
What accepts the connections of one sandbox: relays to the listed hosts, answers to name queries, and the proxy.

Its sockets were made inside the sandbox's network, see :mod:`ironcurtain.sandbox.handover`; nothing runs inside.
"""

from __future__ import annotations

import socket
import typing
from collections.abc import Callable, Mapping
from struct import unpack
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort, IReactorFDSet, IReactorSocket
from twisted.internet.protocol import DatagramProtocol, Factory, Protocol
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError
from ironcurtain.network.access import NAMES, PROXY, Access, listeners
from ironcurtain.network.judge import NetworkJudge
from ironcurtain.network.name_answers import QUERY_LIMIT, answer
from ironcurtain.network.relay import Dialer, Relay
from ironcurtain.sandbox.awaited_sockets import awaited_sockets
from ironcurtain.sandbox.handover import Handover, Sockets
from ironcurtain.sandbox.spec import Listener
from ironcurtain.services.client_limits import ClientAdmission
from ironcurtain.services.stream import FlowSignal, serve


class HttpProxy(typing.Protocol):
    """The proxy for programs that know one; see :class:`ironcurtain.mitm_proxy.proxy.MitmProxy`."""

    async def start(self) -> None:
        """Get ready."""

    async def accept(self, listening: socket.socket) -> object:
        """Accept clients on a listening socket, which it owns from now on."""

    async def stop(self) -> None:
        """Stop listening, and end all connections."""


class GatewayReactor(IReactorFDSet, IReactorSocket):
    """The parts of a reactor that a gateway needs."""


class Gateway:
    """
    For one run of a sandbox.

    :param judge: asked for each connection.
    :param proxy: ``None``: programs reach the listed hosts only.
    :param tell: called with a sentence about each connection that is not made, and if there is no network at all.
    """

    log = Logger()

    def __init__(
        self,
        access: Access,
        judge: NetworkJudge,
        dialer: Dialer,
        reactor: GatewayReactor,
        *,
        proxy: HttpProxy | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._access, self._judge, self._dialer, self._reactor = access, judge, dialer, reactor
        self._proxy, self._tell = proxy, tell
        self._servers: list[Any] = []
        self._ports: list[IListeningPort] = []
        self._relays: list[Relay] = []
        self._stopped = False
        self._coming: Deferred[Sockets] | None = None
        self._open: Deferred[None] | None = None

    def handover(self) -> Handover:
        """
        Wait for the sockets of a sandbox that has :func:`listeners`, and accept on them.

        :returns: what the sandbox inherits.
        """
        handover = Handover(listeners(self._access, self._proxy is not None))
        self._coming = awaited_sockets(handover, self._reactor)
        self._open = Deferred.fromCoroutine(self._accept(self._coming)).addErrback(self._failed)
        return handover

    async def stop(self) -> None:
        """Stop listening, and reset all connections."""
        self._stopped = True
        if self._coming is not None:
            self._coming.cancel()
        if self._open is not None:
            await self._open
        for server in self._servers:
            server.close()
        for relay in self._relays:
            relay.close()
        for port in self._ports:
            await _stopped(port)
        if self._proxy is not None:
            await self._proxy.stop()

    async def _accept(self, coming: Deferred[Sockets]) -> None:
        waiting = dict(await coming)
        try:
            if self._proxy is not None:
                await self._proxy.start()
            while waiting and not self._stopped:
                listener, listening = waiting.popitem()
                await self._serve(listener, listening)
        finally:
            for listening in waiting.values():
                listening.close()

    async def _serve(self, listener: Listener, listening: socket.socket) -> None:
        if listener == PROXY and self._proxy is not None:
            await self._proxy.accept(listening)
        elif listener.datagrams:
            listening.setblocking(False)  # which the reactor relies on
            with listening:  # the reactor's port has a copy
                names = _NamesByDatagram(self._access.addresses)
                self._ports.append(
                    self._reactor.adoptDatagramPort(listening.fileno(), socket.AF_INET, names, QUERY_LIMIT)
                )
        elif listener in NAMES:
            self._servers.append(await serve(listening, _NamesByStream(self._access.addresses), ClientAdmission()))
        else:
            relay = Relay(self._access.relayed[listener], self._judge, self._dialer, self._tell)
            self._relays.append(relay)
            self._servers.append(await serve(listening, relay, ClientAdmission()))

    def _failed(self, failure: Any) -> None:
        if self._stopped:
            return
        if failure.check(IronCurtainError) is None:
            self.log.failure("a sandbox has no network", failure)
        self._tell(f"IronCurtain: no network: {failure.getErrorMessage()}")


class WayOut(msgspec.Struct, frozen=True):
    """
    How connections of sandboxes leave this machine.

    :param proxy: makes a proxy for programs that know one, which asks a judge about what is permitted; ``None``: there
        is none.
    """

    reactor: GatewayReactor
    dialer: Dialer
    proxy: Callable[[NetworkJudge, Access], HttpProxy] | None = None

    def gateway(self, access: Access, judge: NetworkJudge, tell: Callable[[str], None]) -> Gateway:
        """:returns: a gateway for one run of a sandbox."""
        proxy = None if self.proxy is None else self.proxy(judge, access)
        return Gateway(access, judge, self.dialer, self.reactor, proxy=proxy, tell=tell)

    def without_proxy(self, access: Access, judge: NetworkJudge, tell: Callable[[str], None]) -> Gateway:
        """:returns: a gateway by which listed hosts are reached only as hosts."""
        return Gateway(access, judge, self.dialer, self.reactor, tell=tell)


async def _stopped(port: IListeningPort) -> None:
    stopping = port.stopListening()
    if isinstance(stopping, Deferred):
        await stopping


class _NamesByDatagram(DatagramProtocol):
    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses

    def datagramReceived(self, datagram: bytes, addr: Any) -> None:
        if (reply := answer(datagram, self._addresses)) is not None and self.transport is not None:
            self.transport.write(reply, addr)


class _NamesByStream(Factory):
    noisy = False

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self.addresses = addresses

    def buildProtocol(self, addr: Any) -> Protocol:
        return _NameStream(self.addresses)


class _NameStream(Protocol):
    """Messages with their length before them (RFC 1035, section 4.2.2)."""

    transport: Any

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses, self._data = addresses, b""

    def connectionMade(self) -> None:
        self.transport.registerProducer(FlowSignal(self._choke), True)

    def dataReceived(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 2:
            (size,) = unpack(">H", self._data[:2])
            if size > QUERY_LIMIT:
                self.transport.abortConnection()
                return
            if len(self._data) < 2 + size:
                return
            query, self._data = self._data[2 : 2 + size], self._data[2 + size :]
            reply = answer(query, self._addresses)
            if reply is None:
                self.transport.abortConnection()
                return
            self.transport.write(len(reply).to_bytes(2, "big") + reply)

    def _choke(self, choked: bool) -> None:
        """Read no more queries while the program does not read the answers, which are in memory."""
        if choked:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()
