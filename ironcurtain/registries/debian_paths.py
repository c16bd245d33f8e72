"""The paths of an archive of Debian packages that may be requested: signed lists, and the packages that they name."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from ironcurtain.registries.releases import Digest, hex_digest

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:@-]*")
_NAME: Final = r"(?P<name>[a-z0-9][a-z0-9+.-]*)_(?P<version>[A-Za-z0-9.+~:-]+?)"
_PACKAGE = re.compile(rf"{_NAME}(?:_[a-z0-9-]+)?\.u?deb")
_SOURCE = re.compile(
    rf"{_NAME}(?:\.dsc|\.diff\.gz|(?:\.orig(?:-[A-Za-z0-9-]+)?|\.debian)?\.tar\.(?:gz|bz2|xz|lzma)(?:\.asc)?)"
)
_INSTALLED: Final = (".deb", ".udeb", ".dsc")
"""No list has such a name, so that a package whose name is not understood is not taken for one."""


class SignedList(msgspec.Struct, frozen=True):
    """
    A file below ``dists/``.

    :ivar path: canonical.
    :ivar digest: what it must have if it is asked for by digest (``by-hash``); else ``None``.
    """

    path: str
    digest: Digest | None


class PackageFile(msgspec.Struct, frozen=True):
    """
    A package, or a part of its source, below ``pool/`` or ``dists/``.

    :ivar path: canonical.
    :ivar file: its last segment.
    :ivar name: of the package; of the source package for parts of a source.
    """

    path: str
    file: str
    name: str
    version: str


def read_path(path: str) -> SignedList | PackageFile | None:
    """
    :param path: of a request, without the query; ``apt`` writes ``+`` as ``%2b``.
    :returns: ``None`` if it is neither below ``dists/`` nor a package below ``pool/``. A package is never a list.
    """
    plain = unquote(path, "latin-1")
    segments = plain.split("/")[1:]
    names = (segment.replace("_", "-") for segment in segments)  # the first character is none of these
    if not plain.startswith("/") or not all(map(_SEGMENT.fullmatch, names)):
        return None
    canonical, file = quote(plain, safe="/~"), segments[-1]
    kind = next((segment for segment in segments[:-1] if segment in ("dists", "pool")), "")
    match = _PACKAGE.fullmatch(file) or _SOURCE.fullmatch(file)
    if kind and match is not None:  # some archives have packages below dists/, too
        return PackageFile(canonical, file, match["name"], match["version"])
    if kind == "dists" and not file.endswith(_INSTALLED):
        by_hash = segments[-2] == "SHA256" and segments[-3] == "by-hash"
        digest = hex_digest("sha256", file) if by_hash else None
        return None if by_hash and digest is None else SignedList(canonical, digest)
    return None
