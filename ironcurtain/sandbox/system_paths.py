"""The files of the system that sandboxed programs need, of whatever kind the sandbox is."""

from __future__ import annotations

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
"""Directories that programs need in order to run; readable if they exist."""

SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
)
CERTIFICATES = ("/etc/ssl", "/etc/ca-certificates", "/etc/pki")
"""Files for TLS, readable only where there are listeners."""

_PRESENT = tuple(f"{place}/" for place in (*SYSTEM, "/proc", "/dev"))


def is_system(path: str) -> bool:
    """:returns: whether every sandbox has an absolute path."""
    return f"{path}/".startswith(_PRESENT)
