"""As whom a program runs that root starts: with the fewest rights with which it reaches its files."""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass

from ironcurtain.platform.processes import become
from ironcurtain.sandbox.landlock import kernel
from ironcurtain.sandbox.landlock.order import Order


@dataclass(frozen=True, slots=True)
class Identity:
    """
    :param ids: its account and group.
    :param switches: whether root has to become it.
    :param kept: the capabilities that it keeps, to reach files whatever their permissions; the rules of its sandbox
        hold all the same.
    :param by_descriptor: whether the program is executed by a descriptor that root opened.
    """

    ids: tuple[int, int]
    switches: bool = False
    kept: tuple[int, ...] = ()
    by_descriptor: bool = False

    def assume(self) -> None:
        """
        Become it, without any other right.

        :raises OSError: that is not permitted.
        """
        if self.switches:
            if self.kept:
                kernel.prctl(kernel.KEEP_CAPABILITIES, 1)
            become(*self.ids)
        kernel.keep_capabilities(self.kept, platform.machine())


def identity(order: Order, program: str) -> Identity:
    """
    :param program: absolute path of the program.
    :returns: the order's account; if it does not reach all files, with a right for that; if root may not become another
        account, as in a container without capabilities, root without any.
    :raises PermissionError: such a program could signal all other processes of root.
    """
    own = (os.geteuid(), os.getegid())
    if order.uid in (-1, own[0]):
        return Identity(own)
    ids = (order.uid, order.gid)
    others = [path for path in (*order.read, *order.write) if path != program]
    if _reaches(ids, (program, *others)):
        return Identity(ids, switches=True)
    if _reaches(ids, others) and _is_binary(program):
        return Identity(ids, switches=True, by_descriptor=True)
    for capability in (kernel.READ_SEARCH, kernel.OVERRIDE):  # containers have only the second
        if can_switch() and _has(capability):
            return Identity(ids, switches=True, kept=(capability,))
    if order.brokered and order.landlock < kernel.SIGNALS_CONFINED:  # else the filter forbids signals, or the kernel
        raise PermissionError(errno.EPERM, "it would run as root, and could end root's other processes")
    return Identity(own)


def _reaches(ids: tuple[int, int], paths: Sequence[str]) -> bool:
    """:returns: whether an account, in a child process, can read all paths that exist."""
    existing = [path for path in paths if os.path.exists(path)]
    if (child := os.fork()) == 0:
        try:
            become(*ids)
            os._exit(not all(os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)) for path in existing))
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _is_binary(program: str) -> bool:
    """:returns: whether a program needs no interpreter, which would have to open it again."""
    try:
        with open(program, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def can_switch() -> bool:
    """:returns: whether this process may become another account."""
    return _has(6) and _has(7)  # CAP_SETGID, CAP_SETUID


def _has(capability: int) -> bool:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        permitted = next((line.split()[1] for line in file if line.startswith("CapPrm:")), "0")
    return bool(int(permitted, 16) >> capability & 1)
