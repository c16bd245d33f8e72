"""Listen on a UNIX socket that only one account may use."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from twisted.internet.interfaces import IProtocolFactory
from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home import SOCKET_PATH_LIMIT
from ironcurtain.stream import serve

PROBE_SECONDS = 1.0
"""How long a socket that is there may take to accept, before it counts as in use."""


PEER_CREDENTIALS = struct.Struct("3i")
"""pid, uid and gid of a UNIX socket's peer (socket(7), SO_PEERCRED)."""

log = Logger()


class UnixListener:
    """A socket that is listened on, with its file."""

    def __init__(self, server: asyncio.Server, path: Path) -> None:
        self._server, self._path, self._number = server, path, _number(path)

    @property
    def alive(self) -> bool:
        """Whether clients still come in: the socket is open, and its file is the one that was made."""
        return self._server.is_serving() and _number(self._path) == self._number

    async def stop(self) -> None:
        """Let nobody in any more, and remove the file."""
        self._server.close()
        if _number(self._path) == self._number:
            with suppress(FileNotFoundError):
                self._path.unlink()


def peer_uid(connection: socket.socket) -> int:
    """:returns: the uid that whoever connected to a UNIX socket had when it did."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size)
    _, uid, _ = PEER_CREDENTIALS.unpack(raw)
    return int(uid)


def admitting(owner: tuple[int, int] | None) -> Callable[[socket.socket], bool]:
    """
    :returns: what says whether a client may use a socket of ours: its mode says the same, but others can change that.
    """
    may = {0, os.geteuid(), *(owner[:1] if owner is not None else ())}

    def admits(connection: socket.socket) -> bool:
        uid = peer_uid(connection)
        if uid not in may:
            log.warn("user {uid} was not let in at {path}", uid=uid, path=connection.getsockname())
        return uid in may

    return admits


async def listen(path: Path, factory: IProtocolFactory, owner: tuple[int, int] | None = None) -> UnixListener:
    """
    Listen, with mode 0600, and whatever becomes of that, for the owner, root and us alone. Clients' transports are
    :class:`~ironcurtain.stream.Stream`. The reactor must run.

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
    with ExitStack() as undo:
        listening = undo.enter_context(socket.socket(socket.AF_UNIX))
        _bind(listening, path)
        undo.callback(path.unlink, missing_ok=True)
        if owner is not None:
            os.chown(path, *owner, follow_symlinks=False)
        server = await serve(listening, factory, admitting(owner))
        undo.pop_all()
    return UnixListener(server, path)


def _bind(listening: socket.socket, path: Path) -> None:
    mask = os.umask(0o177)  # the socket's mode comes from it alone
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
