"""The hosts that only gather reports about programs and their users, as ``data/telemetry.toml`` lists them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from msgspec import Struct, toml

from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.policy.targets import Target

DATA = Path(__file__).parent / "data" / "telemetry.toml"


class TelemetryHosts(Struct, frozen=True, forbid_unknown_fields=True):
    """
    Hosts that gather the same reports.

    :param what: what they gather, and whose, in words for people.
    :param hosts: patterns, as in rules.
    :param status: status of the HTTP response with which requests are refused: the one after which clients are silent.
    """

    what: str
    hosts: tuple[str, ...]
    status: int = 403


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    telemetry: tuple[TelemetryHosts, ...]


def find(target: Target) -> TelemetryHosts | None:
    """:returns: the entry that a connection's host is in, if any."""
    return next((entry for patterns, entry in _patterns() if patterns.match(target)), None)


def entries() -> tuple[TelemetryHosts, ...]:
    """:returns: all entries."""
    return toml.decode(_content(), type=_Document).telemetry


@cache
def digest() -> str:
    """:returns: a hash of the list."""
    return hashlib.sha256(_content()).hexdigest()


@cache
def _content() -> bytes:
    return DATA.read_bytes()


@cache
def _patterns() -> tuple[tuple[DomainPatterns, TelemetryHosts], ...]:
    return tuple((DomainPatterns(entry.hosts), entry) for entry in entries())
