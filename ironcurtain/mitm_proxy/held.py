"""A request's body that is held back until it is whole and can be inspected."""

from __future__ import annotations

from dataclasses import dataclass

from ironcurtain.mitm_proxy.judgement import Forward
from ironcurtain.providers.bodies import BODY_LIMIT, too_large
from ironcurtain.providers.provider import RequestRefusal


@dataclass(slots=True)
class Kept:
    """How many bytes of bodies a session holds back now, and how many it may."""

    limit: int
    bytes: int = 0


class HeldBody:
    """
    :param forward: what is to be done with the request if its body may pass.
    :param kept: counts it, until :meth:`release`.
    """

    def __init__(self, forward: Forward, kept: Kept) -> None:
        self.forward, self._kept = forward, kept
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, payload: bytes) -> RequestRefusal | None:
        """:returns: why no more of it is taken, if so."""
        self._size += len(payload)
        self._kept.bytes += len(payload)
        if self._size > BODY_LIMIT:
            return too_large()
        if self._kept.bytes > self._kept.limit:
            return RequestRefusal(503, "too-much-at-once", "too many large requests are under way: try again later")
        if payload:
            self._pieces.append(payload)
        return None

    def whole(self) -> bytes:
        """:returns: all of it."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def release(self) -> None:
        """It is sent, or thrown away."""
        self._kept.bytes -= self._size
        self._size = 0
        self._pieces.clear()
