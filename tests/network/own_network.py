"""A network of a test's own, with private addresses that nobody else has."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from unittest import SkipTest

from tests.programs import program

CLONE_NEWNET = 0x40000000
"""The kind of namespace (unshare(2), setns(2))."""


def enter_network(*addresses: str) -> Callable[[], None]:
    """
    Put this thread, and all that it starts, into a network of its own. What listens elsewhere is out of reach there.

    :param addresses: of that network's machine, besides those of loopback.
    :returns: leads back.
    :raises SkipTest: nobody but root may, and not in every container.
    """
    ip, libc = program("ip"), ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNET):
        os.close(before)
        raise SkipTest("only root may make networks, and not in every container")

    def leave() -> None:
        libc.setns(before, CLONE_NEWNET)
        os.close(before)

    try:
        subprocess.run([ip, "link", "set", "lo", "up"], check=True)
        for address in addresses:
            subprocess.run([ip, "address", "add", address, "dev", "lo"], check=True)
    except BaseException:
        leave()
        raise
    return leave
