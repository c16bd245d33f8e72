"""To which addresses keys and other secrets may be sent."""

from __future__ import annotations

import re

_LOCALHOST = re.compile(r"(?i)\A(http://)localhost(?=[:/?#]|\Z)")

BASE_URL = (
    "must look like https://host[:port][/path]; without TLS a key is only sent to an address of this machine or of a "
    "private network, as in http://127.0.0.1:11434 or http://192.168.1.20:11434"
)
"""What is said of a ``base_url`` that does not."""


def literal(url: str) -> str:
    """
    :returns: a URL with 127.0.0.1 for ``localhost`` where no certificate proves who that is, so that no resolver has to
        be asked.
    """
    return _LOCALHOST.sub(r"\g<1>127.0.0.1", url)


def is_base_url(url: str) -> bool:
    """:returns: whether a key may be sent to an address, as :func:`keeps_secrets` says, which ends with its path."""
    return keeps_secrets(url) and "?" not in url


def keeps_secrets(url: str) -> bool:
    """
    :returns: whether secrets may be sent to an address: it has TLS or is a loopback address, which no name can turn
        into another. It holds no user name, and no fragment, and every program finds the same host in it.
    """
    # A person who starts a shell waits for what is imported otherwise, and few settings have an address.
    from ironcurtain.http.urls import UnclearAddress, read_web_address

    try:
        address = read_web_address(url)
    except UnclearAddress:
        return False
    safe = address.scheme == "https" or is_loopback(address.host.name)
    return safe and not address.authority.user and "#" not in url


PRIVATE_NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
"""RFC 1918, RFC 6598 and RFC 4193. Link-local addresses are not among them: there clouds serve credentials."""


def is_model_url(url: str) -> bool:
    """
    :returns: whether a model's key may be sent to an address: see :func:`is_base_url`; or it names a machine of a
        private network by its number. Without TLS, a key can be read there, which a person accepts who writes such an
        address. A name could turn into another one.
    """
    return is_base_url(url) or _is_private(url)


def _is_private(url: str) -> bool:
    from ipaddress import ip_address, ip_network

    from ironcurtain.http.urls import UnclearAddress, read_web_address

    try:
        found = read_web_address(url)
        address = ip_address(found.host.name)
    except (UnclearAddress, ValueError):
        return False
    private = any(address in ip_network(network) for network in PRIVATE_NETWORKS)
    return private and found.scheme == "http" and not found.authority.user and "#" not in url and "?" not in url


def is_loopback(host: str) -> bool:
    """:returns: whether a host is given as an address of this machine itself: 127.0.0.0/8 or ::1."""
    from ipaddress import ip_address

    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None
