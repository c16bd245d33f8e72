"""Much output, from one terminal to another."""

from __future__ import annotations

import os
import threading
import time
import tty
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal import burst
from ironcurtain.terminal.burst import BURST_SECONDS, pass_on


class BurstTests(SynchronousTestCase):
    """Two real terminals: a program writes to one, a person sits at the other."""

    def setUp(self) -> None:
        self.source, self.program = os.openpty()
        self.person, self.sink = os.openpty()
        self.open = [self.source, self.program, self.person, self.sink]
        self.addCleanup(self.close)
        for descriptor in (self.program, self.sink):
            tty.setraw(descriptor)
        for descriptor in (self.source, self.sink):
            os.set_blocking(descriptor, False)

    def close(self) -> None:
        for descriptor in self.open:
            os.close(descriptor)

    def test_nothing_comes(self) -> None:
        self.assertEqual(pass_on(self.source, self.sink), (b"", b""))

    def test_what_waits_is_shown(self) -> None:
        every = bytes(range(256))
        os.write(self.program, every)
        self.assertEqual(pass_on(self.source, self.sink), (every, b""))
        self.assertEqual(os.read(self.person, 1000), every)

    def test_keys_are_left_to_others(self) -> None:
        os.write(self.person, b"k")
        os.write(self.program, b"x")
        self.assertEqual(pass_on(self.source, self.sink), (b"x", b""))
        self.assertEqual(os.read(self.sink, 10), b"k")

    def test_it_ends_in_time(self) -> None:
        self.patch(burst, "QUIET_SECONDS", 10.0)  # a busy machine may pause for us
        for descriptor in (self.program, self.person):
            os.set_blocking(descriptor, False)
        begun = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            passing = pool.submit(pass_on, self.source, self.sink)
            while not passing.done():
                try:
                    os.write(self.program, b"x" * 100)
                    os.read(self.person, 100_000)
                except BlockingIOError:
                    pass
        self.assertGreater(time.monotonic() - begun, BURST_SECONDS)

    def test_the_program_is_gone(self) -> None:
        os.write(self.program, b"its last words")
        os.close(self.program)
        self.open.remove(self.program)
        self.assertEqual(pass_on(self.source, self.sink), (b"its last words", b""))
        self.assertRaises(OSError, os.read, self.source, 100)

    def test_the_person_is_gone(self) -> None:
        os.write(self.program, b"x")
        os.close(self.person)
        self.open.remove(self.person)
        self.assertEqual(pass_on(self.source, self.sink)[0], b"")

    def test_whoever_takes_nothing_is_not_waited_for(self) -> None:
        os.set_blocking(self.program, False)
        written, shown, rest = b"", b"", b""
        while not rest:
            piece = os.urandom(1000)
            written += piece[: os.write(self.program, piece)]
            more, rest = pass_on(self.source, self.sink)
            shown += more
        self.assertEqual(shown + rest, written)
        seen = b""
        while len(seen) < len(shown):
            seen += os.read(self.person, 100_000)
        self.assertEqual(seen, shown)

    @settings(deadline=None, max_examples=20)
    @given(st.lists(st.binary(min_size=1, max_size=20_000), max_size=20))
    def test_no_byte_is_lost_or_changed(self, pieces: list[bytes]) -> None:
        whole, seen, shown, rest = b"".join(pieces), b"", b"", b""

        def write() -> None:
            for piece in pieces:
                while piece:
                    piece = piece[os.write(self.program, piece) :]

        writer = threading.Thread(target=write)
        writer.start()
        while len(shown) < len(whole):
            if rest:  # as the terminal's own buffer would
                written = os.write(self.sink, rest)
                more, rest = rest[:written], rest[written:]
            else:
                more, rest = pass_on(self.source, self.sink)
            shown += more
            while len(seen) < len(shown):
                seen += os.read(self.person, 100_000)
        writer.join()
        self.assertEqual((shown, seen), (whole, whole))
