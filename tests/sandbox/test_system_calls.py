"""The filter of system calls, run as the kernel runs it: on each call's number, architecture and arguments."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.system_calls import filter_program

ALLOW, KILL = 0x7FFF0000, 0x80000000
X86_64, I386 = 0xC000003E, 0x40000003
OPENAT, PTRACE, MOUNT, SOCKET, CLONE, CLONE3 = 257, 101, 165, 41, 56, 435


def run(program: bytes, data: bytes) -> int:
    """:returns: what a classic BPF program of loads, jumps and returns answers (bpf(4) of BSD)."""
    instructions = list(struct.iter_unpack("<HBBI", program))
    at = value = 0
    while True:
        code, if_true, if_false, operand = instructions[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, operand)
        elif code == 0x06:
            return int(operand)
        elif code == 0x54:
            value &= operand
        else:
            holds = {0x15: value == operand, 0x25: value > operand, 0x35: value >= operand, 0x45: bool(value & operand)}
            at += if_true if holds[code] else if_false


def answer(number: int, *arguments: int, machine: int = X86_64) -> int:
    """:returns: what a call gets."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    program = filter_program("x86_64")
    assert program is not None
    return run(program, struct.pack("<IIQ6Q", number, machine, 0, *padded))


class FilterTests(SynchronousTestCase):
    def test_ordinary_calls_pass(self) -> None:
        self.assertEqual(answer(OPENAT), ALLOW)
        self.assertEqual(answer(SOCKET, 1, 1), ALLOW)

    def test_dangerous_ones_fail(self) -> None:
        for number in (PTRACE, MOUNT, CLONE3):
            self.assertNotEqual(answer(number), ALLOW, number)

    def test_sockets_are_unix_internet_and_routing_alone(self) -> None:
        for family, protocol, passes in ((1, 0, True), (2, 6, True), (10, 17, True), (16, 0, True), (16, 9, False),
                                         (17, 3, False), (40, 0, False), (0, 0, False)):  # fmt: skip
            self.assertEqual(answer(SOCKET, family, 3, protocol) == ALLOW, passes, (family, protocol))

    def test_no_new_namespaces(self) -> None:
        self.assertEqual(answer(CLONE, 0x11), ALLOW)
        self.assertNotEqual(answer(CLONE, 0x10000011), ALLOW)

    @given(st.integers(0, 2**32 - 1))
    def test_another_machine_s_calls_never_pass(self, number: int) -> None:
        self.assertEqual(answer(number, machine=I386), KILL)

    @given(st.integers(0x40000000, 2**32 - 1))
    def test_nor_do_those_of_x32(self, number: int) -> None:
        self.assertNotEqual(answer(number), ALLOW)

    def test_unknown_machines_have_none(self) -> None:
        self.assertIsNone(filter_program("vax"))
