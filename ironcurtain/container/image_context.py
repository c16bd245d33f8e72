"""What an image is built from: its folder as an archive, and a digest over everything that shapes the result."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterable, Mapping

_ARGUMENT = re.compile(r"^ARG\s+(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:=(?P<default>\S*))?", re.MULTILINE)


def archive(files: Mapping[str, bytes]) -> bytes:
    """
    Pack files for the Engine.

    The archive depends on nothing but them, so that the Engine finds again what it built from the same. A file that
    begins with ``#!`` may be executed.

    :param files: content by path.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o755 if files[name].startswith(b"#!") else 0o644
            packed.addfile(entry, io.BytesIO(files[name]))
        end = packed.offset + 2 * tarfile.BLOCKSIZE
    # Without what fills up the last record: the Engine does not read it, and while there is something to read it does
    # not notice that nobody waits for the build any more.
    return buffer.getvalue()[:end]


def arguments(dockerfile: bytes) -> dict[str, str]:
    """:returns: the build arguments that a Dockerfile declares, with their defaults; empty where it gives none."""
    return {found["name"]: found["default"] or "" for found in _ARGUMENT.finditer(dockerfile.decode())}


def content(folders: Iterable[Mapping[str, bytes]], values: Mapping[str, str]) -> str:
    """
    :param folders: the files that the image is built from.
    :param values: whatever else shapes it: build arguments, what it stands on.
    :returns: a digest in hexadecimal; the same content gives the same, and no other does.
    """
    digest = hashlib.sha256()
    for part in (*folders, {name: value.encode() for name, value in values.items()}):
        digest.update(len(part).to_bytes(8, "big"))
        for name in sorted(part):
            for piece in (name.encode(), part[name]):
                digest.update(len(piece).to_bytes(8, "big") + piece)
    return digest.hexdigest()
