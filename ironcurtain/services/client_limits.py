"""Limit the number of clients of one listening socket, and the file descriptors that they leave to the rest."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable

from twisted.logger import Logger

from ironcurtain.services.rate_limit import Pace

CLIENTS = 256
"""Maximum number of clients of one socket, unless it has a limit of its own (an agent's programs open some twenty)."""

DESCRIPTORS_KEPT = 256
"""
Number of the process's file descriptors that clients of these sockets leave to the control API, SSH and programs; at
most a quarter of all.
"""

REFUSAL_SECONDS = 10.0
"""Minimum seconds between log messages on refused clients of one socket."""


class ClientAdmission:
    """
    Decides which clients of a socket are accepted.

    :param clients: maximum number at a time.
    :param now: returns seconds, to limit log messages.
    """

    log = Logger()

    def __init__(self, clients: int = CLIENTS, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clients = clients, 0
        self._pace = Pace(1, lambda: now() / REFUSAL_SECONDS)

    def enter(self, connection: socket.socket) -> bool:
        """:returns: whether a client may stay; then it counts until :meth:`leave`."""
        if why := self.refusal(connection):
            if (more := self._pace.take()) is not None:
                before = f", as were {more} since the last message" if more else ""
                path = connection.getsockname()
                self.log.warn("a client at {path} was refused{before}: {why}", path=path, before=before, why=why)
            return False
        self._clients += 1
        return True

    def leave(self) -> None:
        """A client disconnected."""
        self._clients -= 1

    def refusal(self, connection: socket.socket) -> str:
        """:returns: why a client may not stay; empty if it may."""
        if self._clients >= self._most:
            return f"there are already {self._most}"
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        kept = min(DESCRIPTORS_KEPT, most // 4)
        if connection.fileno() >= most - kept:  # the kernel assigns the lowest free number
            return f"the last {kept} file descriptors of this process are not for clients"
        return ""
