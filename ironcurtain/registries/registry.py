"""The interface of a package registry: its own path grammar and filter, over what all registries share."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from datetime import datetime
from typing import Protocol

from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.fetching import Document
from ironcurtain.registries.policy import PackagePolicy
from ironcurtain.registries.releases import Release


class Registry(Protocol):
    """One kind of registry."""

    @property
    def hosts(self) -> Collection[tuple[str, int]]:
        """The hosts and ports that its clients ask, those of ``url`` in the settings included."""

    @property
    def quiet(self) -> re.Pattern[str] | None:
        """
        Paths that clients ask for by any method and do without; they are answered 404, as if they were not there.
        ``None``: there are none.
        """

    async def answer(self, host: str, head: RequestHead) -> LocalResponse | RequestRefusal:
        """
        Answer a GET or HEAD, as if it were a GET: the caller leaves out the body of the response to a HEAD.

        :param host: which of ``hosts`` the client asked, without the port if that is 443.
        :raises FetchFailed: the upstream server has no answer; the caller says so to the client.
        """


class Store(Protocol):
    """
    What a registry uses: it judges, counts, records and fetches (:class:`~ironcurtain.registries.store.PackageStore`).

    :ivar policy: by names and ages.
    """

    policy: PackagePolicy

    def now(self) -> datetime:
        """:returns: the time, with its zone."""

    async def look_up(self, name: str, url: str, accept: str) -> Document | RequestRefusal:
        """
        Fetch metadata of a package, if its name is allowed and no limit is reached. It is recorded.

        :param name: the package, normalised; empty for documents that belong to none.
        :param url: of the document at the upstream registry.
        :returns: a document with status 200, or why there is none: what does not exist is refused with 404 and counted,
            what cannot be used with 403.
        :raises FetchFailed: the upstream server has no answer.
        """

    def refuse(self, refusal: RequestRefusal, name: str, version: str = "", file: str = "") -> RequestRefusal:
        """
        Record a refusal of the registry's own, and return it. Those of the other functions are recorded already.

        :raises AuditUnavailable: it could not be recorded.
        """

    async def deliver(
        self, release: Release, content_type: str, *, dated_by_file: bool = False, installs: bool = True
    ) -> LocalResponse | RequestRefusal:
        """
        Fetch a file, if its name, its age and the limits allow. It is recorded; its digest is verified while it is
        passed on: the last piece is held back until then, and the response breaks off if it is wrong.

        :param dated_by_file: whether the file's own ``Last-Modified`` says when it was published.
        :param installs: whether the file is what gets installed, and not metadata about it.
        :returns: the response, or why there is none.
        :raises FetchFailed: the upstream server has no answer.
        """


def local(status: int, phrase: str, content_type: str, body: bytes, *headers: tuple[str, str]) -> LocalResponse:
    """:returns: a response whose body is in memory."""

    async def pieces() -> AsyncIterator[bytes]:
        yield body

    return LocalResponse(status, phrase, (("content-type", content_type), *headers), len(body), pieces())
