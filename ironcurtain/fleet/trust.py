"""
Whom this host believes: the file ``fleet.trust`` of the home.

It names the key of each other host, and the people that each may speak for, with their roles here. Nothing that a
carrier or another member says can change it::

    version = 1

    [hosts.laptop]
    key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    people = { "local:alice" = ["view", "approve", "attach"], "*" = ["view"] }

    [people]
    alice = ["local:root", "local:alice@laptop"]

The second table says which principals are one person, whose approvals count once where two people must approve.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from ironcurtain.errors import ConfigurationError, NotAllowed
from ironcurtain.files.private import read_private
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.home.parsing import parse_toml
from ironcurtain.operations import Principal, Role
from ironcurtain.operations.principal import NAME_LIMIT
from ironcurtain.text.decoding import decode_text

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""The name of a host, which is a token of a NATS subject and a directory."""

ANYBODY = "*"
"""Stands for all people of a host that are not named."""

FILE_LIMIT = 1024 * 1024
"""Maximum size in bytes of the file."""

KEY_BYTES = 32
"""Length of a public Ed25519 key (RFC 8032)."""


class Host(msgspec.Struct, frozen=True):
    """
    Another member.

    :param key: its public Ed25519 key.
    :param people: the roles here of those that it may speak for, by their names there.
    """

    name: str
    key: bytes
    people: Mapping[str, frozenset[Role]]

    def principal(self, person: str, claimed: frozenset[Role]) -> Principal:
        """
        :param person: whom the host speaks for.
        :param claimed: the roles that the host says they have.
        :returns: that person, with the roles that both sides grant, named with the host.
        :raises NotAllowed: the host may not speak for them, or the name is so long that the host would be cut off.
        """
        name = f"{person}@{self.name}"
        if len(name) > NAME_LIMIT:
            raise NotAllowed(f"{self.name} names somebody with more than {NAME_LIMIT} characters")
        granted = self.people.get(person, self.people.get(ANYBODY))
        if granted is None:
            raise NotAllowed(f"{self.name} may not speak for {person} here: see fleet.trust")
        if Role.ADMIN in claimed:
            claimed = frozenset(Role)
        if Role.ADMIN in granted:
            granted = frozenset(Role)
        return Principal(name, granted & claimed)


class Trust(msgspec.Struct, frozen=True):
    """
    :param hosts: the other members, by name.
    :param people: who the holder of a name of a principal is, where several are one person.
    """

    hosts: Mapping[str, Host] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    people: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    def once(self, first: str, second: str) -> str:
        """
        :param first: name of a principal, as is ``second``.
        :returns: why their approvals count once; empty: they are two people, for all that this host knows. What one
            other host says of any number of people is no more than its own word.
        """
        if self.people.get(first, first) == self.people.get(second, second):
            return f"{first} is the same person as {second}"
        host = first.rpartition("@")[2]
        if host in self.hosts and second.endswith(f"@{host}"):
            return f"{host} speaks for {first}, too, and one host counts once"
        return ""

    def key_of(self, host: str) -> bytes | None:
        """:returns: the public key of a host; ``None``: it is not trusted."""
        return None if (known := self.hosts.get(host)) is None else known.key

    def host_of(self, key: bytes) -> Host | None:
        """:returns: the host with a public key."""
        return next((host for host in self.hosts.values() if host.key == key), None)


class _HostTable(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    people: dict[str, list[Role]] = {}


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    people: dict[str, list[str]] = {}
    hosts: dict[str, _HostTable] = {}


def read_trust(path: Path) -> Trust:
    """
    :raises ConfigurationError: the file cannot be read, or is wrong; then nobody is trusted.
    """
    if not path.exists():
        return Trust()
    return parse_trust(str(path), decode_text(str(path), read_private(path, FILE_LIMIT)))


def parse_trust(source: str, text: str) -> Trust:
    """
    :param source: the file's name, for messages.
    :returns: the trust in a file.
    :raises ConfigurationError: it is wrong; the message says where.
    """
    try:
        return _trust(msgspec.convert(parse_toml(source, text), _File))
    except ValueError as e:  # what msgspec raises is a ValueError
        raise ConfigurationError(source, str(e)) from None


def _trust(file: _File) -> Trust:
    if file.version != 1:
        raise ValueError(f"version {file.version} is not known: this IronCurtain reads version 1")
    hosts = {name: _host(name, table) for name, table in file.hosts.items()}
    if len({host.key for host in hosts.values()}) != len(hosts):
        raise ValueError("two hosts have the same key, so that nobody knows which of them speaks")
    if len({int(HostNumber(name, 0)) for name in hosts}) != len(hosts):
        raise ValueError("two hosts have names whose numbers here would be the same: rename one")
    persons: dict[str, str] = {}
    for person, names in file.people.items():
        for name in names:
            if persons.setdefault(name, person) != person:
                raise ValueError(f"people: {name} is both {persons[name]} and {person}")
    return Trust(MappingProxyType(hosts), MappingProxyType(persons))


def _host(name: str, table: _HostTable) -> Host:
    if NAME.fullmatch(name) is None:
        raise ValueError(f"hosts.{name}: a host's name has lower-case letters, digits and hyphens, at most 63")
    try:
        key = base64.b64decode(table.key, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(f"hosts.{name}.key: no Ed25519 key in base64, as 'ironcurtain fleet key' prints it")
    return Host(name, key, {person: frozenset(roles) for person, roles in table.people.items()})
