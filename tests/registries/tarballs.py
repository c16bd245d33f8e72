"""Archives of packages."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping


def tarball(files: Mapping[str, str]) -> bytes:
    """:returns: an archive of files, by path."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()
