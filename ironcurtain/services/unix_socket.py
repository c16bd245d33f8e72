"""Listen on a UNIX socket for one account only."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from twisted.internet.interfaces import IProtocolFactory

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.layout import SOCKET_PATH_LIMIT
from ironcurtain.platform.sockets import peer_uid
from ironcurtain.services.client_limits import CLIENTS, ClientAdmission
from ironcurtain.services.stream import serve

PROBE_SECONDS = 1.0
"""Time limit in seconds for connecting to an existing socket, after which it counts as in use."""


class UnixListener:
    """A listening socket, with its file."""

    def __init__(self, server: asyncio.Server, path: Path) -> None:
        self._server, self._path, self._number = server, path, _number(path)

    @property
    def alive(self) -> bool:
        """Whether clients can connect: the socket is open, and its file is the original one."""
        return self._server.is_serving() and _number(self._path) == self._number

    async def stop(self) -> None:
        """Stop listening, and remove the file."""
        self._server.close()
        if _number(self._path) == self._number:
            with suppress(FileNotFoundError):
                self._path.unlink()


class SocketAdmission(ClientAdmission):
    """
    Decides who may use a socket. The socket's mode restricts users, too, but others can change that.

    :param owner: uid and gid of its user; this process and root may always connect.
    """

    def __init__(
        self,
        owner: tuple[int, int] | None,
        clients: int = CLIENTS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(clients, now)
        self._may = {0, os.geteuid(), *(owner[:1] if owner is not None else ())}

    def refusal(self, connection: socket.socket) -> str:
        """See :class:`~ironcurtain.services.client_limits.ClientAdmission`."""
        if (uid := peer_uid(connection)) not in self._may:
            return f"the socket is not for user {uid}"
        return super().refusal(connection)


async def listen(
    path: Path, factory: IProtocolFactory, owner: tuple[int, int] | None = None, clients: int = CLIENTS
) -> UnixListener:
    """
    Listen, with mode 0600, and accept only the owner, root and this user, whatever the mode becomes. Clients'
    transports are :class:`~ironcurtain.services.stream.AsyncioTransport`. The reactor must be running.

    :param path: its directory is created if missing; a stale socket of a dead process is removed.
    :param owner: uid and gid of its user, if not those of this process.
    :param clients: maximum number at a time.
    :raises ConfigurationError: the path is too long.
    :raises Unavailable: others could replace the socket, or another file is at the path.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise ConfigurationError(str(path), f"a socket's path has at most {SOCKET_PATH_LIMIT} bytes: use a shorter one")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_directory(path.parent, owner)
    _remove_stale(path)
    with ExitStack() as undo:
        listening = undo.enter_context(socket.socket(socket.AF_UNIX))
        _bind(listening, path)
        undo.callback(path.unlink, missing_ok=True)
        if owner is not None:
            os.chown(path, *owner, follow_symlinks=False)
        server = await serve(listening, factory, SocketAdmission(owner, clients))
        undo.pop_all()
    return UnixListener(server, path)


def _bind(listening: socket.socket, path: Path) -> None:
    mask = os.umask(0o177)  # the umask determines the socket's mode
    try:
        listening.bind(str(path))
    finally:
        os.umask(mask)


def _number(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
        raise Unavailable(f"{path} exists and is not a socket: remove it")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as e:
            raise Unavailable(f"cannot use {path}: {e}") from None
    raise Unavailable(f"{path} is in use by another process")
