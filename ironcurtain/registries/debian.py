"""
Archives of Debian packages, read-only: signed lists below ``dists/``, and packages below ``pool/``.

Nothing is filtered: ``apt`` verifies the signature of the lists, and by them each package. The lists have no times, so
the only time of a package is the ``Last-Modified`` of its file, which the mirror gives.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.debian_paths import PackageFile, SignedList, read_path
from ironcurtain.registries.location import read_location
from ironcurtain.registries.registry import Store
from ironcurtain.registries.releases import Release

ARCHIVES: Final = ("deb.debian.org", "security.debian.org")
"""The hosts that images of Debian name, with TLS or without."""

_PORTS: Final = (80, 443)
_PATHS: Final = "only signed lists (dists/) and packages (pool/) are open, for apt-get"
_LIST, _PACKAGE = "application/octet-stream", "application/vnd.debian.binary-package"


class Debian:
    """
    :param url: of a mirror to use for all hosts; requested paths are appended. Empty: the hosts themselves, with TLS,
        also where clients ask without.

    :ivar hosts: see :class:`~ironcurtain.registries.registry.Registry`.
    """

    quiet: re.Pattern[str] | None = None
    hosts: Collection[tuple[str, int]]

    def __init__(self, store: Store, url: str = "") -> None:
        self._store = store
        self._mirror = read_location(url) if url else None
        hosts = {(host, port) for host in ARCHIVES for port in _PORTS}
        if self._mirror is not None:
            ports = _PORTS if self._mirror.port in _PORTS else (self._mirror.port,)
            hosts |= {(self._mirror.host, port) for port in ports}
        self.hosts = frozenset(hosts)

    async def answer(self, host: str, head: RequestHead) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.registries.registry.Registry`."""
        name = host.removesuffix(":80")
        path: str | None = head.path
        if name not in ARCHIVES and self._mirror is not None:
            path = self._mirror.below(head.path)
        base = f"https://{name}" if self._mirror is None else self._mirror.url
        match read_path(path or ""):
            case SignedList(path=where, digest=digest):
                release = Release("", "", where.lstrip("/"), None, digest, base + where)
                return await self._store.deliver(release, _LIST, installs=False)
            case PackageFile(path=where, file=file, name=package, version=version):
                release = Release(package, version, file, None, None, base + where)
                return await self._store.deliver(release, _PACKAGE, dated_by_file=True)
            case None:
                return RequestRefusal(403, "not-for-installing", f"{_PATHS}.")
