"""The smallest programs: each makes one system call and ends with the error number that it got (0: it succeeded)."""

from __future__ import annotations

import platform
import struct

from twisted.trial.unittest import SkipTest

BASE = 0x400000
HEADER, ENTRY = 64, 64 + 56

NUMBERS = {
    "bpf": 321, "chroot": 161, "clone3": 435, "fsopen": 430, "getpid": 39, "init_module": 175, "io_uring_setup": 425,
    "keyctl": 250, "mount": 165, "open_by_handle_at": 304, "perf_event_open": 298, "personality": 135,
    "pidfd_getfd": 438, "process_vm_readv": 310, "reboot": 169, "setns": 308, "socket": 41, "unshare": 272,
    "userfaultfd": 323,
}  # fmt: skip
"""Of 64-bit x86 (the kernel's arch/x86/entry/syscalls/syscall_64.tbl)."""

_REGISTERS = (b"\x48\xbf", b"\x48\xbe", b"\x48\xba", b"\x49\xba", b"\x49\xb8", b"\x49\xb9")
"""``movabs`` to rdi, rsi, rdx, r10, r8 and r9."""


_END = b"\x31\xff\x85\xc0\x79\x04\xf7\xd8\x89\xc7" + b"\xb8\x3c\x00\x00\x00\x0f\x05"
"""``xor edi, edi; test eax, eax; jns +4; neg eax; mov edi, eax``, then ``mov eax, 60; syscall``, which is exit."""


def program(call: str, *arguments: int) -> bytes:
    """
    :returns: an ELF program that makes one call.
    :raises SkipTest: this machine is none of that kind.
    """
    code = b"".join(
        register + struct.pack("<Q", argument & (2**64 - 1))
        for register, argument in zip(_REGISTERS, (*arguments, 0, 0, 0, 0, 0, 0), strict=False)
    )
    return _file(code + _call(NUMBERS[call]) + _END)


def connecting(path: str) -> bytes:
    """:returns: a program that connects with a UNIX socket."""
    address = struct.pack("<H", 1) + path.encode() + b"\0"
    code = b"\xbf\x01\x00\x00\x00\xbe\x01\x00\x00\x00\x31\xd2" + _call(NUMBERS["socket"])  # edi 1, esi 1, edx 0
    code += b"\x89\xc7\xba" + struct.pack("<I", len(address))  # mov edi, eax; mov edx, length
    rest = _call(42) + _END
    code += b"\x48\x8d\x35" + struct.pack("<I", len(rest)) + rest  # lea rsi, [the address behind the code]
    return _file(code + address)


def _call(number: int) -> bytes:
    return b"\xb8" + struct.pack("<I", number) + b"\x0f\x05"  # mov eax, number; syscall


def _file(code: bytes) -> bytes:
    if platform.machine() != "x86_64":
        raise SkipTest("these programs are for 64-bit x86")
    size = ENTRY + len(code)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE + ENTRY, HEADER, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, size, size, 0x1000)
    return header + segment + code
