"""
The Go module proxy and the checksum database, read-only.

The only time of a version is that of its commit, which its author sets: it proves no age. A version that
says itself that it is young is refused all the same. Refusals are 403: after 404 and 410, ``go`` asks the module's own
host.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Any, Final

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
    escaped,
    read_module_path,
    read_sums_path,
)
from ironcurtain.registries.location import read_location
from ironcurtain.registries.registry import Store, local
from ironcurtain.registries.releases import Release, publication
from ironcurtain.registries.remembering import Remembered
from ironcurtain.registries.semver import precedence
from ironcurtain.text.display import one_line

PROXY: Final = "proxy.golang.org"
"""The module proxy that ``go`` asks unless it is told otherwise."""

_ANY, _JSON, _TEXT, _BYTES = "*/*", "application/json", "text/plain; charset=utf-8", "application/octet-stream"
_SHOWN: Final = 100
_PATHS: Final = "only modules and their checksums are open, for go mod download and go build"

JUDGED_VERSIONS: Final = 10
"""Maximum number of versions of a list whose times are looked up."""


class _Info(msgspec.Struct):
    version: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] = msgspec.field(name="Version")
    time: Any = msgspec.field(name="Time", default=None)


_read_info = msgspec.json.Decoder(_Info).decode


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
                return RequestRefusal(403, "not-for-installing", f"{_PATHS}.")
            case Sums(path="/supported"):
                return local(200, "", _TEXT, b"")
            case Sums(path, module):
                return _passed_on(await self._store.look_up(module, self._sums + path, _ANY), _BYTES)
            case Versions(path, module, latest=False):
                return await self._list(module, path)
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

    async def _list(self, module: str, path: str) -> LocalResponse | RequestRefusal:
        """``go`` takes the newest version of a list, so those that say that they are young are left out before it."""
        document = await self._look_up(module, path)
        if isinstance(document, RequestRefusal):
            return document
        ranked = {version: rank for version in _words(document.body) if (rank := precedence(version)) is not None}
        newest, young = sorted(ranked, key=ranked.__getitem__, reverse=True), dict[str, Release | RequestRefusal]()
        for version in newest[:JUDGED_VERSIONS]:
            release = await self._version(module, f"{path.removesuffix('list')}{escaped(version)}.info")
            if isinstance(release, RequestRefusal) or self._is_young(release):
                young[version] = release
            elif ranked[version][1]:  # go prefers releases
                break
        releases = [release for release in young.values() if isinstance(release, Release)]
        # Of an empty list, go shows no reason.
        if len(young) == len(ranked) and (refusal := self._store.policy.refuse_all(releases, self._store.now())):
            return self._store.refuse(refusal, module)
        return local(200, "", _TEXT, "".join(f"{version}\n" for version in ranked if version not in young).encode())

    async def _info(self, module: str, path: str) -> LocalResponse | RequestRefusal:
        release = await self._version(module, path)
        if isinstance(release, RequestRefusal):
            return release
        if refusal := self._store.policy.refuse_release(release, self._store.now()):
            return self._store.refuse(refusal, release.name, release.version, release.file)
        time = {} if release.published is None else {"Time": release.published.isoformat().replace("+00:00", "Z")}
        return local(200, "", _JSON, msgspec.json.encode({"Version": release.version} | time))

    async def _file(self, file: ModuleFile) -> LocalResponse | RequestRefusal:
        release = await self._version(file.module, file.info)
        if isinstance(release, RequestRefusal):
            return release
        if release.version != file.version:
            return RequestRefusal(403, "package-missing", f"{file.module} has no version {file.version}.")
        name, url = file.path.rpartition("/")[2], self._upstream.url + file.path
        wanted = Release(release.name, release.version, name, release.published, None, url)
        return await self._store.deliver(wanted, _BYTES, installs=file.kind == "zip")

    async def _version(self, module: str, path: str) -> Release | RequestRefusal:
        """
        :param path: of an ``.info``.
        :returns: the version that it describes.
        """
        now = self._store.now()
        if known := self._known.get(path, now.timestamp()):
            return known[""]
        document = await self._look_up(module, path)
        if isinstance(document, RequestRefusal):
            return document
        try:
            info = _read_info(document.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Unusable(f"{self._upstream.url} sent no version of {module}, but something else", module) from None
        asked = path.rpartition("/")[2].removesuffix(".info")
        if precedence(info.version) is None or (_is_canonical(asked) and escaped(info.version) != asked):
            shown = one_line(info.version, _SHOWN)
            why = f"{self._upstream.url} sent another version of {module} than was asked for: {shown}"
            raise Unusable(why, module)
        url = self._upstream.url + path
        release = Release(module, info.version, path.rpartition("/")[2], publication(info.time, now), None, url)
        self._known.put(path, {"": release}, now.timestamp())
        return release

    async def _look_up(self, module: str, path: str) -> Document | RequestRefusal:
        return await self._store.look_up(module, self._upstream.url + path, _ANY)

    def _is_young(self, release: Release) -> bool:
        return self._store.policy.is_young(release.published, self._store.now())


def _is_canonical(version: str) -> bool:
    """:returns: whether it is no name of a branch, and no tag for which Go has a version of its own."""
    return precedence(version) is not None and "+" not in version


def _words(body: bytes) -> list[str]:
    return body.decode("latin-1").split()


def _passed_on(found: Document | RequestRefusal, content_type: str) -> LocalResponse | RequestRefusal:
    return found if isinstance(found, RequestRefusal) else local(200, "", content_type, found.body)
