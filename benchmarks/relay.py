"""
A relay that understands nothing: a UNIX socket on one side, a child's standard input and output on the other.

What it costs is what any process in the middle costs; ``tool_call.py`` measures the MCP proxy against it::

    python benchmarks/relay.py SOCKET COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from twisted.internet import asyncioreactor

asyncioreactor.install()

from twisted.internet import reactor as the_reactor  # noqa: E402
from twisted.internet.endpoints import UNIXServerEndpoint  # noqa: E402
from twisted.internet.interfaces import IAddress  # noqa: E402
from twisted.internet.protocol import Factory, ProcessProtocol, Protocol, ServerFactory  # noqa: E402

reactor: Any = the_reactor


class Pump(Protocol):
    """One side; what it reads, the other side writes."""

    other: Pump
    transport: Any

    def connectionMade(self) -> None:
        """Both sides stop reading where the other does not write."""
        if hasattr(self, "other"):
            self.transport.registerProducer(self.other.transport, True)
            self.other.transport.registerProducer(self.transport, True)

    def dataReceived(self, data: bytes) -> None:
        """Pass it on."""
        self.other.transport.write(data)

    def connectionLost(self, reason: Any = None) -> None:
        """End the other side too."""
        if hasattr(self, "other"):
            self.other.transport.abortConnection()


class Relay(Factory):
    """
    A child for each connection.

    :param command: runs it.
    """

    noisy = False

    def __init__(self, command: list[str]) -> None:
        self._command = command

    def buildProtocol(self, addr: IAddress | None) -> Pump:
        """Start the child and join the two."""
        agent, child = Pump(), Pump()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            reactor.spawnProcess(
                ProcessProtocol(),
                self._command[0],
                self._command,
                dict(os.environ),
                childFDs={0: theirs.fileno(), 1: theirs.fileno(), 2: 2},
            )
            reactor.adoptStreamConnection(ours.fileno(), socket.AF_UNIX, _One(child))
        agent.other, child.other = child, agent
        return agent


class _One(ServerFactory):
    def __init__(self, pump: Pump) -> None:
        self._pump = pump

    def buildProtocol(self, addr: IAddress | None) -> Pump:
        return self._pump


def main() -> None:
    """Serve until killed."""
    path, *command = sys.argv[1:]
    reactor.callWhenRunning(UNIXServerEndpoint(reactor, path, mode=0o600).listen, Relay(command))
    reactor.run()


if __name__ == "__main__":
    main()
