"""
Connect git, in its sandbox, to its one destination: byte for byte, in threads.

Names are looked up here at each connection, and the address that was checked is the one that is dialled.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401  # for looking up names; another account may be unable to read it later
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread

from ironcurtain.errors import ProtocolViolation, Unavailable
from ironcurtain.http.head import HeadReader
from ironcurtain.sandbox.handover import Handover
from ironcurtain.servers.git_remote.destinations import Destination

CONNECT_SECONDS = 10.0
"""Time limit in seconds for each attempt to connect."""

ATTEMPTS = 3
"""Maximum number of addresses tried for one connection."""

CONNECTIONS = 32
"""Connections at the same time; more are reset."""

REQUEST_LIMIT = 16 * 1024
"""Maximum size in bytes of git's request for a tunnel."""

_CHUNK = 64 * 1024
_RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER in socket(7): what is closed is reset."""


class Relay:
    """
    The connections of one sandbox.

    :ivar handover: its sandbox inherits the other end.
    :ivar problems: why connections were not made, in words.
    """

    def __init__(self, destination: Destination) -> None:
        self._destination, self.problems = destination, list[str]()
        self.handover = Handover((destination.listener,))
        self._lock, self._stopped = Lock(), False
        self._open = set[socket.socket]()

    def run(self) -> None:
        """Wait for the listening socket of the sandbox, and serve its connections until :meth:`stop`."""
        try:
            (listening,) = self.handover.take().values()
        except Unavailable:  # whoever started the sandbox hears why
            return
        threads = list[Thread]()
        with listening, self._kept(listening), suppress(OSError):  # it was stopped
            while True:
                near, _ = listening.accept()
                threads = [thread for thread in threads if thread.is_alive()]
                if len(threads) >= CONNECTIONS:
                    _reset(near)
                    near.close()
                    continue
                threads.append(_started(self._serve, near))
        for thread in threads:
            thread.join()

    def stop(self) -> None:
        """End all connections."""
        self.handover.theirs.close()
        with self._lock:
            self._stopped = True
            for each in self._open:
                _shut(each)

    @contextmanager
    def _kept(self, connection: socket.socket) -> Iterator[None]:
        """Let :meth:`stop` end a connection during the block."""
        with self._lock:
            if self._stopped:
                _shut(connection)
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)

    def _serve(self, near: socket.socket) -> None:
        with near, self._kept(near):
            try:
                far = self._dial()
            except (OSError, UnicodeError, Unavailable) as e:  # names too long for the DNS
                self.problems.append(f"the connection to {self._destination} cannot be made: {e}")
                _reset(near)
                return
            with far, self._kept(far):
                if self._destination.negotiates and not self._introduce(near, far):
                    return
                back = _started(_copy, far, near)
                _copy(near, far)
                back.join()

    def _introduce(self, near: socket.socket, far: socket.socket) -> bool:
        """
        Pass on git's request for a tunnel, with a token.

        :returns: whether there was one; otherwise both connections are reset.
        """
        from ironcurtain.http.negotiate import Negotiation, NegotiationFailed  # few proxies need it

        reader, found = HeadReader(REQUEST_LIMIT), None
        try:
            while found is None and (data := near.recv(_CHUNK)):
                found = reader.feed(data)
            if found is not None and found[0].startswith(b"CONNECT "):
                token = Negotiation(self._destination.host).begin().reveal()
                far.sendall(b"%b\r\nProxy-Authorization: %b\r\n\r\n%b" % (found[0], token.encode(), found[1]))
                return True
        except (OSError, ProtocolViolation):
            pass
        except NegotiationFailed as e:
            self.problems.append(f"the proxy {self._destination} cannot be used: {e}")
        for each in (near, far):
            _reset(each)
        return False

    def _dial(self) -> socket.socket:
        destination = self._destination
        found = socket.getaddrinfo(destination.dialled, destination.port, type=socket.SOCK_STREAM)
        addresses = [str(address[0]).partition("%")[0] for *_, address in found]
        permitted = [address for address in addresses if destination.permits(address)]
        if not permitted:
            raise Unavailable(
                f"it has the address {addresses[0]}, which belongs to this machine or its link; nothing was sent"
            )
        failed: OSError | None = None
        for address in permitted[:ATTEMPTS]:
            try:
                far = socket.create_connection((address, destination.port), CONNECT_SECONDS)
            except OSError as e:
                failed = e
                continue
            far.settimeout(None)
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return far
        assert failed is not None
        raise failed


@contextmanager
def relayed(destination: Destination) -> Iterator[Relay]:
    """:returns: a relay that serves until the block ends."""
    relay = Relay(destination)
    thread = _started(relay.run)
    try:
        yield relay
    finally:
        relay.stop()
        thread.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy all bytes, and their end; an error of one connection resets both."""
    try:
        while data := source.recv(_CHUNK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, sink):
            _reset(each)


def _reset(connection: socket.socket) -> None:
    """End a connection in a way that the peer takes for a failure, once it is closed."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.shutdown(socket.SHUT_RD)  # wakes up the thread that reads it; the end of writing would look well


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _started(work: Callable[..., None], *arguments: socket.socket) -> Thread:
    thread = Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread
