"""An upstream registry in memory, and the store of a registry over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.home.registry_sections import Registries, RegistrySettings
from ironcurtain.http.fields import Fields
from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.allowance import Allowance
from ironcurtain.registries.fetching import DOCUMENT_LIMIT, Document, FetchFailed, FileStream
from ironcurtain.registries.policy import Normalise, package_policy
from ironcurtain.registries.recording import PackageRecorder, PackageTraffic
from ironcurtain.registries.registry import Registry, Store
from ironcurtain.registries.store import PackageStore
from ironcurtain.secrets.redaction import Redactor

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
OLD, YOUNG = NOW - timedelta(days=30), NOW - timedelta(days=2)


def iso(time: datetime) -> str:
    """:returns: a time as registries write it."""
    return time.isoformat().replace("+00:00", "Z")


def sha256(content: bytes) -> str:
    """:returns: the digest in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


class Pieces:
    """A body in several pieces. :ivar closed: whether it was given up or read."""

    def __init__(self, content: bytes, size: int = 1000) -> None:
        self._left, self.closed = [content[i : i + size] for i in range(0, len(content), size)], False

    def __aiter__(self) -> Pieces:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop(0)

    async def aclose(self) -> None:
        """See :class:`~ironcurtain.registries.fetching.ByteStream`."""
        self.closed = True


class Upstream:
    """
    A registry (:class:`~ironcurtain.registries.fetching.Fetcher`).

    :ivar contents: by address: bytes, or a status.
    :ivar headers: of files, by address.
    :ivar asked: the addresses that were asked for, with the media types that were accepted.
    """

    def __init__(self) -> None:
        self.contents: dict[str, bytes | int] = {}
        self.headers: dict[str, Fields] = {}
        self.asked: list[tuple[str, str]] = []

    @property
    def addresses(self) -> list[str]:
        """The addresses that were asked for."""
        return [address for address, _ in self.asked]

    async def document(self, url: str, accept: str, limit: int = DOCUMENT_LIMIT) -> Document:
        """See :class:`~ironcurtain.registries.fetching.Fetcher`."""
        status, body = self._find(url, accept)
        return Document(status, (), body, url)

    async def file(self, url: str) -> FileStream:
        """See :class:`~ironcurtain.registries.fetching.Fetcher`."""
        status, body = self._find(url, "")
        return FileStream(status, self.headers.get(url, ()), len(body), Pieces(body))

    def _find(self, url: str, accept: str) -> tuple[int, bytes]:
        self.asked.append((url, accept))
        found = self.contents.get(url, 404)
        return (found, b"") if isinstance(found, int) else (200, found)


def at_once(function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
    """:returns: the result of a function that is called here and now."""
    return succeed(function(*arguments))


class RegistryTestCase(SynchronousTestCase):
    """Asks a registry over an upstream registry in memory. Time is :data:`NOW`."""

    name: str
    normalise: Normalise

    def setUp(self) -> None:
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self._path = Path(directory.name) / "audit.jsonl"
        clock = Clock()
        self._audit = AuditLog(self._path, "s1", Redactor(), clock, clock.seconds, at_once)
        self.addCleanup(lambda: Deferred.fromCoroutine(self._audit.close()))
        self.upstream, self.now = Upstream(), NOW
        self.traffic: list[PackageTraffic] = []
        self.recorder = PackageRecorder(self.name, self._audit, self.traffic.append, clock.seconds)

    def store(self, limits: Registries | None = None, **settings: Any) -> Store:
        """:param settings: of the registry."""
        opened = RegistrySettings(**{"min_age": "7d"} | settings)
        policy = package_policy(self.name, opened, type(self).normalise)
        allowance = Allowance(limits or Registries())
        return PackageStore(policy, self.upstream, self.recorder, allowance, lambda: self.now)

    def ask(
        self, registry: Registry, host: str, path: str, *headers: tuple[str, str]
    ) -> LocalResponse | RequestRefusal:
        """:returns: the answer to a GET."""
        head = RequestHead("GET", path, path, "", headers)
        return self.successResultOf(Deferred.fromCoroutine(registry.answer(host, head)))

    def body(self, registry: Registry, host: str, path: str, *headers: tuple[str, str]) -> bytes:
        """:returns: the body of a response with status 200."""
        answer = self.ask(registry, host, path, *headers)
        assert isinstance(answer, LocalResponse), answer
        self.assertEqual(answer.status, 200)
        return self.successResultOf(Deferred.fromCoroutine(whole(answer)))

    def refusal(self, registry: Registry, host: str, path: str) -> RequestRefusal:
        """:returns: the refusal of a GET."""
        answer = self.ask(registry, host, path)
        assert isinstance(answer, RequestRefusal), answer
        return answer

    def failure(self, registry: Registry, host: str, path: str) -> str:
        """:returns: why the answer to a GET, or its body, is broken off."""
        head = RequestHead("GET", path, path, "", ())

        async def read() -> str:
            try:
                answer = await registry.answer(host, head)
                return answer.reason if isinstance(answer, RequestRefusal) else (await whole(answer)).decode()
            except FetchFailed as e:
                return str(e)

        return self.successResultOf(Deferred.fromCoroutine(read()))

    def records(self, kind: str) -> list[dict[str, Any]]:
        """:returns: the records of a kind."""
        records = [json.loads(line) for line in self._path.read_text().splitlines()]
        return [record for record in records if record["kind"] == kind]


async def whole(answer: LocalResponse | RequestRefusal) -> bytes:
    """:returns: the body of a response."""
    assert isinstance(answer, LocalResponse), answer
    return b"".join([piece async for piece in answer.body])
