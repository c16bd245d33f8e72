"""Answers to requests for hosts that IronCurtain answers for itself, such as package registries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol

from ironcurtain.http.fields import Fields
from ironcurtain.http.head import RequestHead
from ironcurtain.providers.provider import RequestRefusal


class LocalResponse(NamedTuple):
    """
    A response to the agent.

    :ivar phrase: ASCII, without line ends.
    :ivar headers: names in lower case; without those about the framing of the body.
    :ivar length: size of the body in bytes; ``None`` if it is not known in advance.
    :ivar body: its pieces. An error that it raises breaks the response off. Whoever does not read it to its end closes
        it (``aclose``).
    """

    status: int
    phrase: str
    headers: Fields
    length: int | None
    body: AsyncIterator[bytes]


class Responder(Protocol):
    """Answers the requests for one host and port."""

    async def respond(self, head: RequestHead) -> LocalResponse | RequestRefusal:
        """
        Answer one request, whose body is discarded. Cancelling ends the work for it.

        :returns: the response, or why there is none.
        """
