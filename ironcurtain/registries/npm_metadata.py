"""
Filter a package's metadata ("packument"): young versions are taken out, and everything that refers to them.

Clients do without a version that is not there; they do not do without ``time``, or with a tag of a missing version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from ironcurtain.registries.npm_paths import is_version, tarball_name, tarball_path
from ironcurtain.registries.policy import PackagePolicy
from ironcurtain.registries.releases import Release, hex_digest, integrity, publication
from ironcurtain.registries.semver import precedence

Document = dict[str, msgspec.Raw]


class _Dist(msgspec.Struct):
    tarball: str
    integrity: Any = None
    shasum: Any = None


class _Manifest(msgspec.Struct):
    dist: _Dist
    name: Any = None
    version: Any = None


_documents: Final = msgspec.json.Decoder(Document)
_values: Final = msgspec.json.Decoder(dict[str, Any])
_manifests: Final = msgspec.json.Decoder(_Manifest)
_encode: Final = msgspec.json.Encoder().encode
_NOTHING: Final = msgspec.Raw(b"{}")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class UnusableMetadata(ValueError):
    """A document is not the metadata of a package. The message says why."""


class Packument(NamedTuple):
    """
    The metadata of one package, read.

    :ivar releases: each version that has a tarball and a digest, whatever its age. A manifest of another package, or
        version, is left out.
    :ivar files: versions by the name of their tarball.
    :ivar tarballs: addresses by version, as the metadata have them.
    :ivar manifests: metadata by version.
    """

    name: str
    releases: Mapping[str, Release]
    files: Mapping[str, str]
    tarballs: Mapping[str, str]
    manifests: Document
    tags: Mapping[str, str]
    times: Mapping[str, str]
    document: Document


class Filtered(NamedTuple):
    """
    Metadata for clients.

    :ivar body: JSON; empty if no version is old enough.
    :ivar tags: of the versions that are left.
    :ivar hidden: the young versions.
    """

    body: bytes
    tags: Mapping[str, str]
    hidden: tuple[str, ...]

    @property
    def etag(self) -> str:
        """The entity tag of the body, quoted."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


def read_packument(body: bytes, name: str, base: str, now: datetime) -> Packument:
    """
    :param body: JSON from the registry.
    :param name: of the package that was asked for.
    :param base: URL of the registry, without a slash at its end. Tarballs are fetched from nowhere else: where the
        metadata name another origin, or a path without the package's name, the registry is asked for the usual path.
    :raises UnusableMetadata: it is no such JSON.
    """
    try:
        document = _documents.decode(body)
        manifests = _documents.decode(document.get("versions", _NOTHING))
        times, tags = _texts(document.get("time", _NOTHING)), _texts(document.get("dist-tags", _NOTHING))
    except _UNREADABLE as e:
        raise UnusableMetadata(f"its metadata are not those of a package: {e}") from None
    releases: dict[str, Release] = {}
    tarballs: dict[str, str] = {}
    for version, manifest in manifests.items():
        try:
            described = _manifests.decode(manifest)
        except _UNREADABLE:
            continue
        dist = described.dist
        digest = integrity(dist.integrity) or hex_digest("sha1", dist.shasum)
        if digest is None or not is_version(version) or (described.name, described.version) != (name, version):
            continue  # yarn 1 installs a package as what its manifest calls it
        url = dist.tarball if _is_own(dist.tarball, base, name) else base + tarball_path(name, version)
        published = publication(times.get(version), now)
        releases[version] = Release(name, version, tarball_name(name, version), published, digest, url)
        tarballs[version] = dist.tarball
    files = {release.url.rpartition("/")[2]: version for version, release in releases.items()}
    files.update((release.file, version) for version, release in releases.items())  # the usual names take precedence
    return Packument(name, releases, files, tarballs, manifests, tags, times, document)


def filter_packument(packument: Packument, policy: PackagePolicy, origin: str, now: datetime) -> Filtered:
    """
    :param origin: scheme and host that the client asked, where it finds the tarballs.
    :returns: the metadata without young versions, and without those that cannot be verified.
    """
    releases = packument.releases.values()
    kept = [release.version for release in releases if not policy.is_young(release.published, now)]
    hidden = tuple(release.version for release in releases if policy.is_young(release.published, now))
    if not kept:
        return Filtered(b"", {}, hidden)
    document: dict[str, Any] = dict(packument.document)
    document["versions"] = {version: _manifest(packument, version, origin) for version in kept}
    document["dist-tags"] = tags = _tags(packument.tags, kept)
    times = packument.times
    document["time"] = {name: times[name] for name in ("created", "modified", *kept) if name in times}
    return Filtered(_encode(document), tags, hidden)


def one_manifest(packument: Packument, version: str, origin: str) -> bytes:
    """
    :param version: one of its releases.
    :param origin: see :func:`filter_packument`.
    :returns: the metadata of this version alone.
    """
    return _encode(_manifest(packument, version, origin))


def _is_own(tarball: str, base: str, name: str) -> bool:
    """:returns: whether the address of a tarball is one of this registry for this package."""
    place = unquote(tarball.removeprefix(f"{base}/").partition("?")[0])
    return tarball.startswith(f"{base}/") and f"/{name}/" in f"/{place}" and ".." not in place.split("/")


def _texts(raw: msgspec.Raw) -> dict[str, str]:
    return {name: value for name, value in _values.decode(raw).items() if isinstance(value, str)}


def _manifest(packument: Packument, version: str, origin: str) -> msgspec.Raw | dict[str, Any]:
    tarball, manifest = origin + tarball_path(packument.name, version), packument.manifests[version]
    if packument.tarballs[version] == tarball:
        return manifest
    found: dict[str, Any] = dict(_documents.decode(manifest))
    dist: dict[str, Any] = dict(_documents.decode(found["dist"]))
    return found | {"dist": dist | {"tarball": tarball}}


def _tags(tags: Mapping[str, str], kept: list[str]) -> dict[str, str]:
    """:returns: the tags of versions that are kept; ``latest`` is always there."""
    versions = frozenset(kept)
    left = {tag: version for tag, version in tags.items() if version in versions}
    left.setdefault("latest", _newest(kept, tags.get("latest", "")))
    return left


def _newest(kept: list[str], latest: str) -> str:
    """:returns: the newest release that is no newer than ``latest`` was; else the newest release, else the newest."""
    ranked = sorted((rank, version) for version in kept if (rank := precedence(version)) is not None)
    releases = [(rank, version) for rank, version in ranked if rank[1]]
    limit = precedence(latest)
    fitting = [(rank, version) for rank, version in releases if limit is None or rank <= limit]
    for choice in (fitting, releases, ranked):
        if choice:
            return choice[-1][1]
    return kept[-1]
