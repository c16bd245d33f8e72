"""Where ssh connects first, by the user's settings for a host: the output of ``ssh -G``."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

_JUMP = re.compile(r"(?:ssh://)?(?:[^@]*@)?(?P<host>\[[^\]]*\]|[^:\[\]/]+)(?::(?P<port>[0-9]{1,5}))?/?")


class SshSettings(msgspec.Struct, frozen=True):
    """
    :param host: that it connects to, an IPv6 address without brackets.
    :param jump: host and port of the first host that it goes through; a port 0 is the usual one. ``None``: directly.
    :param runs: whether a program of the user's makes the connection (``ProxyCommand``).
    :param trusts_local: whether it checks no host key of this machine (``NoHostAuthenticationForLocalhost``).
    """

    host: str
    port: int
    jump: tuple[str, int] | None = None
    runs: bool = False
    trusts_local: bool = False


def question(host: str, port: int, user: str = "") -> Sequence[str]:
    """:returns: the arguments of ssh; a port 0 is the usual one."""
    return ["-G", *(["-p", str(port)] if port else []), "--", f"{user}@{host}" if user else host]


def read_settings(printed: str) -> SshSettings:
    """
    :param printed: what ssh answered.
    :raises ValueError: it names no host, or a jump that cannot be understood.
    """
    found = dict[str, str]()
    for line in printed.splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name.lower(), value.strip())
    jump, host, port = found.get("proxyjump", "none"), found.get("hostname", ""), found.get("port", "22")
    first = None
    if jump != "none":
        if (match := _JUMP.fullmatch(jump.partition(",")[0])) is None:
            raise ValueError(f"ProxyJump {jump} is not understood")
        first = match["host"].strip("[]"), int(match["port"] or 0)
    if not host or not port.isdecimal():
        raise ValueError("ssh -G names no host")
    trusts_local = found.get("nohostauthenticationforlocalhost") in ("yes", "true")
    return SshSettings(host, int(port), first, found.get("proxycommand", "none") != "none", trusts_local)
