"""Which addresses are on the public internet."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # Azure's own services, on an address that looks public
            "192.88.99.0/24",  # 6to4 relays (RFC 7526)
            "64:ff9b:1::/48",  # local NAT64 (RFC 8215)
            "fec0::/10",  # site-local (RFC 3879)
        ),
    )
)
"""Networks that :mod:`ipaddress` considers public although they are not."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""The prefix for IPv4 addresses in IPv6-only networks (RFC 6052); the embedded address is checked."""


def is_public(text: str) -> bool:
    """
    :param text: an IPv4 or IPv6 address, without a zone.
    :returns: whether it is on the public internet. Loopback, private, link-local (where clouds serve credentials),
        multicast and reserved addresses are not, nor is an IPv6 address that embeds such an IPv4 address.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address in _NAT64:
        return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return all(map(_is_public, (address, *_inside(address))))


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _NOT_PUBLIC)
    )


def _inside(address: Address) -> list[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = (address.ipv4_mapped, address.sixtofour, *(address.teredo or ()))
    return [inner for inner in found if inner is not None]
