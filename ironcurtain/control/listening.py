"""
Listen for clients of the control API.

What serves them is imported when the first one comes: a session in a terminal has none as a rule, and Twisted's web
server is slow to import.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.protocol import Factory, Protocol

from ironcurtain.home.layout import private_directory, socket_path
from ironcurtain.operations.operations import Operations


class ControlApi(Factory):
    """Makes the server when the first client comes."""

    noisy = False

    def __init__(self, reactor: Any, operations: Operations) -> None:
        self._reactor, self._operations = reactor, operations
        self._site: Any = None

    def buildProtocol(self, addr: IAddress | None) -> Protocol | None:
        """Serve a client."""
        if self._site is None:
            from ironcurtain.control.server import make_site

            self._site = make_site(self._reactor, self._operations)
            self._site.doStart()
        protocol: Protocol | None = self._site.buildProtocol(addr)
        return protocol

    def stopFactory(self) -> None:
        """Stop the server."""
        if self._site is not None:
            self._site.doStop()


def listen(reactor: Any, path: Path, operations: Operations) -> IListeningPort:
    """
    Serve the control API.

    :param path: path of the socket; a stale socket of a dead process is removed.
    """
    private_directory(path.parent)
    path.unlink(missing_ok=True)
    clients = ControlApi(reactor, operations)
    port: IListeningPort = reactor.listenUNIX(socket_path(path), clients, mode=0o600, wantPID=False)
    return port
