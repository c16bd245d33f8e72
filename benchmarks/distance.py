"""A network that takes its time, for benchmarks on one machine: what passes through a port arrives later."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator


@contextlib.contextmanager
def distant(port: int, seconds: float) -> Iterator[int]:
    """
    Another port of this machine for one that listens.

    :param seconds: that bytes take each way; 0: it is the port itself.
    """
    if not seconds:
        yield port
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, port, seconds), daemon=True).start()
        yield int(listening.getsockname()[1])


def _accept(listening: socket.socket, port: int, seconds: float) -> None:
    with contextlib.suppress(OSError):  # it is closed at the end
        while True:
            near, far = listening.accept()[0], socket.create_connection(("127.0.0.1", port))
            for source, target in ((near, far), (far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
                passing: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                threading.Thread(target=_read, args=(source, passing, seconds), daemon=True).start()
                threading.Thread(target=_write, args=(target, passing), daemon=True).start()


def _read(source: socket.socket, passing: queue.SimpleQueue[tuple[float, bytes]], seconds: float) -> None:
    data = b"more"
    while data:
        try:
            data = source.recv(65536)
        except OSError:
            data = b""
        passing.put((time.monotonic() + seconds, data))


def _write(target: socket.socket, passing: queue.SimpleQueue[tuple[float, bytes]]) -> None:
    with contextlib.suppress(OSError):
        while True:
            at, data = passing.get()
            time.sleep(max(0.0, at - time.monotonic()))
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)
