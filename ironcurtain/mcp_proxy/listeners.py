"""Where agents come in: a UNIX socket, or our own standard input and output."""

from __future__ import annotations

import os
import select
import socket
import stat
from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.interfaces import IAddress, IListeningPort, IReactorFDSet, IReactorTime, IReactorUNIX
from twisted.internet.protocol import ServerFactory
from twisted.internet.stdio import StandardIO

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home import SOCKET_PATH_LIMIT
from ironcurtain.mcp_proxy.connection import AgentConnection

PROBE_SECONDS = 1.0
"""How long a socket that is there may take to accept, before it counts as in use."""

POLL_RDHUP = getattr(select, "POLLRDHUP", 0)

Build = Callable[[Callable[[AgentConnection], bool]], AgentConnection]
"""Makes a connection; takes how to find out whether its peer has left altogether."""


class ListenerReactor(IReactorUNIX, IReactorTime, IReactorFDSet):
    """The parts of a reactor that the listeners need."""


async def listen_unix(
    reactor: ListenerReactor, path: Path, build: Build, owner: tuple[int, int] | None = None
) -> IListeningPort:
    """
    Listen on a UNIX socket that only one uid may use.

    :param path: its directory is made if it is missing; a socket that a dead process left there is removed.
    :param owner: uid and gid of who may use it, if not we.
    :raises ConfigurationError: the path is too long.
    :raises Unavailable: others could replace the socket, or something else is in the way.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise ConfigurationError(str(path), f"a socket's path has at most {SOCKET_PATH_LIMIT} bytes: use a shorter one")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_directory(path.parent, owner)
    _remove_stale(path)
    mask = os.umask(0o177)  # the socket is there, for a moment, before its mode is set
    try:
        endpoint = UNIXServerEndpoint(reactor, str(path), mode=0o600, wantPID=False)
        port: IListeningPort = await endpoint.listen(_Connections(build, _hung_up))
    finally:
        os.umask(mask)
    if owner is not None:
        os.chown(path, *owner, follow_symlinks=False)
    return port


def serve_stdio(reactor: ListenerReactor, build: Build, stdin: int = 0, stdout: int = 1) -> Deferred[None]:
    """
    Serve the one agent that is at our standard input and output.

    :returns: fires when it has gone. The descriptors stay open: the process is expected to end.
    """
    connection = build(lambda _: False)
    StandardIO(connection, stdin, stdout, reactor)  # type: ignore[call-arg]  # mypy takes the one for Windows
    return connection.ended


class _Connections(ServerFactory):
    noisy = False

    def __init__(self, build: Build, gone: Callable[[AgentConnection], bool]) -> None:
        self._build, self._gone = build, gone

    def buildProtocol(self, addr: IAddress | None) -> AgentConnection:
        return self._build(self._gone)


def _hung_up(connection: AgentConnection) -> bool:
    """Whether the peer closed its socket, and not only its sending half (poll(2): POLLHUP)."""
    descriptor: int = connection.transport.fileno()  # type: ignore[attr-defined]
    poll = select.poll()
    poll.register(descriptor, POLL_RDHUP)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _check_directory(directory: Path, owner: tuple[int, int] | None) -> None:
    found = directory.stat()
    owners = {0, os.geteuid(), *(owner[:1] if owner is not None else ())}
    open_to_others = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
    if found.st_uid not in owners or open_to_others:
        raise Unavailable(f"others could replace a socket in {directory}: use a directory with mode 0700")


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise Unavailable(f"{path} is in the way and is no socket: remove it")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as e:
            raise Unavailable(f"{path} is in the way: {e}") from None
    raise Unavailable(f"{path} is in use by another process")
