"""
Read the host of an address as browsers do (WHATWG URL standard, section 3.5).

What comes out is in one form: lower case, Unicode names in their ASCII form, every way to write an IPv4 address as
four decimal numbers, IPv6 shortened, no dot at the end.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\"#%/:<>?@\[\\\]^`{|}]")
"""Code points that no host name may have: the standard's forbidden domain code points, and the quotation mark."""

_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)\Z")

NAME_LIMIT = 253
"""Most characters of a host name (RFC 1035, section 2.3.4, without the length bytes)."""


@dataclass(frozen=True, slots=True)
class Host:
    """
    A host that can be compared.

    :param name: in its one form.
    :param is_address: an IPv4 or IPv6 address and not a name.
    """

    name: str
    is_address: bool


def parse_host(text: str) -> Host | None:
    """
    Read a host without port and user name.

    :param text: as it stands in an address; IPv6 in brackets.
    :returns: ``None`` if no host can be meant by it.
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
    import idna  # 20 ms to load, and few addresses need it

    try:
        return idna.encode(lower, uts46=True).decode().lower()
    except (idna.IDNAError, UnicodeError, IndexError):
        return ""


def _ipv6(text: str) -> Host | None:
    if "%" in text:  # a zone: only means something on one machine
        return None
    try:
        return Host(str(ipaddress.IPv6Address(text)), True)
    except ValueError:
        return None


def _ipv4(labels: list[str]) -> Host | None:
    """Up to four numbers; the last one fills what is left of the 32 bits."""
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
    """:raises ValueError: a digit that its base does not have, or more digits than any address needs."""
    if len(label) > 64:
        raise ValueError(label)
    if label[:2] in ("0x", "0X"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if label.startswith("0") else int(label)
