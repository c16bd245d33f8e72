"""System calls of Linux that Python does not have: Landlock, prctl, capabilities, seccomp."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

EXECUTE, WRITE_FILE, READ_FILE, READ_DIRECTORY = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHARACTER_DEVICE, MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15

READING = EXECUTE | READ_FILE | READ_DIRECTORY
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
"""The rights that a rule for a file, not a directory, may have."""

_RIGHTS = ((1, (1 << 13) - 1), (2, REFER), (3, TRUNCATE), (5, IOCTL_DEVICE))
"""The rights to files by the version of Landlock that introduced them (landlock(7))."""

_TCP = 0b11
"""Binding and connecting; of version 4."""

_SCOPES = 0b11
"""Abstract UNIX sockets and signals; of version 6."""

SIGNALS_CONFINED = 6
"""The version of Landlock from which on programs cannot signal others of their account (Linux 6.12)."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_VERSION, _PATH_BENEATH = 1, 1
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5
_CAPABILITY_VERSION = 0x20080522

SET_DEATH_SIGNAL, KEEP_CAPABILITIES, SET_SUBREAPER, NO_NEW_PRIVILEGES = 1, 8, 36, 38
_AMBIENT, _AMBIENT_RAISE = 47, 2

READ_SEARCH, OVERRIDE = 2, 1
"""
Numbers of CAP_DAC_READ_SEARCH, which reads files and searches directories whatever their permissions, and of
CAP_DAC_OVERRIDE, which writes as well.
"""

_libc = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: int | bytes | None) -> int:
    """
    :param arguments: numbers, or buffers for which their address is passed.
    :raises OSError: the call failed.
    """
    words = [ctypes.c_long(each) if isinstance(each, int) else ctypes.c_char_p(each) for each in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *words, *[ctypes.c_long(0)] * (6 - len(words))))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *values: int) -> None:
    """:raises OSError: the call failed."""
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    if _libc.prctl(ctypes.c_int(option), *padded) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def version() -> int:
    """:returns: the version of Landlock; 0 if the kernel has none, or it is switched off."""
    try:
        return call(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def handled(landlock: int) -> int:
    """:returns: all rights to files that a version of Landlock knows."""
    return sum(rights for since, rights in _RIGHTS if landlock >= since)


def make_rules(rules: Sequence[tuple[int, int]], landlock: int) -> int:
    """
    :param rules: a descriptor of each file or directory, and the rights to it and to what is below it.
    :param landlock: the version to use.
    :returns: a descriptor of the rules. What they do not permit is forbidden: files, TCP, signals to other processes.
    :raises OSError: the kernel does not accept them.
    """
    attributes = struct.pack("=QQQ", handled(landlock), _TCP, _SCOPES)
    size = 24 if landlock >= 6 else 16 if landlock >= 4 else 8
    ruleset = call(_CREATE_RULESET, attributes, size, 0)
    for descriptor, rights in rules:
        call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights & handled(landlock), descriptor), 0)
    return ruleset


def restrict(ruleset: int) -> None:
    """
    Apply rules to this thread, and to all that it starts, for ever.

    :raises OSError: ``NO_NEW_PRIVILEGES`` is missing.
    """
    call(_RESTRICT_SELF, ruleset, 0)


def filter_calls(program: bytes, machine: str, listen: bool) -> int:
    """
    Install a filter of system calls.

    :param program: an array of ``struct sock_filter``.
    :param listen: whether a descriptor is wanted from which another process reads the calls that are handed over.
    :returns: the descriptor; 0 without one.
    :raises OSError: the kernel does not accept it.
    """
    code = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    if not listen:
        return call(_SECCOMP[machine], _SET_FILTER, 0, description)
    try:
        return call(_SECCOMP[machine], _SET_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, description)
    except OSError:  # before Linux 5.19
        return call(_SECCOMP[machine], _SET_FILTER, _NEW_LISTENER, description)


def keep_capabilities(numbers: Sequence[int], machine: str) -> None:
    """
    Give up all capabilities but some, which executed programs keep.

    :raises OSError: this process does not have them.
    """
    bits = sum(1 << number for number in numbers)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    data = struct.pack("=IIIIII", low, low, low, high, high, high)
    call(_CAPSET[machine], struct.pack("=Ii", _CAPABILITY_VERSION, 0), data)
    for number in numbers:
        prctl(_AMBIENT, _AMBIENT_RAISE, number)
