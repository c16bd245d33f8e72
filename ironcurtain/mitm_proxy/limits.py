"""Limits on one session's use of the proxy, and buffered bodies, which count towards them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ironcurtain.providers.bodies import BODY_LIMIT, too_large
from ironcurtain.providers.provider import RequestRefusal

MIB = 1024 * 1024


class MitmLimits(msgspec.Struct, frozen=True):
    """
    Times are in seconds.

    :param connections: served at a time.
    :param waiting: connections that wait, unread, until others end; further ones are closed.
    :param buffered_bytes: total size of request bodies that wait for inspection.
    :param head_seconds: for the CONNECT request and the TLS handshake together, and for a request's head once begun.
    :param body_seconds: for a request's body.
    :param idle_seconds: for a connection without a request.
    :param silence_seconds: without a byte from a provider; models think for minutes.
    :param answer_seconds: for one request and its response together.
    :param connect_seconds: for resolving a provider's host, and for each connection attempt.
    :param linger_seconds: between closing a connection and aborting it, for the client to read the output.
    :param provider_idle_seconds: for an unused connection to a provider.
    :param provider_idle: unused connections to one provider.
    """

    connections: int = 256
    waiting: int = 256
    buffered_bytes: int = 64 * MIB
    head_seconds: float = 15.0
    body_seconds: float = 120.0
    idle_seconds: float = 300.0
    silence_seconds: float = 600.0
    answer_seconds: float = 3600.0
    connect_seconds: float = 10.0
    linger_seconds: float = 2.0
    provider_idle_seconds: float = 30.0
    provider_idle: int = 64

    @property
    def clients(self) -> int:
        """Connections that are accepted at a time."""
        return self.connections + self.waiting


class BufferedBytes(msgspec.Struct):
    """Number of bytes of bodies that a session buffers, and its limit."""

    limit: int
    bytes: int = 0


class BufferedBody:
    """
    A request's body, buffered until it is complete and can be inspected.

    :param buffered: counts its bytes until :meth:`release`.
    :param limit: maximum size of the body in bytes.
    """

    def __init__(self, buffered: BufferedBytes, limit: int = BODY_LIMIT) -> None:
        self._buffered, self._limit = buffered, limit
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, payload: bytes) -> RequestRefusal | None:
        """:returns: why the limit refuses the payload; ``None`` if it was added."""
        self._size += len(payload)
        self._buffered.bytes += len(payload)
        if self._size > self._limit:
            return too_large(self._limit)
        if self._buffered.bytes > self._buffered.limit:
            return RequestRefusal(503, "too-much-at-once", "too many large requests are under way: try again later")
        if payload:
            self._pieces.append(payload)
        return None

    def whole(self) -> bytes:
        """:returns: the complete body."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def hand_over(self) -> Callable[[], None]:
        """
        Somebody else keeps the body.

        :returns: a function that stops counting it.
        """
        self._pieces.clear()
        return self.release

    def release(self) -> None:
        """Stop counting the body: it was sent or discarded."""
        self._buffered.bytes -= self._size
        self._size = 0
        self._pieces.clear()
