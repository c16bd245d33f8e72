"""
Parse the host of a URL as browsers do (WHATWG URL standard, section 3.5).

The result is canonical: lower case, Unicode names in their ASCII form, IPv4 addresses as four decimal numbers, IPv6
addresses compressed, no trailing dot.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import unquote_to_bytes

import msgspec

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\"#%/:<>?@\[\\\]^`{|}]")
"""Code points that a host name cannot contain: the standard's forbidden domain code points, and the quotation mark."""

_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")

NAME_LIMIT = 253
"""Maximum length of a host name in characters (RFC 1035, section 2.3.4, without the length bytes)."""


class Host(msgspec.Struct, frozen=True):
    """
    A host in canonical form.

    :param name: the name or address.
    :param is_address: whether it is an IPv4 or IPv6 address.
    """

    name: str
    is_address: bool


def parse_host(text: str) -> Host | None:
    """
    Parse a host without port and user name.

    :param text: the host as written in a URL; an IPv6 address is in brackets.
    :returns: ``None`` if the text is not a valid host.
    """
    if text.startswith("["):
        return _ipv6(text[1:-1]) if text.endswith("]") else None
    try:
        name = unquote_to_bytes(text).decode() if "%" in text else text
    except UnicodeDecodeError:
        return None
    name = _ascii_name(name)
    if not name or _FORBIDDEN.search(name):
        return None
    return _from_name(name)


def _from_name(name: str) -> Host | None:
    labels = name.removesuffix(".").split(".")
    if _NUMBER.match(labels[-1]):
        return _ipv4(labels)
    if "" in labels or len(name.removesuffix(".")) > NAME_LIMIT:
        return None
    return Host(".".join(labels), False)


def _ascii_name(name: str) -> str:
    """:returns: the name in lower-case ASCII, empty if it has no such form."""
    lower = name.lower() if name.isascii() else name
    if name.isascii() and "xn--" not in lower:
        return lower
    import idna  # takes 20 ms to load, and few hosts need it

    try:
        return idna.encode(lower, uts46=True).decode().lower()
    except (idna.IDNAError, UnicodeError, IndexError):
        return ""


def _ipv6(text: str) -> Host | None:
    if "%" in text:  # a zone has a meaning on one machine only
        return None
    try:
        return Host(str(ipaddress.IPv6Address(text)), True)
    except ValueError:
        return None


def _ipv4(labels: list[str]) -> Host | None:
    """Parse up to four numbers, of which the last one fills the rest of the 32 bits."""
    if len(labels) > 4 or not all(_NUMBER.match(label) for label in labels):
        return None
    try:
        *first, last = (_number(label) for label in labels)
    except ValueError:
        return None
    if any(number > 255 for number in first) or last >= 256 ** (4 - len(first)):
        return None
    value = last + sum(number << 8 * (3 - index) for index, number in enumerate(first))
    return Host(str(ipaddress.IPv4Address(value)), True)


def _number(label: str) -> int:
    """:raises ValueError: a digit is not valid in its base, or there are more digits than any address needs."""
    if len(label) > 64:
        raise ValueError(label)
    if label[:2] in ("0x", "0X"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if label.startswith("0") else int(label)
