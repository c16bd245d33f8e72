"""
Requests that may pass, known again by their heads: most agents send the same head each time, but for its length. Pure.

Judging depends on nothing but the head and the provider's credentials, so what was decided on a head holds for the next
one that consists of the same bytes. Nothing that was refused is remembered. What can change between two requests (the
budget, the name in the TLS handshake, the body) is no part of this.
"""

from __future__ import annotations

import re
from typing import Final

from ironcurtain.mitm_proxy.head import Request
from ironcurtain.mitm_proxy.judgement import Forward

HEADS_KEPT: Final = 64
"""How many heads are remembered (our choice; an agent uses a handful, or never the same one twice)."""

KEPT_LIMIT: Final = 8192
"""Most bytes of a head that is remembered."""

_LENGTH: Final = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,15})(?=\r\n|\Z)")


class FamiliarHeads:
    """The heads of requests of one session to one provider."""

    def __init__(self) -> None:
        # By the head without its length, and whether it had one: without any, it is another request.
        self._known: dict[tuple[bytes, bool], tuple[Request, Forward]] = {}

    def find(self, head: bytes) -> tuple[Request, Forward] | None:
        """
        :param head: without the blank line at its end.
        :returns: what reading and judging it would give (but ``request.head.headers`` may hold an earlier length);
            ``None`` if that is not known.
        """
        length = _LENGTH.search(head)
        known = self._known.get(_key(head, length))
        if known is None or length is None:
            return known
        request, forward = known
        if request.length != (size := int(length[1])):
            request = request._replace(length=size)
        return request, forward

    def remember(self, head: bytes, request: Request, forward: Forward) -> None:
        """
        :param head: that was read and judged.
        :param request: what it says.
        :param forward: what is to be done with it.
        """
        length = _LENGTH.search(head)
        # Whether a client waits for leave to send its body depends on there being one, so those are read each time.
        if len(head) > KEPT_LIMIT or request.expects or (length is not None and not request.length):
            return
        if len(self._known) >= HEADS_KEPT:
            self._known.clear()
        self._known[_key(head, length)] = request, forward


def _key(head: bytes, length: re.Match[bytes] | None) -> tuple[bytes, bool]:
    return (head, False) if length is None else (head[: length.start()] + head[length.end() :], True)
