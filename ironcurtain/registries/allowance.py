"""How much a session may ask of its registries: names of packages can carry data out, and files fill disks."""

from __future__ import annotations

import msgspec

from ironcurtain.home.registry_sections import Registries
from ironcurtain.providers.provider import RequestRefusal

MEGABYTE = 1_000_000


class Allowance(msgspec.Struct):
    """
    Counts what one session has asked of all its registries.

    :param settings: the limits.
    """

    settings: Registries
    files: int = 0
    lookups: int = 0
    missing: set[str] = msgspec.field(default_factory=set)

    @property
    def file_bytes(self) -> int:
        """Maximum size in bytes of one file."""
        return self.settings.max_file_mb * MEGABYTE

    def take_file(self) -> RequestRefusal | None:
        """Count a file. :returns: why it must not be fetched; ``None`` if it may."""
        self.files += 1
        return self._spent() or self._over(self.files, self.settings.max_files, "files", "max_files")

    def take_lookup(self) -> RequestRefusal | None:
        """Count a request for metadata. :returns: why it must not be sent; ``None`` if it may."""
        self.lookups += 1
        return self._spent() or self._over(self.lookups, self.settings.max_lookups, "lookups", "max_lookups")

    def miss(self, url: str) -> None:
        """Count what does not exist, once: clients ask again for the same, and no more is said by that."""
        self.missing.add(url)

    def _spent(self) -> RequestRefusal | None:
        what = "requests for what does not exist"
        return self._over(len(self.missing) + 1, self.settings.max_missing, what, "max_missing")

    @staticmethod
    def _over(count: int, limit: int, what: str, setting: str) -> RequestRefusal | None:
        if count <= limit:
            return None
        why = f"this session has made its {limit} {what} ({setting} in [registries])"
        return RequestRefusal(403, "package-limit", f"{why}: ask the user to start another session, or to raise it.")
