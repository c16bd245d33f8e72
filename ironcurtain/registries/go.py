"""
The Go module proxy and the checksum database, read-only.

The only time of a version is that of its commit, which its author sets: it proves no age. A version that
says itself that it is young is refused all the same. Refusals are 403: after 404 and 410, ``go`` asks the module's own
host.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

import msgspec

from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.fetching import Document, Unusable
from ironcurtain.registries.go_paths import (
    SUMS,
    GoRequest,
    ModuleFile,
    Sums,
    Versions,
    read_module_path,
    read_sums_path,
)
from ironcurtain.registries.location import read_location
from ironcurtain.registries.registry import Store, local
from ironcurtain.registries.releases import Release, publication
from ironcurtain.registries.remembering import Remembered

PROXY: Final = "proxy.golang.org"
"""The module proxy that ``go`` asks unless it is told otherwise."""

_ANY, _JSON, _TEXT, _BYTES = "*/*", "application/json", "text/plain; charset=utf-8", "application/octet-stream"
_PATHS: Final = "only modules and their checksums are open, for go mod download and go build"


class Go:
    """
    :param url: of a module proxy, as ``GOPROXY`` has it; empty: the one of Go's authors.

    :ivar hosts: see :class:`~ironcurtain.registries.registry.Registry`.
    """

    quiet: re.Pattern[str] | None = None
    hosts: Collection[tuple[str, int]]

    def __init__(self, store: Store, url: str = "") -> None:
        self._store, self._known = store, Remembered[Release]()
        self._upstream = read_location(url or f"https://{PROXY}")
        self._sums = f"{self._upstream.url}/sumdb/{SUMS}" if url else f"https://{SUMS}"
        self.hosts = frozenset(((PROXY, 443), (SUMS, 443), (self._upstream.host, self._upstream.port)))

    async def answer(self, host: str, head: RequestHead) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.registries.registry.Registry`."""
        match self._read(host, head.path):
            case None:
                refusal = RequestRefusal(403, "not-for-installing", f"{_PATHS}.")
                return self._store.refuse(refusal, "", "", head.path)
            case Sums(path="/supported"):
                return local(200, "", _TEXT, b"")
            case Sums(path, module):
                return _passed_on(await self._store.look_up(module, self._sums + path, _ANY), _BYTES)
            case Versions(path, module, latest=False):
                return _passed_on(await self._look_up(module, path), _TEXT)
            case Versions(path, module):
                return await self._info(module, path)
            case ModuleFile(path, module, kind="info"):
                return await self._info(module, path)
            case ModuleFile() as file:
                return await self._file(file)

    def _read(self, host: str, path: str) -> GoRequest | None:
        if host == SUMS:
            return read_sums_path(path)
        below = path if host == PROXY else self._upstream.below(path)
        return None if below is None else read_module_path(below)

    async def _info(self, module: str, path: str) -> LocalResponse | RequestRefusal:
        document = await self._look_up(module, path)
        if isinstance(document, RequestRefusal):
            return document
        release = self._release(module, path, document)
        if refusal := self._store.policy.refuse_release(release, self._store.now()):
            return self._store.refuse(refusal, release.name, release.version, release.file)
        return local(200, "", _JSON, document.body)

    async def _file(self, file: ModuleFile) -> LocalResponse | RequestRefusal:
        now = self._store.now().timestamp()
        known = (self._known.get(file.info, now) or {}).get(file.version)
        if known is None:
            document = await self._look_up(file.module, file.info)
            if isinstance(document, RequestRefusal):
                return document
            known = self._release(file.module, file.info, document)
        if known.version != file.version:
            refusal = RequestRefusal(403, "package-missing", f"{file.module} has no version {file.version}.")
            return self._store.refuse(refusal, file.module, file.version)
        release = known._replace(file=file.path.rpartition("/")[2], url=self._upstream.url + file.path)
        return await self._store.deliver(release, _BYTES, installs=file.kind == "zip")

    async def _look_up(self, module: str, path: str) -> Document | RequestRefusal:
        return await self._store.look_up(module, self._upstream.url + path, _ANY)

    def _release(self, module: str, path: str, info: Document) -> Release:
        """:returns: the version that an ``.info`` describes."""
        try:
            said: Any = msgspec.json.decode(info.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = None
        version = said.get("Version") if isinstance(said, dict) else None
        if not isinstance(version, str) or not version:
            raise Unusable(f"{self._upstream.url} sent no version of {module}, but something else")
        now = self._store.now()
        time = publication(said.get("Time"), now)
        release = Release(module, version, path.rpartition("/")[2], time, None, self._upstream.url + path)
        self._known.put(path, {version: release}, now.timestamp())
        return release


def _passed_on(found: Document | RequestRefusal, content_type: str) -> LocalResponse | RequestRefusal:
    return found if isinstance(found, RequestRefusal) else local(200, "", content_type, found.body)
