"""The requests of the Go module proxy and of the checksum database that downloading modules needs."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

import msgspec

SUMS: Final = "sum.golang.org"
"""The only checksum database that is served: its name is in every Go toolchain."""

_ELEMENT: Final = r"(?:[a-z0-9_~-]|![a-z])(?:[a-z0-9._~-]|![a-z])*"
_MODULE: Final = rf"(?P<module>{_ELEMENT}(?:/{_ELEMENT})*)"
_VERSION: Final = r"(?P<version>(?:[a-z0-9_~]|![a-z])(?:[a-z0-9._~+/-]|![a-z])*)"
_VERSIONS = re.compile(rf"/{_MODULE}/@v/list")
_LATEST = re.compile(rf"/{_MODULE}/@latest")
_FILE = re.compile(rf"/{_MODULE}/@v/{_VERSION}\.(?P<kind>info|mod|zip)")
_LOOKUP = re.compile(rf"/lookup/{_MODULE}@{_VERSION}")
_TILE = re.compile(r"/tile/[0-9]{1,2}/(?:data|[0-9]{1,2})/(?:x[0-9]{3}/){0,5}[0-9]{3}(?:\.p/[0-9]{1,3})?")
_ESCAPE = re.compile("!([a-z])")
_PATH_LIMIT: Final = 500


class Versions(msgspec.Struct, frozen=True):
    """
    The list of a module's versions, or what is its latest one.

    :ivar path: as it is sent on.
    :ivar module: with its capitals.
    """

    path: str
    module: str
    latest: bool


class ModuleFile(msgspec.Struct, frozen=True):
    """
    A file of one version.

    :ivar module: with its capitals.
    :ivar version: with its capitals; a branch or a commit where ``info`` is asked for.
    :ivar kind: ``info``, ``mod`` or ``zip``.
    :ivar info: the path of the version's ``.info``.
    """

    path: str
    module: str
    version: str
    kind: str
    info: str


class Sums(msgspec.Struct, frozen=True):
    """
    A part of the checksum database.

    :ivar path: below the database.
    :ivar module: whose checksums are wanted; empty for its tree.
    """

    path: str
    module: str


GoRequest = Versions | ModuleFile | Sums


def read_module_path(path: str) -> GoRequest | None:
    """
    :param path: of a request to the module proxy, without the query.
    :returns: ``None`` if it is nothing that downloading modules needs.
    """
    if (plain := _plain(path)) is None:
        return None
    path = plain
    if path.startswith(f"/sumdb/{SUMS}/"):
        return read_sums_path(path.removeprefix(f"/sumdb/{SUMS}"))
    if match := _VERSIONS.fullmatch(path) or _LATEST.fullmatch(path):
        return Versions(path, _unescaped(match["module"]), path.endswith("/@latest"))
    if (match := _FILE.fullmatch(path)) is None or "//" in path or "/." in path:
        return None
    info = f"{path.rpartition('.')[0]}.info"
    return ModuleFile(path, _unescaped(match["module"]), _unescaped(match["version"]), match["kind"], info)


def read_sums_path(path: str) -> Sums | None:
    """
    :param path: of a request to the checksum database, without the query.
    :returns: ``None`` if it is nothing that verifying modules needs.
    """
    if (plain := _plain(path)) is None:
        return None
    path = plain
    if path in ("/supported", "/latest") or _TILE.fullmatch(path):
        return Sums(path, "")
    if (match := _LOOKUP.fullmatch(path)) is None or "//" in path or "/." in path:
        return None
    return Sums(path, _unescaped(match["module"]))


def escaped(text: str) -> str:
    """:returns: a module or version as paths have it: with ``!`` and a small letter in place of capitals."""
    return re.sub("[A-Z]", lambda capital: f"!{capital[0].lower()}", text)


def _plain(path: str) -> str | None:
    """:returns: a path without percent-encoding, as ``go`` writes it for ``!``; ``None`` if it is too long."""
    return unquote(path, "latin-1") if len(path) <= _PATH_LIMIT else None


def _unescaped(text: str) -> str:
    """:returns: a path with capitals in place of ``!`` and a small letter."""
    return _ESCAPE.sub(lambda escape: escape[1].upper(), text)
