"""
Run a command as in a container without privileges: nothing in it can make a namespace or mount anything::

    python tests/package/confined.py COMMAND ...

It needs root, who has to give up capabilities in the command, for instance by setpriv(1).
"""

from __future__ import annotations

import ctypes
import os
import sys

from ironcurtain.sandbox.system_calls import filter_program

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    """``struct sock_fprog`` of seccomp(2)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def main() -> None:
    """:raises SystemExit: the kernel does not take the filter."""
    instructions = filter_program() or b""
    program = _Program(len(instructions) // 8, instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise SystemExit(f"no filter for system calls: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
