"""The registry of crates, read-only: its sparse index with young versions marked, and the files of crates."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.crates_index import (
    BadIndex,
    CrateFile,
    CrateVersion,
    IndexLine,
    file_address,
    index_path,
    normalise,
    read_download,
    read_file_path,
    read_index,
    read_index_path,
    write_index,
)
from ironcurtain.registries.fetching import Unusable
from ironcurtain.registries.location import read_location, referred
from ironcurtain.registries.registry import Store, local
from ironcurtain.registries.releases import Release
from ironcurtain.registries.remembering import Remembered

INDEX: Final = "index.crates.io"
FILES: Final = "static.crates.io"
"""The hosts that ``cargo`` asks unless it is told otherwise."""

_CONFIG: Final = "/config.json"
_ANY, _TEXT = "*/*", "text/plain; charset=utf-8"
_PATHS: Final = "only the sparse index and the files of crates are open, for building; there is no search or publishing"


class Crates:
    """
    :param url: of the upstream index, as ``cargo`` takes it after ``sparse+``; empty: crates.io.

    :ivar hosts: see :class:`~ironcurtain.registries.registry.Registry`.
    """

    quiet: re.Pattern[str] | None = None
    hosts: Collection[tuple[str, int]]

    def __init__(self, store: Store, url: str = "") -> None:
        self._store, self._known, self._pattern = store, Remembered[CrateVersion](), ""
        self._upstream = read_location(url or f"https://{INDEX}")
        self.hosts = frozenset(((INDEX, 443), (FILES, 443), (self._upstream.host, self._upstream.port)))

    async def answer(self, host: str, head: RequestHead) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.registries.registry.Registry`."""
        path = head.path if host in (INDEX, FILES) else self._upstream.below(head.path)
        if host != FILES and path == _CONFIG:
            return self._config(host)
        if host != FILES and path is not None and (crate := read_index_path(path)):
            return await self._index(crate)
        if host != INDEX and (file := read_file_path(head.path)):
            return await self._deliver(file)
        return RequestRefusal(403, "not-for-installing", f"{_PATHS}.")

    def _config(self, host: str) -> LocalResponse:
        """:returns: where clients find files; without ``api``, ``cargo`` says that there is no search or publishing."""
        origin = f"https://{FILES}" if host == INDEX else self._upstream.origin
        return local(200, "", "application/json", msgspec.json.encode({"dl": f"{origin}/crates"}))

    async def _lines(self, crate: str) -> list[IndexLine] | RequestRefusal:
        """:param crate: as it is asked for: ``cargo`` tries hyphens and underscores itself."""
        page = await self._store.look_up(normalise(crate), f"{self._upstream.url}{index_path(crate)}", _ANY)
        if isinstance(page, RequestRefusal):
            return page
        now = self._store.now()
        try:
            lines = read_index(page.body, crate, now)
        except BadIndex as e:
            raise self._unusable(str(e), normalise(crate)) from None
        self._known.put(crate.lower(), {line.version.version: line.version for line in lines}, now.timestamp())
        return lines

    async def _index(self, crate: str) -> LocalResponse | RequestRefusal:
        lines = await self._lines(crate)
        if isinstance(lines, RequestRefusal):
            return lines
        policy, now = self._store.policy, self._store.now()
        # Of versions that are yanked, cargo shows no reason.
        if refusal := policy.refuse_all([_release(line.version) for line in lines], now):
            return self._store.refuse(refusal, normalise(crate))
        return local(200, "", _TEXT, write_index(lines, lambda version: policy.is_young(version.published, now)))

    async def _deliver(self, file: CrateFile) -> LocalResponse | RequestRefusal:
        versions = self._known.get(file.crate.lower(), self._store.now().timestamp())
        if versions is None or file.version not in versions:
            lines = await self._lines(file.crate)
            if isinstance(lines, RequestRefusal):
                return lines
            versions = {line.version.version: line.version for line in lines}
        version = versions.get(file.version)
        if version is None:
            return RequestRefusal(404, "package-missing", f"the crate {file.crate} has no version {file.version}.")
        pattern = await self._download()
        if isinstance(pattern, RequestRefusal):
            return pattern
        try:
            url = referred(self._upstream.url, file_address(pattern, version))
        except BadIndex as e:
            raise self._unusable(str(e), normalise(file.crate)) from None
        if not url:
            raise self._unusable("dl in its config.json is not https://HOST/PATH", normalise(file.crate))
        return await self._store.deliver(_release(version, url), "application/octet-stream")

    async def _download(self) -> str | RequestRefusal:
        if self._pattern:
            return self._pattern
        config = await self._store.look_up("", f"{self._upstream.url}{_CONFIG}", _ANY)
        if isinstance(config, RequestRefusal):
            return config
        try:
            self._pattern = read_download(config.body)
        except BadIndex as e:
            raise self._unusable(str(e)) from None
        return self._pattern

    def _unusable(self, why: str, package: str = "") -> Unusable:
        return Unusable(f"{self._upstream.url}: {why}", package)


def _release(version: CrateVersion, url: str = "") -> Release:
    name = f"{version.crate}-{version.version}.crate"
    return Release(normalise(version.crate), version.version, name, version.published, version.digest, url)
