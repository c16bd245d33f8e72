"""
Set a fleet up: the first host makes the server's files and a file for each other host, which joins with it.

What a host must know of the others, their keys, is exchanged by people: see :mod:`ironcurtain.fleet.trust`.
"""

from __future__ import annotations

import base64
import secrets
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.audit.signing import SigningKey
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.files.atomic import publish_once, write_atomically
from ironcurtain.files.private import read_private
from ironcurtain.fleet.server_files import certificate, configuration, inbox
from ironcurtain.fleet.trust import NAME, parse_trust, read_trust
from ironcurtain.home.host_numbers import ANY_HOST
from ironcurtain.home.layout import Home, private_directory, read_configuration
from ironcurtain.home.parsing import parse_json
from ironcurtain.operations import Role

FILE_LIMIT = 64 * 1024
"""Maximum size in bytes of a file with credentials."""

PASSWORD_BYTES = 24
"""Random bytes of a host's password at the server."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What a host needs to reach the server, and the key of the host that it gets this from.

    :param host: its own name.
    :param servers: addresses such as ``tls://10.0.0.5:4222``.
    :param certificate: of the server, as PEM; empty: the system's authorities.
    :param replicas: number of servers that keep the list of members.
    :param first: the name of the host that wrote this, and its key in base64.
    """

    version: int = 1
    host: str
    servers: tuple[str, ...]
    password: str
    certificate: str = ""
    replicas: int = 1
    first: tuple[str, str] = ("", "")

    def __repr__(self) -> str:
        return f"<credentials of {self.host}>"

    def options(self) -> dict[str, Any]:
        """:returns: the options of a connection of nats-py."""
        context = ssl.create_default_context(cadata=self.certificate or None)
        secured = {"tls": context} if any(server.startswith("tls:") for server in self.servers) else {}
        return {
            "servers": list(self.servers),
            "user": self.host,
            "password": self.password,
            "inbox_prefix": inbox(self.host),
            **secured,
        }


def read_credentials(path: Path) -> Credentials:
    """
    :raises ConfigurationError: the file is missing, is open to others, or is not one that ``fleet`` wrote.
    """
    try:
        found = msgspec.convert(parse_json(str(path), read_private(path, FILE_LIMIT)), Credentials)
    except msgspec.ValidationError as e:
        raise ConfigurationError(str(path), f"no credentials of a fleet: {e}") from None
    if NAME.fullmatch(found.host) is None:
        raise ConfigurationError(str(path), "the name of the host is wrong")
    return found


class ServerFiles(msgspec.Struct, frozen=True):
    """
    The files with which the first host runs a server.

    :param directory: in its home.
    """

    directory: Path

    @property
    def configuration(self) -> Path:
        """For ``nats-server -c``."""
        return self.directory / "nats-server.conf"

    @property
    def listen(self) -> str:
        """
        Address and port of the server.

        :raises UsageError: this host has none.
        """
        return self._read().listen

    @property
    def _state(self) -> Path:
        return self.directory / "server.json"

    def make(self, listen: str, addresses: Sequence[str]) -> None:
        """
        Make them.

        :raises UsageError: they exist.
        """
        private_directory(self.directory)
        if not publish_once(self._state, msgspec.json.encode(_Server(listen=listen, addresses=tuple(addresses)))):
            raise UsageError(f"{self.directory} has a server already: 'ironcurtain fleet add HOST' adds a host")
        public, private = certificate(addresses, datetime.now(UTC))
        write_atomically(self.directory / "server.crt", public)
        write_atomically(self.directory / "server.key", private)

    def add(self, host: str, first: tuple[str, str]) -> Credentials:
        """
        Permit a host to connect; the server has to read its configuration again.

        :param first: name and key of this host.
        :raises UsageError: this host has no server, or the name is taken or wrong.
        """
        check_name(host)
        server = self._read()
        certificate = read_configuration(self.directory / "server.crt")
        if certificate is None:
            raise UsageError(
                f"{self.directory}/server.crt is gone: put it back, or move {self.directory} away and init"
            )
        if host in server.passwords:
            raise UsageError(f"{host} was added already: give another name, or remove it first")
        passwords = {**server.passwords, host: secrets.token_urlsafe(PASSWORD_BYTES)}
        server = msgspec.structs.replace(server, passwords=passwords)
        self._write(server)
        port = server.listen.rpartition(":")[2]
        return Credentials(
            host=host,
            servers=tuple(f"tls://{address}:{port}" for address in server.addresses),
            password=passwords[host],
            certificate=certificate,
            first=first,
        )

    def remove(self, host: str) -> None:
        """
        Take a host's permission to connect.

        :raises UsageError: this host has no server, or that host has none.
        """
        server = self._read()
        if host not in server.passwords:
            raise UsageError(f"{host} is not one of {', '.join(sorted(server.passwords)) or 'no hosts'}")
        passwords = {name: password for name, password in server.passwords.items() if name != host}
        self._write(msgspec.structs.replace(server, passwords=passwords))

    def _read(self) -> _Server:
        if not self._state.exists():
            raise UsageError("this host has no server: 'ironcurtain fleet init' makes one")
        return msgspec.json.decode(read_private(self._state, FILE_LIMIT), type=_Server)

    def _write(self, server: _Server) -> None:
        write_atomically(self._state, msgspec.json.encode(server))
        text = configuration(server.listen, self.directory, server.passwords)
        write_atomically(self.configuration, text.encode())


class _Server(msgspec.Struct, frozen=True, kw_only=True):
    listen: str
    addresses: tuple[str, ...]
    passwords: Mapping[str, str] = {}


def check_name(host: str) -> None:
    """:raises UsageError: it is no name for a host."""
    if NAME.fullmatch(host) is None or host == ANY_HOST:
        raise UsageError(
            f"a host's name is not '{ANY_HOST}', and has lower-case letters, digits and hyphens, at most 63"
        )


def key_text(home: Home) -> str:
    """:returns: the public key of this host, made if it has none, as ``fleet.trust`` takes it."""
    return base64.b64encode(SigningKey.load_or_make(home.records).public.raw).decode()


def trust(home: Home, host: str, key: str, people: Mapping[str, Sequence[Role]]) -> None:
    """
    Add a host to ``fleet.trust``.

    :raises UsageError: it is there already, or the key or the name is none.
    :raises ConfigurationError: the file is wrong.
    """
    path = home.fleet_trust
    if host in read_trust(path).hosts:
        raise UsageError(f"{host} is in {path} already: edit the file to change it")
    text = read_configuration(path) or "version = 1\n"
    roles = ", ".join(f"{_quoted(name)} = {[str(role) for role in each]}" for name, each in people.items())
    text += f"\n[hosts.{host}]\nkey = {_quoted(key)}\npeople = {{ {roles} }}\n"
    try:
        parse_trust(str(path), text)
    except ConfigurationError as e:
        raise UsageError(e.detail) from None
    write_atomically(path, text.encode())


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
