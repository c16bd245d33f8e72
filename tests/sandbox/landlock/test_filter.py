"""The filter for what Landlock does not cover, run as the kernel runs it; and the order for the helper process."""

from __future__ import annotations

import errno
import struct
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.platform.processes import MARK_RESOURCE
from ironcurtain.sandbox.landlock.filter import stricter
from ironcurtain.sandbox.landlock.order import Order
from ironcurtain.sandbox.system_calls import filter_program
from tests.sandbox.test_system_calls import ALLOW, X86_64, run

HAND_OVER, FAIL = 0x7FC00000, 0x00050000
OPEN, OPENAT, OPENAT2, SOCKET, SOCKETPAIR, PRLIMIT, SETRLIMIT = 2, 257, 437, 41, 53, 302, 160
CHMOD, FCHMODAT, UTIMENSAT, KILL, TGKILL, PTRACE, TRUNCATE, FCNTL, IOCTL = 90, 268, 280, 62, 234, 101, 76, 72, 16
NEW, TRUNC, TMPFILE = 0o101, 0o1000, 0o20200000


def answer(number: int, *arguments: int, landlock: int = 7, brokered: bool = True, signals: bool = True) -> int:
    """:returns: what a call gets."""
    rules = partial(stricter, landlock=landlock, brokered=brokered, signals=signals)
    program = filter_program("x86_64", rules)
    assert program is not None
    padded = [*arguments, *[0] * (6 - len(arguments))]
    return run(program, struct.pack("<IIQ6Q", number, X86_64, 0, *padded))


class FilterTests(SynchronousTestCase):
    def test_permissions_and_times_are_handed_over_or_refused(self) -> None:
        for number in (CHMOD, FCHMODAT, UTIMENSAT):
            self.assertEqual(answer(number), HAND_OVER)
            self.assertEqual(answer(number, brokered=False), FAIL | errno.EPERM)

    def test_new_file_is_never_set_user_id(self) -> None:
        for number, first in ((OPEN, (0,)), (OPENAT, (0, 0))):
            self.assertEqual(answer(number, *first, NEW, 0o644), ALLOW)
            self.assertEqual(answer(number, *first, 0, 0o4755), ALLOW)  # no file is made: the mode has no meaning
            for mode in (0o4755, 0o2755, 0o6000):
                self.assertNotEqual(answer(number, *first, NEW, mode), ALLOW)
                self.assertNotEqual(answer(number, *first, TMPFILE, mode), ALLOW)

    def test_readable_files_are_emptied_on_no_old_kernel(self) -> None:
        for landlock, refused in ((1, True), (2, True), (3, False)):
            self.assertEqual(answer(TRUNCATE, landlock=landlock) != ALLOW, refused)
            self.assertEqual(answer(OPENAT, 0, 0, TRUNC, landlock=landlock) != ALLOW, refused)
            self.assertEqual(answer(OPENAT, 0, 0, TRUNC | 1, landlock=landlock), ALLOW)

    def test_only_pairs_of_streams_are_sockets(self) -> None:
        cloexec = 0o2000000
        for family, kind, passes in ((1, 1, True), (1, 5, True), (1, 1 | cloexec, True), (1, 2, False),
                                     (1, 2 | cloexec, False), (1, 3, False), (2, 1, False)):  # fmt: skip
            self.assertEqual(answer(SOCKETPAIR, family, kind) == ALLOW, passes, (family, kind))
            self.assertNotEqual(answer(SOCKET, family, kind), ALLOW)

    def test_mark_can_be_read_and_not_changed(self) -> None:
        self.assertEqual(answer(PRLIMIT, 0, MARK_RESOURCE, 0, 1), ALLOW)
        for new in (1, 1 << 32):
            self.assertNotEqual(answer(PRLIMIT, 0, MARK_RESOURCE, new), ALLOW)
        self.assertNotEqual(answer(SETRLIMIT, MARK_RESOURCE), ALLOW)
        self.assertEqual(answer(SETRLIMIT, MARK_RESOURCE + 1), ALLOW)

    @given(st.integers(1, 2**32 - 1))
    def test_limits_of_other_processes_are_out_of_reach(self, pid: int) -> None:
        self.assertNotEqual(answer(PRLIMIT, pid, 7, 1), ALLOW)

    def test_program_without_signals_sends_none(self) -> None:
        for number in (KILL, TGKILL):
            self.assertEqual(answer(number, 1, 9), ALLOW)
            self.assertNotEqual(answer(number, 1, 9, signals=False), ALLOW)

    def test_other_checks_still_apply(self) -> None:
        self.assertNotEqual(answer(PTRACE), ALLOW)
        self.assertNotEqual(answer(IOCTL, 0, 0x5412), ALLOW)
        self.assertEqual(answer(IOCTL, 0, 0x5401), ALLOW)
        self.assertEqual(answer(FCNTL, 0, 1), ALLOW)
        self.assertEqual(answer(OPENAT2), FAIL | errno.ENOSYS)

    @given(st.integers(0, 600), st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
    def test_it_permits_nothing_that_the_other_filter_refuses(self, number: int, arguments: list[int]) -> None:
        program = filter_program("x86_64")
        assert program is not None
        if run(program, struct.pack("<IIQ6Q", number, X86_64, 0, *arguments)) != ALLOW:
            self.assertNotEqual(answer(number, *arguments), ALLOW)


class OrderTests(SynchronousTestCase):
    @given(
        st.lists(st.text(st.characters(codec="utf-8"))),
        st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.integers(3, 99))),
        st.binary(),
        st.integers(-1, 2**32),
        st.booleans(),
    )
    def test_decoded_order_is_the_one_encoded(
        self, paths: list[str], files: list[tuple[str, int]], calls: bytes, uid: int, brokered: bool
    ) -> None:
        order = Order(tuple(paths), tuple(paths), tuple(files), "/", uid, uid, ((7, 4096),), calls, brokered, 7, "/tmp")
        self.assertEqual(Order.decoded(order.encoded()), order)
