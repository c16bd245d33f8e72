"""How much of everything one session's agent may use of the proxy, and the bodies that count towards it."""

from __future__ import annotations

from dataclasses import dataclass

from ironcurtain.providers.bodies import BODY_LIMIT, too_large
from ironcurtain.providers.provider import RequestRefusal

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MitmLimits:
    """
    Times are in seconds.

    :param connections: at a time.
    :param buffered_bytes: of request bodies that wait until they have been inspected, all together.
    :param head_seconds: for the CONNECT request and the TLS handshake together, and for a request's head once begun.
    :param body_seconds: for a request's body.
    :param idle_seconds: a connection may stay open without a request.
    :param silence_seconds: a provider may send nothing while it answers; models think for minutes.
    :param answer_seconds: for one request and its answer together.
    :param connect_seconds: for finding a provider's addresses, and for each attempt to reach one.
    :param linger_seconds: a connection that we close waits for the client to have read what we wrote.
    :param provider_idle_seconds: an unused connection to a provider is kept.
    :param provider_idle: unused connections to one provider.
    """

    connections: int = 64
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


@dataclass(slots=True)
class BufferedBytes:
    """How many bytes of bodies a session buffers now, and how many it may."""

    limit: int
    bytes: int = 0


class BufferedBody:
    """
    A request's body that waits until it is whole and can be inspected.

    :param buffered: counts it, until :meth:`release`.
    """

    def __init__(self, buffered: BufferedBytes) -> None:
        self._buffered = buffered
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, payload: bytes) -> RequestRefusal | None:
        """:returns: why no more of it is taken, if so."""
        self._size += len(payload)
        self._buffered.bytes += len(payload)
        if self._size > BODY_LIMIT:
            return too_large()
        if self._buffered.bytes > self._buffered.limit:
            return RequestRefusal(503, "too-much-at-once", "too many large requests are under way: try again later")
        if payload:
            self._pieces.append(payload)
        return None

    def whole(self) -> bytes:
        """:returns: all of it."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def release(self) -> None:
        """It is sent, or thrown away."""
        self._buffered.bytes -= self._size
        self._size = 0
        self._pieces.clear()
