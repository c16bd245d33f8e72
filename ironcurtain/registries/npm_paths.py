"""What npm's clients ask for to install packages: a path grammar of its own, since scoped names contain slashes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

NAME_LIMIT: Final = 214
"""Maximum length of a package's name in characters, as in npm's rules for names."""

_WORD: Final = r"[A-Za-z0-9~!*'()_-][A-Za-z0-9~!*'()._-]*"
_NAME: Final = rf"(?!-(?:/|\Z))(?:@{_WORD}/)?{_WORD}"
"""Not ``-``, since the paths below it are those of the registry's own services."""

_VERSION: Final = r"[A-Za-z0-9][A-Za-z0-9.+_~-]*"
_VERSION_ONLY: Final = re.compile(_VERSION)
_REQUEST: Final = re.compile(
    rf"/(?P<name>{_NAME})(?:/-/(?P<file>[A-Za-z0-9@~!*'()._+-]+\.tgz)|/(?P<version>{_VERSION}))?"
)

QUIET: Final = re.compile(r"/-/npm/v1/(?:security/(?:advisories/bulk|audits(?:/quick)?)|attestations/.*|keys)")
"""
What clients ask for beside an installation and do without: advisories, for which they list the project's packages, and
signatures.
"""


class PackageRequest(NamedTuple):
    """
    :ivar name: of the package, with its scope.
    :ivar file: name of a tarball; empty: metadata are wanted.
    :ivar version: a version or tag whose metadata alone are wanted; empty: those of all.
    """

    name: str
    file: str = ""
    version: str = ""


def read_path(path: str) -> PackageRequest | None:
    """
    :param path: of a request, without the query; the slash of a scoped name, and anything else, may be encoded.
    :returns: what it asks for; ``None`` if it is nothing that installing needs.
    """
    try:
        decoded = unquote_to_bytes(path).decode("ascii")
    except UnicodeDecodeError:
        return None
    match = _REQUEST.fullmatch(decoded)
    if match is None or len(match["name"]) > NAME_LIMIT:
        return None
    return PackageRequest(match["name"], match["file"] or "", match["version"] or "")


def is_version(text: str) -> bool:
    """:returns: whether a version can be asked for."""
    return _VERSION_ONLY.fullmatch(text) is not None


def packument_path(name: str) -> str:
    """:returns: the path of a package's metadata at a registry."""
    return "/" + quote(name, safe="@~!*'()._-")


def tarball_name(name: str, version: str) -> str:
    """:returns: the name that a version's tarball has at the public registry."""
    return f"{name.rpartition('/')[2]}-{version}.tgz"


def tarball_path(name: str, version: str) -> str:
    """:returns: the path of a version's tarball at the public registry."""
    return f"/{name}/-/{tarball_name(name, version)}"
