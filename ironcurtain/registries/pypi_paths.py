"""
The paths of the Python package index that may be requested, and what the names of its files tell.

Only these are understood: ``/simple/NAME/``, ``/pypi/NAME/VERSION/json``, and on the host of the files any path below
``/packages/`` that ends with the name of a wheel or of a source distribution, or with that name and ``.metadata``. The
rest of such a path is never sent anywhere: the file is fetched from where the index has it.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from packaging.version import InvalidVersion, Version

NAME_LIMIT: Final = 100
"""Maximum length in characters of a project's name; the longest that are in use have about 80."""

FOLDER: Final = "/packages/"
"""Where the files are."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_SIMPLE = re.compile(r"/simple/([^/]+)/?")
_RELEASE = re.compile(r"/pypi/([^/]+)/([A-Za-z0-9._!+-]{1,100})/json")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._!+-]{0,249}")
_WHEEL = re.compile(r"([^-]+)-([^-]+)(?:-[0-9][^-]*)?-[^-]+-[^-]+-[^-]+\.whl")
_SOURCE = re.compile(r"(.+)\.(?:tar\.gz|zip|tgz|tar\.bz2|tar\.xz|tar\.Z|tar)")
_METADATA: Final = ".metadata"


class ProjectPage(msgspec.Struct, frozen=True):
    """
    The list of a project's files.

    :ivar project: its name in normal form.
    """

    project: str


class ReleaseData(msgspec.Struct, frozen=True):
    """
    What ``poetry`` wants to know of one version.

    :ivar project: its name in normal form.
    :ivar version: as in the path.
    """

    project: str
    version: str


class FileRequest(msgspec.Struct, frozen=True):
    """
    A file, or the metadata that the index keeps beside it.

    :ivar filename: name of the file itself.
    """

    filename: str
    metadata: bool


class Owner(msgspec.Struct, frozen=True):
    """
    The project and version that a file's name may stand for.

    :ivar project: its name in normal form.
    :ivar version: as in the name of the file.
    """

    project: str
    version: str


PyPIRequest = ProjectPage | ReleaseData | FileRequest


def normalise(name: str) -> str:
    """:returns: the form of a project's name that is equal for all its spellings (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def normal(name: str) -> str:
    """
    :param name: of a project, perhaps.
    :returns: its normal form; empty if it is no name.
    """
    return normalise(name) if len(name) <= NAME_LIMIT and _NAME.fullmatch(name) else ""


def read_index_path(path: str) -> ProjectPage | ReleaseData | None:
    """
    :param path: of a request to the host of the index, unchanged and without the query.
    :returns: ``None`` if it is none of those that installing needs.
    """
    if page := _SIMPLE.fullmatch(path):
        project = normal(page[1])
        return ProjectPage(project) if project else None
    if (release := _RELEASE.fullmatch(_plain(path))) and (project := normal(release[1])):
        return ReleaseData(project, release[2])
    return None


def read_file_path(path: str) -> FileRequest | None:
    """
    :param path: of a request to the host of the files, unchanged and without the query.
    :returns: ``None`` if it does not end with the name of a file.
    """
    if not path.startswith(FOLDER):
        return None
    asked = _plain(path).rpartition("/")[2]
    filename = asked.removesuffix(_METADATA)
    return FileRequest(filename, filename != asked) if owners(filename) else None


def owners(filename: str) -> tuple[Owner, ...]:
    """
    :returns: each project of which the file may be, the likeliest first; none if it is neither a wheel nor a source
        distribution. Old source distributions do not tell where the version begins.
    """
    if not _FILE_NAME.fullmatch(filename):
        return ()
    if wheel := _WHEEL.fullmatch(filename):
        project = normal(wheel[1])
        return (Owner(project, wheel[2].replace("_", "-")),) if project else ()
    if (source := _SOURCE.fullmatch(filename)) is None:
        return ()
    stem = source[1]
    dashes = [place for place, character in enumerate(stem) if character == "-"]
    splits = ((normal(stem[:place]), stem[place + 1 :]) for place in reversed(dashes))
    return tuple(Owner(project, version) for project, version in splits if project and is_version(version))


def is_version(text: str) -> bool:
    """:returns: whether a text is a version (PEP 440)."""
    return _version(text) is not None


def same_version(one: str, other: str) -> bool:
    """:returns: whether two spellings mean one version: ``1.0-beta1`` and ``1.0b1``."""
    if one == other:
        return True
    first = _version(one)
    return first is not None and first == _version(other)


def _plain(path: str) -> str:
    """:returns: a path without the escapes that versions need."""
    return re.sub("%2[bB]", "+", path.replace("%21", "!"))


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
