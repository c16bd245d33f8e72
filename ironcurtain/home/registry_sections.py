"""The table ``[registries]`` of ``config.toml``: package registries that agents may install from."""

from __future__ import annotations

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.home.sections import Count, KeySettings, Section
from ironcurtain.http.addresses import is_base_url
from ironcurtain.text.quantities import read_age

DEFAULT_MIN_AGE = "7d"
"""Most malicious releases are found and withdrawn within days."""

REGISTRIES = ("npm", "pypi", "crates", "debian", "go")
"""The names of the registries that can be opened."""


def age_seconds(text: str) -> float:
    """
    :param text: ``0``, or a whole number of minutes, hours, days or weeks, as in ``7d``.
    :returns: seconds.
    :raises ValueError: it is something else.
    """
    try:
        return 0.0 if text == "0" else read_age(text)
    except UsageError as e:
        raise ValueError(f"min_age: {e}, or 0 for no limit") from None


def canonical(host: str) -> str:
    """
    :param host: a name, or an address with or without brackets.
    :returns: it as connections name it.
    :raises ValueError: it is something else.
    """
    from ironcurtain.http.hosts import parse_host  # few settings name such a host

    parsed = parse_host(f"[{host}]" if ":" in host and not host.startswith("[") else host)
    if parsed is None or "*" in parsed.name:
        raise ValueError(f"private: {host!r} is no host: write a name or an address, without port")
    return parsed.name


class RegistrySettings(Section, frozen=True):
    """
    One package registry.

    :param url: a mirror or a private index to use instead of the public registry. It may be in a private network or on
        this machine.
    :param key: the source of the credential for ``url``: a token, or ``USER:PASSWORD``. ``header`` is the header that
        carries it; empty: ``Authorization``, as ``Bearer`` or ``Basic``.
    :param ca_file: PEM certificates to trust for ``url`` besides the system's.
    :param private: further hosts that may be in a private network: those to which ``url`` redirects or refers for
        files, or the public registry's own where the network has other addresses for it.
    :param min_age: how long ago a version must have been published; empty: as in ``[registries]``.
    :param allow: the only packages that can be installed; none: all. ``*`` stands for any characters.
    :param deny: packages that cannot be installed, even if ``allow`` has them.
    """

    url: str = ""
    key: KeySettings = KeySettings()
    ca_file: str = ""
    private: tuple[str, ...] = ()
    min_age: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.url and not is_base_url(self.url):
            raise ValueError("url must look like https://host[:port][/path], or without TLS like http://127.0.0.1:4873")
        if self.key.has_source and not self.url:
            raise ValueError("a key needs the url of the registry that it is for")
        for host in self.private:
            canonical(host)
        if self.min_age:
            age_seconds(self.min_age)


class Registries(Section, frozen=True):
    """
    The package registries that are open, read-only: ``true``, or a table with details.

    :param min_age: how long ago a version must have been published.
    :param max_file_mb: maximum size in MB of one file.
    :param max_files: maximum number of files of one session.
    :param max_lookups: maximum number of requests for metadata of one session.
    :param max_missing: maximum number of requests of one session for what does not exist: their names can carry data
        out.
    """

    npm: bool | RegistrySettings = False
    pypi: bool | RegistrySettings = False
    crates: bool | RegistrySettings = False
    debian: bool | RegistrySettings = False
    go: bool | RegistrySettings = False
    min_age: str = DEFAULT_MIN_AGE
    max_file_mb: Count = 1024
    max_files: Count = 10_000
    max_lookups: Count = 20_000
    max_missing: Count = 100

    def __post_init__(self) -> None:
        age_seconds(self.min_age)

    def opened(self, name: str) -> RegistrySettings | None:
        """
        :param name: one of :data:`REGISTRIES`.
        :returns: the settings of a registry, with its ``min_age``; ``None`` if it is not open.
        """
        value: bool | RegistrySettings = getattr(self, name)
        if value is False:
            return None
        found = RegistrySettings() if value is True else value
        return found if found.min_age else msgspec.structs.replace(found, min_age=self.min_age)

    def offered(self) -> RegistrySettings:
        """:returns: the settings of a registry that is closed, for the case that a person opens it."""
        return RegistrySettings(min_age=self.min_age)
