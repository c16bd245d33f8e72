"""Sockets: who has connected, who is gone, and how silence is noticed."""

from __future__ import annotations

import select
import socket
import struct
import sys

_LINUX_PEER = struct.Struct("3i")
"""pid, uid and gid of a UNIX socket's peer (Linux, socket(7), SO_PEERCRED)."""

_BSD_PEER = struct.Struct("2Ih16I")
"""Version, uid, number of groups and groups (``struct xucred`` of the BSDs and macOS, unix(4), LOCAL_PEERCRED)."""

_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1


def peer_uid(connection: socket.socket) -> int:
    """:returns: the uid of the peer of a UNIX socket when it connected."""
    if sys.platform == "linux":
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _LINUX_PEER.size)
        return int(_LINUX_PEER.unpack(found)[1])
    return int(_BSD_PEER.unpack(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _BSD_PEER.size))[1])


def hung_up(descriptor: int) -> bool:
    """:returns: whether the peer of a UNIX socket closed it, and not only its sending side (poll(2): POLLHUP)."""
    if sys.platform == "linux":
        asked = select.POLLRDHUP
    else:
        asked = 0
    poll = select.poll()
    poll.register(descriptor, asked)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def is_left(descriptor: int) -> bool:
    """
    :returns: whether the peer of a stream socket closed its sending side, which shows while nothing is read, too
        (poll(2), POLLRDHUP). On systems other than Linux: whether it closed both sides.
    """
    if sys.platform == "linux":
        asked = select.POLLRDHUP
    else:
        asked = 0
    poll = select.poll()
    poll.register(descriptor, asked)
    return any(events & (asked | select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))


def keep_alive(idle: int, interval: int, count: int) -> tuple[tuple[int, int, int], ...]:
    """
    :param idle: seconds of silence before the kernel asks whether a TCP peer is there.
    :param interval: seconds between its further questions.
    :param count: number of unanswered questions that end the connection.
    :returns: options of a socket: level, option and value.
    """
    if sys.platform == "darwin":
        first = socket.TCP_KEEPALIVE
    else:
        first = socket.TCP_KEEPIDLE
    return (
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, first, idle),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, interval),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, count),
    )
