"""
The floor of our proxy in ``mitm.py``: a relay with the same TLS on both sides, the same buffers and the same reactor,
which judges nothing and records nothing. What it costs is the price of Python, of Twisted's TLS and of the kernel.

    python -m benchmarks.mitm_relay DIRECTORY CA_FILE PORT
"""

from __future__ import annotations

import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.python.failure import Failure

from benchmarks.mitm_peers import HOST, REAL_KEY
from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.mitm_proxy.tls import ClientSide, ServerSide
from ironcurtain.services.stream import adopt
from ironcurtain.services.unix_socket import listen

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class End(Protocol):
    """One end of a tunnel, inside TLS: writes what it gets to the other end."""

    transport: Any
    other: End

    def dataReceived(self, data: bytes) -> None:
        self.other.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.other.transport is not None and self.other.transport.connected:
            self.other.transport.transport.abortConnection()


class Tunnel(Protocol):
    """
    An agent's connection: whatever it asks for, it gets a tunnel to the provider.

    :param provider: a port of 127.0.0.1.
    """

    transport: Any

    def __init__(self, server: ServerSide, client: ClientSide, provider: int) -> None:
        self._server, self._client, self._provider = server, client, provider
        self._asked = b""
        self._tls: Any = None

    def dataReceived(self, data: bytes) -> None:
        if self._tls is not None:
            self._tls.dataReceived(data)
            return
        self._asked += data
        if self._asked.endswith(b"\r\n\r\n"):
            self.transport.pauseProducing()
            Deferred.fromCoroutine(self._open()).addErrback(lambda failure: failure.printTraceback())

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._tls is not None:
            self._tls.connectionLost(reason)

    async def _open(self) -> None:
        agent, provider = End(), End()
        agent.other, provider.other = provider, agent
        reached = socket.create_connection(("127.0.0.1", self._provider))
        reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await adopt(reached, self._client.wrap(provider))
        self._tls = self._server.wrap(agent)
        self.transport.write(ESTABLISHED)
        self._tls.makeConnection(self.transport)
        self.transport.resumeProducing()


class Tunnels(ServerFactory):
    """Creates the tunnels, see :class:`Tunnel`."""

    noisy = False

    def __init__(self, server: ServerSide, client: ClientSide, provider: int) -> None:
        self._sides = server, client, provider

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        return Tunnel(*self._sides)


def serve(top: Path, ca_file: str, provider: int) -> None:
    """Run the relay. It prints the key that agents send once it listens."""
    from twisted.internet.asyncioreactor import install

    install()
    from twisted.internet import reactor as the_reactor

    reactor: Any = the_reactor
    authority = Authority.load_or_make(top / "ca", time.time)
    factory = Tunnels(ServerSide(partial(authority.leaf, HOST)), ClientSide(HOST, ca_file), provider)

    async def start() -> None:
        await listen(top / "mitm.sock", factory, None, 1024)
        print(REAL_KEY, flush=True)

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(start()).addErrback(lambda f: f.printTraceback()))
    reactor.run()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
