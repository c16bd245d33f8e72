"""Where an upstream registry is, which of its clients' requests are for it, and the addresses that it refers to."""

from __future__ import annotations

from urllib.parse import urljoin

import msgspec

from ironcurtain.http.urls import read_web_address


class Location(msgspec.Struct, frozen=True):
    """
    The address of a registry.

    :ivar url: without a slash at its end.
    :ivar host: its canonical name, or its address.
    :ivar path: the path of ``url``, without a slash at its end; empty if it has none.
    """

    url: str
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """The host as it is given to :meth:`~ironcurtain.registries.registry.Registry.answer`."""
        return self.host if self.port == 443 else f"{self.host}:{self.port}"

    @property
    def origin(self) -> str:
        """``url`` without its path."""
        return self.url.removesuffix(self.path) if self.path else self.url

    def below(self, path: str) -> str | None:
        """
        :param path: of a request to this host.
        :returns: the rest of it after this path, with a slash at its beginning; ``None`` if it is not below it.
        """
        rest = path.removeprefix(self.path)
        return rest if path.startswith(self.path) and rest.startswith("/") else None


def read_location(url: str) -> Location:
    """
    :param url: as :func:`~ironcurtain.http.addresses.is_base_url` accepts it.
    :raises UnclearAddress: it is something else.
    """
    url = url.rstrip("/")
    address = read_web_address(url)
    return Location(url, address.host.name, address.port, address.path)


def referred(base: str, text: str) -> str:
    """
    :param base: where the text was found.
    :param text: an address in metadata, perhaps relative.
    :returns: it, complete and without fragment; empty if programs could read it in different ways, if it has a user, or
        if it leads from TLS to an address without.
    """
    try:
        url = text.partition("#")[0]
        if not url.startswith("https://"):  # of thousands, most do
            url = urljoin(base, url)
        address = read_web_address(url)
    except ValueError:  # also what read_web_address raises
        return ""
    unsafe = address.scheme == "http" and not base.startswith("http://")
    return "" if unsafe or address.authority.user else url
