"""What registries fetch from their upstream servers, and how that can fail."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from ironcurtain.errors import Unavailable
from ironcurtain.http.fields import Fields

DOCUMENT_LIMIT: Final = 128 * 1024 * 1024
"""Maximum size in bytes of one inflated document (the largest ones of npm have about 40 MB)."""


class FetchFailed(Unavailable):
    """The upstream server cannot be reached, refuses, or sends what cannot be used. The message says what, and why."""


class Unusable(FetchFailed):
    """
    What the upstream server sends, or refers to, is refused: asking again does not help.

    :param package: whose metadata it is, normalised; empty if that is not known, or it is of none.
    """

    def __init__(self, message: str, package: str = "") -> None:
        super().__init__(message)
        self.package = package


class ByteStream(Protocol):
    """The pieces of a body, each as it arrives."""

    def __aiter__(self) -> ByteStream:
        """:returns: itself."""

    async def __anext__(self) -> bytes:
        """:raises FetchFailed: the body is incomplete, or too large."""

    async def aclose(self) -> None:
        """Take no more. This has to be called in any case, also if nothing was taken."""


class Document(NamedTuple):
    """
    A response that is kept in memory.

    :ivar headers: names in lower case.
    :ivar body: inflated.
    :ivar url: where it was found, after redirects.
    """

    status: int
    headers: Fields
    body: bytes
    url: str


class FileStream(NamedTuple):
    """
    A file that is on its way.

    :ivar headers: names in lower case.
    :ivar length: its size in bytes; ``None`` if the server did not tell.
    """

    status: int
    headers: Fields
    length: int | None
    body: ByteStream


class Fetcher(Protocol):
    """
    Fetches by GET, with TLS verified. Redirects are followed, to public addresses and named private hosts only; the key
    is sent to the origin of the configured url only; conditional and range requests are not made.
    """

    async def document(self, url: str, accept: str, limit: int = DOCUMENT_LIMIT) -> Document:
        """
        :param limit: maximum size in bytes once inflated.
        :raises FetchFailed: there is no complete response. Error statuses are returned.
        """

    async def file(self, url: str) -> FileStream:
        """
        :returns: what has begun to arrive, not inflated.
        :raises FetchFailed: there is no response. Error statuses are returned.
        """
