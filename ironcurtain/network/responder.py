"""The interface of what answers for a host in place of its servers, such as a package registry that is filtered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol

from ironcurtain.http.fields import Fields
from ironcurtain.http.head import RequestHead
from ironcurtain.providers.provider import RequestRefusal


class LocalResponse(NamedTuple):
    """
    A response that is made here.

    :ivar phrase: ASCII, without line ends; empty for the usual one.
    :ivar headers: names in lower case with values (latin-1), without those about the body's length and the connection.
    :ivar length: size of the body in bytes; ``None`` if unknown.
    :ivar body: its parts, each as soon as it is available; the next one is asked for when the client has read enough.
        An error that it raises breaks the response off. It is closed (``aclose``) if the client goes away.
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
        Answer one request. Cancelled if the client goes away. A body of the request is discarded.

        :param head: its path begins with a slash, and may be encoded in any way: judge it strictly.
        """
