"""What all registries share: judge, count, record, fetch and verify."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from ironcurtain.http.fields import Fields
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.allowance import Allowance
from ironcurtain.registries.fetching import ByteStream, Document, Fetcher, FetchFailed, FileStream, Unusable
from ironcurtain.registries.policy import PackagePolicy
from ironcurtain.registries.recording import PackageRecorder, RecordedRefusal
from ironcurtain.registries.releases import Digest, Release, publication
from ironcurtain.registries.remembering import Remembered
from ironcurtain.registries.verifying import too_large, verified
from ironcurtain.text.display import one_line

_SHOWN = 214
"""Maximum length of a name in a message, in characters."""

UNUSABLE = "package-unusable"
"""The rule for what a registry has and what cannot be used."""

_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)

_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
"""Refusals of an upstream server that can end by themselves: clients may ask again."""


class PackageStore:
    """
    One registry's packages, for one session (see :class:`~ironcurtain.registries.registry.Store`).

    :param allowance: of the session, for all its registries.
    :param now: returns the time, with its zone.
    """

    def __init__(
        self,
        policy: PackagePolicy,
        fetcher: Fetcher,
        recorder: PackageRecorder,
        allowance: Allowance,
        now: Callable[[], datetime],
    ) -> None:
        self.policy, self.now = policy, now
        self._fetcher, self._recorder, self._allowance = fetcher, recorder, allowance
        self._limit, self._bad = allowance.file_bytes, Remembered[str]()

    async def look_up(self, name: str, url: str, accept: str) -> Document | RequestRefusal:
        """See :class:`~ironcurtain.registries.registry.Store`."""
        refusal = (self.policy.refuse_name(name) if name else None) or self._allowance.take_lookup()
        if refusal is not None:
            return self.refuse(refusal, name)
        self._recorder.request(name)
        try:
            document = await self._fetcher.document(url, accept)
        except Unusable as e:
            return self.refuse(RequestRefusal(HTTPStatus.FORBIDDEN, UNUSABLE, f"{e}."), name)
        if document.status == HTTPStatus.OK:
            return document
        return self._failed(document.status, name or url.rpartition("/")[2], url, name)

    async def deliver(
        self, release: Release, content_type: str, *, dated_by_file: bool = False, installs: bool = True
    ) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.registries.registry.Store`."""
        if dated_by_file:
            refusal = self.policy.refuse_name(release.name)
        else:
            refusal = self.policy.refuse_release(release, self.now())
        if refusal := refusal or self._known_bad(release) or self._allowance.take_file():
            return self.refuse(refusal, release.name, release.version, release.file)
        self._recorder.request(release.name, release.version, release.file)
        try:
            return await self._fetched(release, content_type, dated_by_file, installs)
        except Unusable as e:
            refusal = RequestRefusal(HTTPStatus.FORBIDDEN, UNUSABLE, f"{e}.")
            return self.refuse(refusal, release.name, release.version, release.file)

    async def _fetched(
        self, release: Release, content_type: str, dated_by_file: bool, installs: bool
    ) -> LocalResponse | RequestRefusal:
        stream = await self._fetcher.file(release.url)
        try:
            if stream.status != HTTPStatus.OK:
                shown = (release.name, release.version, release.file)
                return await self._closed(stream, self._failed(stream.status, release.file, release.url, *shown))
            if dated_by_file:
                published = last_modified(stream.headers, self.now())
                release = Release(release.name, release.version, release.file, published, release.digest, release.url)
                if refusal := self.policy.refuse_release(release, self.now()):
                    refusal = self.refuse(refusal, release.name, release.version, release.file)
                    return await self._closed(stream, refusal)
            if (stream.length or 0) > self._limit:
                raise too_large(self._limit)
        except BaseException:
            await stream.body.aclose()
            raise
        body = _Delivery(self._passed_on(release, stream.body, installs), stream.body)
        try:
            await body.begin()  # a small file is verified now: a refusal tells clients more than a broken connection
        except Unusable as e:
            return RecordedRefusal(HTTPStatus.FORBIDDEN, UNUSABLE, f"{e}.")
        return LocalResponse(200, "", (("content-type", content_type),), stream.length, body)

    def refuse(self, refusal: RequestRefusal, name: str, version: str = "", file: str = "") -> RequestRefusal:
        """
        Record a refusal.

        :returns: the refusal.
        :raises AuditUnavailable: it could not be recorded.
        """
        return self._recorder.refuse(refusal, name, version, file)

    async def _passed_on(self, release: Release, body: ByteStream, installs: bool) -> AsyncGenerator[bytes, None]:
        def complete(size: int, digest: Digest) -> None:
            if installs:
                self._recorder.fetched(release, size, digest)

        begun = False
        try:
            async with aclosing(verified(body, release.digest, self._limit, complete)) as pieces:
                async for piece in pieces:
                    begun = True
                    yield piece
        except FetchFailed as e:
            if begun and isinstance(e, Unusable):
                self._bad.put(_content(release), {"": str(e)}, self.now().timestamp())
            self._recorder.refused(release.name, release.version, release.file, UNUSABLE, str(e))
            raise

    def _known_bad(self, release: Release) -> RequestRefusal | None:
        """:returns: why a file is refused whose response broke off before: clients ask again, and did not see why."""
        known = self._bad.get(_content(release), self.now().timestamp())
        return None if known is None else RequestRefusal(HTTPStatus.FORBIDDEN, UNUSABLE, f"{known['']}.")

    def _failed(self, status: int, what: str, url: str, name: str, version: str = "", file: str = "") -> RequestRefusal:
        """
        :param name: of the package, for the record; with the other two.
        :returns: the refusal for a response that says that something does not exist, or is not given.
        :raises FetchFailed: it is another response.
        """
        shown = one_line(what, _SHOWN)
        if status in _ABSENT:
            self._allowance.miss(url)
            return RequestRefusal(404, "package-missing", f"{self.policy.registry} has no {shown}.")
        why = f"the registry answered HTTP {status} for {shown}"
        if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _PASSING:
            # Clients would repeat what fails for now, npm for 70 seconds. Some servers say so of what does not exist.
            self._allowance.miss(url)
            why += f": ask the user to check url and key in [registries.{self.policy.registry}]."
            return self.refuse(RequestRefusal(HTTPStatus.FORBIDDEN, UNUSABLE, why), name, version, file)
        raise FetchFailed(why)

    @staticmethod
    async def _closed(stream: FileStream, refusal: RequestRefusal) -> RequestRefusal:
        await stream.body.aclose()
        return refusal


class _Delivery:
    """
    A file that is passed on. It ends the fetching of the file, too, when it is closed.

    :param pieces: of ``body``, verified.
    """

    def __init__(self, pieces: AsyncGenerator[bytes, None], body: ByteStream) -> None:
        self._pieces, self._body = pieces, body
        self._first = b""

    async def begin(self) -> None:
        """
        Wait for the first piece.

        :raises FetchFailed: there is none that can be passed on.
        """
        with suppress(StopAsyncIteration):
            self._first = await anext(self)

    def __aiter__(self) -> _Delivery:
        return self

    async def __anext__(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            return await anext(self._pieces)
        except BaseException:  # the end, or a failure
            await self._body.aclose()
            raise

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._body.aclose()


def _content(release: Release) -> str:
    """:returns: what stands for the content of a file, by its address and by its digest in the metadata."""
    return f"{release.url} {release.digest}"


def last_modified(headers: Fields, now: datetime) -> datetime | None:
    """:returns: when a file was last modified; ``None`` if that is not known, or cannot be true."""
    for name, value in headers:
        if name == "last-modified":
            with suppress(ValueError, TypeError):
                return publication(parsedate_to_datetime(value).isoformat(), now)
    return None
