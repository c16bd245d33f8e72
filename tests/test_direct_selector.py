"""Which readers the reactor calls by itself, in which order, and when what they write is sent."""

from __future__ import annotations

import contextlib
import os
import socket
from selectors import EVENT_READ, EVENT_WRITE, EpollSelector

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cork import cork
from ironcurtain.reactor import MOST, DirectSelector
from tests.pipes import pair

PATIENCE = 60.0


class SelectorTests(SynchronousTestCase):
    """What it calls by itself, and what it leaves to asyncio."""

    def setUp(self) -> None:
        self.selector = DirectSelector()
        self.addCleanup(self.selector.close)
        self.called: list[bytes] = []

    def watch(self, asks: bool = True) -> tuple[int, int]:
        """:returns: both ends of a pipe, which is read by the selector."""
        reading, writing = pair(self)
        self.selector.register(reading, EVENT_READ, "data")
        self.selector.call(reading, lambda: self.read(reading, asks))
        return reading, writing

    def read(self, descriptor: int, asks: bool) -> None:
        """For the selector."""
        self.called.append(os.read(descriptor, 100))
        self.selector.asked = asks

    def selected(self, timeout: float | None = PATIENCE) -> list[tuple[int, int]]:
        """:returns: what is left to asyncio: descriptors and events."""
        return sorted((key.fd, events) for key, events in self.selector.select(timeout))

    def test_it_calls_who_reads(self) -> None:
        _, writing = self.watch()
        for timeout in (PATIENCE, None):
            os.write(writing, b"x")
            self.assertEqual(self.selected(timeout), [])
        self.assertEqual(self.called, [b"x", b"x"])

    def test_it_goes_on_while_nothing_else_is_to_be_done(self) -> None:
        reading, writing = self.watch(asks=False)
        other, wakes = pair(self)
        self.selector.register(other, EVENT_READ)
        os.write(writing, b"x")

        def read() -> None:
            self.read(reading, asks=False)
            os.write(wakes, b"y")

        self.selector.call(reading, read)
        self.assertEqual((self.selected(), self.called), ([(other, EVENT_READ)], [b"x"]))

    def test_what_is_to_be_done_already_comes_first(self) -> None:
        reading, writing = self.watch()
        os.write(writing, b"x")
        self.assertEqual((self.selected(0), self.called), ([(reading, EVENT_READ)], []))

    def test_several_are_called_in_their_order(self) -> None:
        (_, to_one), (_, to_other), (_, to_third) = self.watch(), self.watch(asks=False), self.watch()
        os.write(to_other, b"x")
        os.write(to_one, b"y")
        os.write(to_third, b"z")
        self.assertEqual((self.selected(), self.called), ([], [b"x", b"y", b"z"]))

    def test_what_one_asks_for_is_done_though_the_next_asks_for_nothing(self) -> None:
        (_, to_one), (other, to_other) = self.watch(), self.watch()
        self.selector.call(other, lambda: self.called.append(b"nothing"))
        os.write(to_one, b"x")
        os.write(to_other, b"y")
        self.assertEqual((self.selected(), self.called), ([], [b"x", b"nothing"]))

    def test_several_of_which_asyncio_calls_one_are_left_in_their_order(self) -> None:
        (one, to_one), (other, to_other) = self.watch(), self.watch()
        self.selector.modify(one, EVENT_READ | EVENT_WRITE)
        self.selector.register(third := pair(self)[1], EVENT_WRITE)
        os.write(to_other, b"x")
        os.write(to_one, b"x")
        found = [key.fd for key, _ in self.selector.select(PATIENCE)]
        self.assertEqual((sorted(found), self.called), (sorted((one, other, third)), []))
        self.assertLess(found.index(other), found.index(one))

    def test_one_that_another_ended_is_not_called(self) -> None:
        (one, to_one), (other, to_other) = self.watch(), self.watch()

        def end() -> None:
            self.selector.unregister(other)
            self.selector.register(other, EVENT_READ, "another")
            self.selector.call(other, lambda: self.fail("called for what came for who was there before"))
            self.selector.asked = True

        self.selector.call(one, end)
        os.write(to_one, b"x")
        os.write(to_other, b"x")
        self.assertEqual((self.selected(), self.called), ([], []))

    def test_what_several_write_waits_until_all_were_called(self) -> None:
        (one, to_one), (_, to_other) = self.watch(), self.watch()
        held: list[bool] = []

        def act() -> None:
            held.append(cork.on)
            cork.put_off(lambda: self.called.append(b"sent"))
            self.read(one, asks=True)

        self.selector.call(one, act)
        for written in ((to_one, to_other), (to_one,)):
            for writing in written:
                os.write(writing, b"x")
            self.assertEqual(self.selected(), [])
        self.assertEqual((self.called, held, cork.on), ([b"x", b"x", b"sent", b"x"], [True, False], False))
        cork.release()

    def test_what_was_written_is_sent_though_the_next_one_raises(self) -> None:
        (one, to_one), (other, to_other) = self.watch(), self.watch()

        def fail() -> None:
            raise SystemExit(1)

        self.selector.call(one, lambda: cork.put_off(lambda: self.called.append(b"sent")))
        self.selector.call(other, fail)
        os.write(to_one, b"x")
        os.write(to_other, b"x")
        with self.assertRaises(SystemExit):
            self.selected()
        self.assertEqual((self.called, cork.on), ([b"sent"], False))

    def test_what_is_asked_for_while_it_waits_is_done(self) -> None:
        reading, writing = self.watch(asks=False)
        other, wakes = pair(self)
        self.selector.register(other, EVENT_READ)
        selector, epoll = self.selector, self.selector._epoll

        class Finalizing:
            """Where it waits, something is collected that asks for something."""

            close = epoll.close

            def poll(self, timeout: float, most: int) -> list[tuple[int, int]]:
                """See :class:`select.epoll`."""
                found = epoll.poll(timeout, most)
                selector.asked = True
                return found

        def read() -> None:
            self.called.append(os.read(reading, 100))
            os.write(wakes, b"y")

        selector._epoll = Finalizing()  # type: ignore[assignment]
        selector.call(reading, read)
        os.write(writing, b"x")
        self.assertEqual((self.selected(), self.called), ([], [b"x"]))

    def test_what_sending_asks_for_is_done(self) -> None:
        (one, to_one), (_, to_other) = self.watch(asks=False), self.watch(asks=False)

        def ask() -> None:
            self.selector.asked = True

        def act() -> None:
            self.read(one, asks=False)
            cork.put_off(ask)

        self.selector.call(one, act)
        os.write(to_one, b"x")
        os.write(to_other, b"x")
        self.assertEqual((self.selected(), self.called), ([], [b"x", b"x"]))

    def test_an_end_is_left(self) -> None:
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.selector.register(reading, EVENT_READ)
        self.selector.call(reading, lambda: self.fail("called"))
        os.close(writing)
        self.assertEqual(self.selected(), [(reading, EVENT_READ)])

    def test_it_forgets_who_reads_no_more(self) -> None:
        reading, writing = self.watch()
        os.write(writing, b"x")
        self.selector.unregister(reading)
        self.selector.register(reading, EVENT_READ)
        self.assertEqual((self.selected(), self.called), ([(reading, EVENT_READ)], []))

    def test_a_descriptor_that_is_not_watched(self) -> None:
        reading, writing = pair(self)
        self.selector.call(reading, lambda: self.fail("called"))
        os.write(writing, b"x")
        self.selector.register(reading, EVENT_READ)
        self.assertEqual(self.selected(), [(reading, EVENT_READ)])

    def test_a_descriptor_that_is_watched_for_writing_too(self) -> None:
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        self.selector.register(slave, EVENT_WRITE)
        self.selector.call(slave, lambda: self.fail("called"))
        self.assertEqual(self.selected(), [(slave, EVENT_WRITE)])
        self.selector.modify(slave, EVENT_READ | EVENT_WRITE)
        self.selector.call(slave, lambda: self.read(slave, True))
        self.assertEqual(self.selected(), [(slave, EVENT_WRITE)])
        self.selector.modify(slave, EVENT_READ)
        os.write(master, b"x\n")
        self.assertEqual((self.selected(), self.called), ([], [b"x\n"]))
        self.selector.modify(slave, EVENT_WRITE)
        self.selector.modify(slave, EVENT_READ)
        os.write(master, b"y\n")
        self.assertEqual((self.selected(), len(self.called)), ([(slave, EVENT_READ)], 1))

    def test_a_descriptor_that_was_closed_too_early(self) -> None:
        for forget in (self.selector.unregister, lambda closed: self.selector.modify(closed, EVENT_WRITE)):
            reading, writing = os.pipe()
            self.selector.register(reading, EVENT_READ)
            self.selector.call(reading, lambda: self.fail("called"))
            os.close(reading)
            with contextlib.suppress(OSError):
                forget(reading)
            other, to_other = os.pipe()
            self.assertEqual(other, reading)
            os.write(to_other, b"x")
            self.assertEqual(self.selected(0), [])
            self.selector.register(other, EVENT_READ)
            self.assertEqual(self.selected(), [(other, EVENT_READ)])
            self.selector.unregister(other)
            for descriptor in (writing, other, to_other):
                os.close(descriptor)

    def test_it_waits_no_longer_than_it_should(self) -> None:
        self.watch()
        for timeout in (0.02, 0.001, 0.01, 0, -1):
            self.assertEqual(self.selected(timeout), [])

    def test_a_timeout_that_was_not_needed_harms_nobody(self) -> None:
        reading, writing = pair(self)
        self.selector.register(reading, EVENT_READ)
        os.write(writing, b"x")
        self.assertEqual(self.selected(0.001), [(reading, EVENT_READ)])
        self.selector.unregister(reading)
        self.assertEqual([self.selected(0.05) for _ in range(2)], [[], []])

    def test_more_than_are_heard_of_at_once(self) -> None:
        ends = [pair(self) for _ in range(MOST + 10)]
        for reading, writing in ends:
            self.selector.register(reading, EVENT_READ)
            os.write(writing, b"x")
        found: set[int] = set()
        while len(found) < len(ends):
            found |= {key.fd for key, _ in self.selector.select(PATIENCE)}
            for descriptor in found & set(self.selector.get_map()):
                self.selector.unregister(descriptor)

    @given(st.lists(st.tuples(st.sampled_from((1, 2, 3)), st.booleans()), max_size=6))
    def test_it_finds_what_the_library_finds(self, watched: list[tuple[int, bool]]) -> None:
        with DirectSelector() as ours, EpollSelector() as theirs:
            opened: list[socket.socket] = []
            for events, written in watched:
                end, other = socket.socketpair()
                opened += [end, other]
                for selector in (ours, theirs):
                    selector.register(end.fileno(), events, "data")
                if written:
                    other.send(b"x")
            try:
                self.assertEqual(sorted(ours.select(0)), sorted(theirs.select(0)))
            finally:
                for one in opened:
                    one.close()
