"""
Read the addresses about which decisions are made: a strict grammar, in which every program finds the same host.

Anything else is refused, since the program that connects could find another host than the one that was judged. The
grammar is part of RFC 3986, section 3; what it leaves out is what that standard, the WHATWG URL standard and programs
read in different ways: backslashes, missing or further slashes, several ``@``, percent-encoding or Unicode in a host,
addresses as numbers, ports that are not plain numbers, blanks and invisible characters.
"""

from __future__ import annotations

import ipaddress
import re

import msgspec

from ironcurtain.http.hosts import NAME_LIMIT, Host, parse_host

_URL = re.compile(r"(https?)://([^/]*)(/.*)?", re.IGNORECASE)
_USER = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})+")
_ADDRESS = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::(.*))?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_IPV6 = re.compile(r"\[[0-9A-Fa-f:]+\]")

_DEFAULT_PORTS = {"http": 80, "https": 443}

_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96")))
"""IPv6 addresses that stand for an IPv4 address (RFC 4291, section 2.5.5; RFC 6052, section 2.1)."""


class UnclearAddress(ValueError):
    """Programs could read an address in different ways. The message says which part, and how to write it."""


class Authority(msgspec.Struct, frozen=True):
    """
    The part of an address that names a host.

    :param host: in canonical form.
    :param port: ``None`` if it is not written.
    :param user: as written, with a password; empty if there is none.
    """

    host: Host
    port: int | None = None
    user: str = ""


class WebAddress(msgspec.Struct, frozen=True):
    """
    A URL that is fetched by HTTP.

    :param scheme: ``http`` or ``https``.
    :param path: everything after host and port, as written.
    """

    scheme: str
    authority: Authority
    path: str

    @property
    def host(self) -> Host:
        """The host that every program connects to."""
        return self.authority.host

    @property
    def port(self) -> int:
        """The port that every program connects to."""
        return self.authority.port or _DEFAULT_PORTS[self.scheme]

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"


def bracketed(host: Host) -> str:
    """:returns: a host as it is written in a URL."""
    return f"[{host.name}]" if ":" in host.name else host.name


def read_web_address(text: str) -> WebAddress:
    """
    :param text: a URL.
    :raises UnclearAddress: it is not ``https://HOST[:PORT][/PATH]`` or ``http://``, or programs could read it in
        different ways.
    """
    _refuse_unclear(text)
    parts = _URL.fullmatch(text)
    if parts is None:
        raise UnclearAddress("write it as https://HOST/PATH")
    return WebAddress(parts[1].lower(), read_authority(parts[2]), parts[3] or "")


def read_authority(text: str) -> Authority:
    """
    :param text: ``[USER@]HOST[:PORT]``.
    :raises UnclearAddress: it is something else, or programs could read it in different ways.
    """
    _refuse_unclear(text)
    if "?" in text or "#" in text:
        raise UnclearAddress("write a slash after the host")
    user, at, address = text.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise UnclearAddress(
            "its user name has characters that programs read differently" if user else "it has no user"
        )
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise UnclearAddress("its host is not followed by a port or a path")
    port = parts[2]
    if port is not None and not (_PORT.fullmatch(port) and int(port) < 65536):
        raise UnclearAddress("its port is not a number from 1 to 65535 without zeros before it")
    return Authority(read_host(parts[1]), None if port is None else int(port), user)


def read_host(text: str) -> Host:
    """
    :param text: a host without port and user; an IPv6 address is in brackets.
    :raises UnclearAddress: it is no host, or programs could read it in different ways.
    """
    if not text:
        raise UnclearAddress("it has no host")
    if text.startswith("["):
        return _ipv6(text)
    if not text.isascii():
        raise UnclearAddress("write its host in ASCII letters (xn--)")
    if text.endswith("."):
        raise UnclearAddress("write its host without the full stop at its end")
    labels = text.split(".")
    if len(text) > NAME_LIMIT or not all(map(_LABEL.fullmatch, labels)):
        raise UnclearAddress("its host is no host name")
    host = parse_host(text)
    if host is None or host.name != text.lower():
        numeric = _NUMBER.fullmatch(labels[-1])
        raise UnclearAddress("write its host as four decimal numbers" if numeric else "its host is no host name")
    return host


def _ipv6(text: str) -> Host:
    host = parse_host(text) if _IPV6.fullmatch(text) else None
    if host is None:
        raise UnclearAddress("its host is no IPv6 address in hexadecimal numbers")
    if any(ipaddress.IPv6Address(host.name) in network for network in _EMBEDDING) and host.name not in ("::", "::1"):
        raise UnclearAddress("write its host as an IPv4 address")
    return host


def _refuse_unclear(text: str) -> None:
    if not text.isprintable() or " " in text:
        raise UnclearAddress("it contains blanks or invisible characters")
    if "\\" in text:
        raise UnclearAddress("it contains a backslash, which some programs read as a slash")
