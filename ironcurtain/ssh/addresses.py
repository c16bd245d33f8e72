"""Check the addresses that SSH listens on, and explain what to do if that fails."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from collections.abc import Sequence

from ironcurtain.errors import IronCurtainError, Unavailable, UsageError
from ironcurtain.process.own_programs import daemon_command

SYSTEMD = "systemd:"
"""Prefix of an address that names a socket of systemd, as in Twisted's endpoints."""

_SYSTEMD = re.compile(r"systemd:domain=INET6?:(?:index=\d{1,4}|name=[A-Za-z0-9_.-]{1,255})")

ELSEWHERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""Error numbers of addresses that this machine does not have."""


def check_address(address: str) -> None:
    """:raises UsageError: it is neither an IP address nor a socket of systemd."""
    if not address.startswith(SYSTEMD):
        family(address)
    elif not _SYSTEMD.fullmatch(address):
        raise UsageError(
            f"{address!r} is not a socket of systemd: write systemd:domain=INET:index=0 (INET6 for IPv6, name=NAME "
            "in place of index for one with a FileDescriptorName)"
        )


def family(address: str) -> socket.AddressFamily:
    """
    :returns: the family of an address.
    :raises UsageError: it is not an IP address.
    """
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        raise UsageError(
            f"{address!r} is not an address to listen on: give an IP address of this machine, such as 127.0.0.1, or "
            "0.0.0.0 for all of them"
        ) from None
    return socket.AF_INET if version == 4 else socket.AF_INET6


def check(addresses: Sequence[str], port: int) -> None:
    """
    Try to listen as the service will, while errors can still be printed.

    :raises UsageError: one of the addresses is invalid.
    :raises Unavailable: this machine has none of them, or listening fails for another reason.
    """
    here = 0
    for address in addresses:
        if address.startswith(SYSTEMD):
            check_address(address)
            here += 1
            continue
        try:
            with socket.socket(family(address), socket.SOCK_STREAM) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if tried.family == socket.AF_INET6:
                    tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                tried.bind((address, port))
            here += 1
        except OSError as e:
            if e.errno not in ELSEWHERE:
                raise refusal(address, port, e.errno or 0) from None
    if not here:
        raise nowhere(addresses)


def not_passed(address: str) -> IronCurtainError:
    """:returns: the message if systemd did not pass a socket."""
    return Unavailable(f"SSH cannot be listened for: systemd passed this process no socket for {address}")


def nowhere(addresses: Sequence[str]) -> IronCurtainError:
    """:returns: the message if there is no address to listen on."""
    what = f"this machine has none of the addresses {', '.join(addresses)}" if addresses else "no address is named"
    return Unavailable(
        f"SSH cannot be listened for: {what}. Change [ssh] listen in config.toml, or set port = 0 for no SSH"
    )


def refusal(address: str, port: int, number: int) -> IronCurtainError:
    """:returns: the message if the system refuses to listen, from its error number."""
    why = {
        errno.EADDRINUSE: "it is in use, by another daemon or another program",
        errno.EACCES: "only root may use ports below 1024",
    }.get(number, os.strerror(number))
    return Unavailable(
        f"SSH cannot listen on {address}, port {port}: {why}. Choose another port "
        f"({daemon_command('ironcurtain --ssh-port')}, or [ssh] port in config.toml), or 0 for no SSH"
    )
