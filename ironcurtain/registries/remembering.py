"""What is known of packages' files, kept for a while: clients fetch files right after metadata."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

REMEMBERED_SECONDS: Final = 300.0
"""How long the digests and times of a package's files are used."""

REMEMBERED_FILES: Final = 50_000
"""Maximum number of files of all packages of one registry that are remembered."""

T = TypeVar("T")


class Remembered(Generic[T]):
    """Files of packages, by name of the package and of the file."""

    def __init__(self) -> None:
        self._packages: OrderedDict[str, tuple[float, Mapping[str, T]]] = OrderedDict()
        self._count = 0

    def get(self, name: str, now: float) -> Mapping[str, T] | None:
        """:returns: the files of a package; ``None`` if they have to be looked up."""
        since, files = self._packages.get(name, (0.0, None))
        return files if now - since < REMEMBERED_SECONDS else None

    def put(self, name: str, files: Mapping[str, T], now: float) -> None:
        """Remember files, and forget those of other packages, oldest first, beyond the limit."""
        _, before = self._packages.pop(name, (0.0, {}))
        self._packages[name] = now, files
        self._count += len(files) - len(before)
        while self._count > REMEMBERED_FILES and len(self._packages) > 1:
            _, (_, old) = self._packages.popitem(last=False)
            self._count -= len(old)
