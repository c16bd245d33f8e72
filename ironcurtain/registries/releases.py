"""Files of packages, as the metadata of their registry describe them."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

HASHES: Final = {"sha512": 64, "sha384": 48, "sha256": 32, "sha1": 20}
"""The algorithms by which a file may be verified, strongest first, with the size of their digests in bytes."""

_EARLIEST: Final = datetime(1995, 1, 1, tzinfo=UTC)
"""No registry is older. Earlier times are placeholders, such as the epoch or 1985."""


class Digest(NamedTuple):
    """
    :ivar algorithm: one of :data:`HASHES`.
    :ivar value: the digest itself.
    """

    algorithm: str
    value: bytes

    def __str__(self) -> str:
        return f"{self.algorithm}-{base64.b64encode(self.value).decode('ascii')}"


class Release(NamedTuple):
    """
    One file of one version of a package.

    :ivar name: of the package, as its registry normalises it; empty for a file of none, such as a list of packages.
    :ivar file: name of the file, for people and records.
    :ivar published: when it was published; ``None`` if that is not known, or not credible: then it counts as young.
    :ivar digest: what the file must have; ``None`` if the registry's metadata have none.
    :ivar url: where the registry keeps it.
    """

    name: str
    version: str
    file: str
    published: datetime | None
    digest: Digest | None
    url: str


def hex_digest(algorithm: str, text: object) -> Digest | None:
    """:returns: the digest that a hexadecimal text gives; ``None`` if it is no such text."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-fA-F]+", text) or len(text) != 2 * HASHES[algorithm]:
        return None
    return Digest(algorithm, bytes.fromhex(text))


def integrity(text: object) -> Digest | None:
    """
    :param text: as in Subresource Integrity, ``sha512-BASE64``, perhaps several.
    :returns: the strongest digest in it; ``None`` if there is none.
    """
    found: dict[str, Digest] = {}
    for word in text.split() if isinstance(text, str) else ():
        algorithm, _, encoded = word.partition("?")[0].partition("-")
        try:
            value = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            continue
        if HASHES.get(algorithm) == len(value):
            found.setdefault(algorithm, Digest(algorithm, value))
    return next((found[algorithm] for algorithm in HASHES if algorithm in found), None)


def publication(text: object, now: datetime) -> datetime | None:
    """
    :param text: a time of the metadata (ISO 8601).
    :returns: the time; ``None`` if it is missing, has no zone, or cannot be true: before there were registries, or in
        the future.
    """
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.tzinfo is None or not _EARLIEST <= time <= now + timedelta(minutes=5):
        return None
    return time
