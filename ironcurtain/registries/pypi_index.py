"""
Read the list of a project's files that an upstream index gives, in JSON (PEP 691 and its successors).

Only what is understood is kept: wheels and source distributions with a SHA-256 digest and an address. All else is left
out, since it could not be verified.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from ironcurtain.registries.location import referred
from ironcurtain.registries.pypi_paths import owners
from ironcurtain.registries.releases import Digest, Release, hex_digest, publication

JSON: Final = "application/vnd.pypi.simple.v1+json"
"""The media type of the list; PyPI's HTML has no times."""

_TEXT_LIMIT: Final = 500
"""Maximum length in characters of texts that are passed on; longer ones are cut."""


class NoIndex(ValueError):
    """What the upstream server sent is no list of files that can be used. The message says why, as its predicate."""


class ProjectFile(NamedTuple):
    """
    One file of a project.

    :ivar release: what the file is, and where the upstream index keeps it.
    :ivar uploaded: its time as the index has it; empty if there is none.
    :ivar metadata: digest of the metadata beside it; ``None`` if there are none, or they could not be verified.
    :ivar size: in bytes; ``None`` if the index does not tell.
    :ivar requires_python: versions of Python that it is for; empty: all.
    :ivar yanked: whether its author withdrew it.
    :ivar yanked_reason: why; may be empty.
    """

    release: Release
    uploaded: str
    metadata: Digest | None
    size: int | None
    requires_python: str
    yanked: bool
    yanked_reason: str

    @property
    def filename(self) -> str:
        """Its name."""
        return self.release.file

    def metadata_release(self) -> Release | None:
        """:returns: the metadata beside the file, as a file of the same age; ``None`` if there are none."""
        if self.metadata is None:
            return None
        name, version, file, published, _, url = self.release
        return Release(name, version, f"{file}.metadata", published, self.metadata, f"{url}.metadata")


class _File(msgspec.Struct, rename="kebab"):
    filename: str
    url: str
    hashes: dict[str, Any]
    upload_time: Any = None
    size: Any = None
    requires_python: Any = None
    yanked: Any = False
    core_metadata: Any = None
    dist_info_metadata: Any = None


class _Index(msgspec.Struct):
    files: list[msgspec.Raw]


_read_index = msgspec.json.Decoder(_Index).decode
_read_file = msgspec.json.Decoder(_File).decode


def read_index(body: bytes, url: str, project: str, now: datetime) -> list[ProjectFile]:
    """
    :param url: where the list was found; addresses in it may be relative.
    :param project: in normal form. Files that are named otherwise are left out.
    :returns: the files in the order of the list, each name once.
    :raises NoIndex: it is no list of files, or none of its files can be used.
    """
    try:
        entries = _read_index(body).files
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoIndex("does not list its files in JSON (PEP 691), so nobody knows how old they are") from None
    files: dict[str, ProjectFile] = {}
    for file in _files(entries):
        if file.filename not in files and (found := _understood(file, url, project, now)) is not None:
            files[file.filename] = found
    if entries and not files:
        raise NoIndex(f"lists files for {project}, but no wheel or source distribution of it with a SHA-256 digest")
    return list(files.values())


def _files(entries: list[msgspec.Raw]) -> Iterator[_File]:
    for entry in entries:
        try:
            yield _read_file(entry)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue


def _understood(file: _File, url: str, project: str, now: datetime) -> ProjectFile | None:
    version = next((owner.version for owner in owners(file.filename) if owner.project == project), None)
    digest, address = hex_digest("sha256", file.hashes.get("sha256")), _address(url, file.url, file.filename)
    if version is None or digest is None or not address:
        return None
    uploaded = _text(file.upload_time)
    return ProjectFile(
        Release(project, version, file.filename, publication(uploaded, now), digest, address),
        uploaded,
        _metadata(file.core_metadata) or _metadata(file.dist_info_metadata),
        file.size if isinstance(file.size, int) and not isinstance(file.size, bool) and file.size >= 0 else None,
        _text(file.requires_python),
        bool(file.yanked),
        _text(file.yanked),
    )


def _address(base: str, text: str, filename: str) -> str:
    """:returns: the address of a file; empty if it is unclear, or does not end with the name of the file."""
    url = referred(base, text)
    return url if unquote(url.partition("?")[0]).endswith(f"/{filename}") else ""


def _metadata(value: object) -> Digest | None:
    return hex_digest("sha256", value.get("sha256")) if isinstance(value, dict) else None


def _text(value: object) -> str:
    return value[:_TEXT_LIMIT] if isinstance(value, str) else ""
