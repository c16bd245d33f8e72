"""
Which system calls a container may make.

``data/seccomp.json`` lists them, for both architectures; it is sent with each order. The Engine's own default is not
enough: in older versions (20.10 among them) it lets a container without a network open a VSOCK, which on a virtual
machine leads to whatever the machine below offers, and use io_uring.

What the list leaves out, against the kernel's: all that the Engine's default left out (measured with 20.10: mounts,
namespaces, keys, modules, clocks, bpf, perf, memory policy, other processes' memory, ...); io_uring; sockets that are
neither UNIX, IPv4, IPv6 nor netlink of routes; and programs of another word size, which are killed.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec


@cache
def profile() -> str:
    """:returns: the profile in the Engine's format: JSON, without blanks."""
    text = resources.files("ironcurtain.sandbox").joinpath("data/seccomp.json").read_bytes()
    return msgspec.json.format(text, indent=-1).decode()
