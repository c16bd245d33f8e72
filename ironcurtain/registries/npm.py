"""npm: metadata without young versions, and tarballs judged by themselves, since lock files bypass metadata."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from ironcurtain.http.fields import Fields
from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.fetching import Unusable
from ironcurtain.registries.location import read_location
from ironcurtain.registries.npm_metadata import (
    Packument,
    UnusableMetadata,
    filter_packument,
    one_manifest,
    read_packument,
)
from ironcurtain.registries.npm_paths import QUIET, PackageRequest, packument_path, read_path
from ironcurtain.registries.registry import Store, local
from ironcurtain.registries.releases import Release
from ironcurtain.registries.remembering import Remembered
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

PUBLIC: Final = "https://registry.npmjs.org"
HOSTS: Final = ("registry.npmjs.org", "registry.yarnpkg.com")
"""The hosts that clients ask unless told otherwise."""

_JSON: Final = "application/json"
_SHOWN: Final = 214


def normalised(name: str) -> str:
    """:returns: a name as it is: npm tells apart what is spelled in different ways."""
    return name


class NpmRegistry:
    """
    See :class:`~ironcurtain.registries.registry.Registry`.

    :param url: of the upstream registry; empty: the public one.
    """

    quiet = QUIET

    def __init__(self, store: Store, url: str = "") -> None:
        self._store, self._known = store, Remembered[Release]()
        self._upstream = read_location(url or PUBLIC)
        self.hosts: Collection[tuple[str, int]] = frozenset(
            ((self._upstream.host, self._upstream.port), *((host, 443) for host in HOSTS))
        )

    async def answer(self, host: str, head: RequestHead) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.registries.registry.Registry`."""
        below = self._upstream.below(head.path) if host == self._upstream.name else head.path
        request = read_path(below or "")
        if request is None:
            what = "npm is open for installing only: metadata and tarballs of packages"
            return RequestRefusal(403, "not-for-installing", f"{what}. Search, login and publishing are not offered.")
        try:
            if request.file:
                return await self._tarball(request)
            path = self._upstream.path if host == self._upstream.name else ""
            return await self._metadata(request, f"https://{host}{path}", head.headers)
        except UnusableMetadata as e:
            raise Unusable(f"{one_line(request.name, _SHOWN)}: {e}", request.name) from None

    async def _metadata(self, request: PackageRequest, origin: str, headers: Fields) -> LocalResponse | RequestRefusal:
        packument = await self._fetch(request.name)
        if isinstance(packument, RequestRefusal):
            return packument
        filtered = filter_packument(packument, self._store.policy, origin, self._store.now())
        if not filtered.body:
            return self._nothing_left(packument)
        if request.version:
            return self._one(packument, request.version, filtered.tags, origin)
        notice = self._notice(request.name, len(filtered.hidden))
        etag = ("etag", filtered.etag)
        if any(name == "if-none-match" and filtered.etag in value for name, value in headers):
            return local(304, "", _JSON, b"", etag, *notice)
        return local(200, "", _JSON, filtered.body, etag, *notice)

    async def _tarball(self, request: PackageRequest) -> LocalResponse | RequestRefusal:
        releases = self._known.get(request.name, self._store.now().timestamp())
        if releases is None or request.file not in releases:
            packument = await self._fetch(request.name)
            if isinstance(packument, RequestRefusal):
                return packument
            releases = self._releases(packument)
        release = releases.get(request.file)
        if release is None:
            what = one_line(request.file, _SHOWN)
            refusal = RequestRefusal(404, "package-missing", f"npm's metadata of {request.name} have no file {what}.")
            return self._store.refuse(refusal, request.name, "", request.file)
        return await self._store.deliver(release, "application/octet-stream")

    async def _fetch(self, name: str) -> Packument | RequestRefusal:
        # The complete document: the abbreviated one has no times.
        document = await self._store.look_up(name, self._upstream.url + packument_path(name), _JSON)
        if isinstance(document, RequestRefusal):
            return document
        now = self._store.now()
        packument = read_packument(document.body, name, self._upstream.url, now)
        self._known.put(name, self._releases(packument), now.timestamp())
        return packument

    @staticmethod
    def _releases(packument: Packument) -> dict[str, Release]:
        return {file: packument.releases[version] for file, version in packument.files.items()}

    def _one(
        self, packument: Packument, wanted: str, tags: Mapping[str, str], origin: str
    ) -> LocalResponse | RequestRefusal:
        """
        :param wanted: a version or a tag.
        :param tags: those that are left.
        """
        release = packument.releases.get(tags.get(wanted, wanted))
        if release is None:
            what = f"npm's metadata of {packument.name} have no version or tag {one_line(wanted, _SHOWN)}"
            return self._store.refuse(RequestRefusal(404, "package-missing", f"{what}."), packument.name, wanted)
        if refusal := self._store.policy.refuse_release(release, self._store.now()):
            return self._store.refuse(refusal, release.name, release.version)
        return local(200, "", _JSON, one_manifest(packument, release.version, origin))

    def _nothing_left(self, packument: Packument) -> RequestRefusal:
        """:returns: the refusal for a package whose versions are all too young, or have no digest."""
        policy, now = self._store.policy, self._store.now()
        releases = packument.releases.values()
        oldest = min(releases, key=lambda release: release.published or now, default=None)
        if oldest is None:
            why = f"{packument.name} has no version that can be used: its metadata name none of its own with a digest"
            return self._store.refuse(RequestRefusal(403, "package-unusable", f"{why}."), packument.name)
        refusal = policy.refuse_release(oldest, now)
        assert refusal is not None  # else it were left
        return self._store.refuse(refusal, oldest.name, oldest.version)

    def _notice(self, name: str, hidden: int) -> Fields:
        """:returns: what npm prints of versions that are hidden."""
        if not hidden:
            return ()
        versions = counted(hidden, "newer version")
        age = self._store.policy.age_text
        return (("npm-notice", f"IronCurtain: {versions} of {name} hidden by min_age {age}"),)
