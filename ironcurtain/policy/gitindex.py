"""Find in git's index (gitformat-index(5)) the entries that are other repositories. Pure."""

from __future__ import annotations

from struct import unpack_from

GITLINK = b"\0\0\xe0\0"
"""Mode of an entry that is another repository: a submodule."""

_HEADER = 12
_EXTENDED = 0x4000


class MalformedIndex(ValueError):
    """It may have such entries, but is in no form that can be read here."""


def gitlinks(index: bytes, *, sha256: bool = False) -> list[bytes]:
    """
    :param index: the whole file; empty if there is none.
    :param sha256: whether objects are named by SHA-256, and not by SHA-1.
    :returns: the paths of the entries that are repositories, below the working tree.
    :raises MalformedIndex: there may be such entries, and nobody can say where.
    """
    if GITLINK not in index:
        return []
    version, count = unpack_from(">II", index.ljust(_HEADER), 4)
    if index[:4] != b"DIRC" or version not in (2, 3):
        raise MalformedIndex("it has submodules, in another form than git update-index --index-version 2 writes")
    found, at = [], _HEADER
    for _ in range(count):
        path = at + (74 if sha256 else 62)
        if path >= len(index):
            raise MalformedIndex("it ends too early")
        if unpack_from(">H", index, path - 2)[0] & _EXTENDED:
            path += 2
        end = index.find(b"\0", path)
        if end <= path:
            raise MalformedIndex("it has an entry without a path")
        if index[at + 24 : at + 28] == GITLINK:
            found.append(index[path:end])
        at += (end - at + 8) // 8 * 8
    return found
