"""The reactor: everything in asyncio's order, some of it by a shorter way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE, EpollSelector
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.main import CONNECTION_DONE
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.reactor import MOST, NEW_OBJECTS, DirectLoop, DirectReactor, DirectSelector
from tests.conftest import reactor

PATIENCE = 60.0


def pair(case: SynchronousTestCase) -> tuple[int, int]:
    """:returns: both ends of a pipe."""
    ends = os.pipe()
    for end in ends:
        case.addCleanup(os.close, end)
    return ends


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

    def test_several_are_left_in_their_order(self) -> None:
        (one, to_one), (other, to_other) = self.watch(), self.watch()
        os.write(to_other, b"x")
        os.write(to_one, b"x")
        found = [key.fd for key, _ in self.selector.select(PATIENCE)]
        self.assertEqual((found, self.called), ([other, one], []))

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


class LoopTests(SynchronousTestCase):
    """What a reader asks of the loop is done, though the loop has not heard of the event."""

    def run_reader(self, act: Callable[[DirectLoop], object]) -> None:
        """Have a reader called by the selector in a loop that somebody stops."""
        loop = DirectLoop()
        self.addCleanup(loop.close)
        reading, writing = pair(self)

        def read() -> None:
            os.read(reading, 100)
            act(loop)

        loop.add_reader(reading, lambda: self.fail("asyncio called it"))
        loop.selector.call(reading, read)
        loop.call_soon(lambda: loop.call_soon(os.write, writing, b"x"))
        late = loop.call_later(PATIENCE, lambda: self.fail("nothing happened"))
        loop.run_forever()
        late.cancel()

    def test_soon(self) -> None:
        self.run_reader(lambda loop: loop.call_soon(loop.stop))

    def test_later(self) -> None:
        self.run_reader(lambda loop: loop.call_later(0.01, loop.stop))

    def test_stop(self) -> None:
        self.run_reader(lambda loop: loop.stop())

    def test_from_another_thread(self) -> None:
        def act(loop: DirectLoop) -> None:
            thread = threading.Thread(target=loop.call_soon_threadsafe, args=(loop.stop,))
            thread.start()
            self.addCleanup(thread.join)

        self.run_reader(act)

    def test_a_future(self) -> None:
        def act(loop: DirectLoop) -> None:
            future: asyncio.Future[None] = loop.create_future()
            future.add_done_callback(lambda _: loop.stop())
            future.set_result(None)

        self.run_reader(act)


class Reader:
    """Something that the reactor reads."""

    def __init__(self, descriptor: int, act: Callable[[], Any]) -> None:
        self._descriptor, self._act = descriptor, act
        self.lost: Deferred[BaseException | None] = Deferred()

    def fileno(self) -> int:
        """For the reactor."""
        return self._descriptor

    def doRead(self) -> Any:
        """For the reactor."""
        os.read(self._descriptor, 100)
        return self._act()

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor."""
        reactor.removeReader(self)
        self.lost.callback(reason.value)

    def logPrefix(self) -> str:
        """For the reactor."""
        return "-"


class ReactorTests(TestCase):
    """It runs these tests."""

    def reader(self, act: Callable[[], Any]) -> tuple[Reader, Callable[[], object]]:
        """:returns: what is read, and a function that gives it something to read."""
        reading, writing = pair(self)
        reader = Reader(reading, act)
        reactor.addReader(reader)
        self.addCleanup(reactor.removeReader, reader)
        return reader, lambda: os.write(writing, b"x")

    def test_it_is_ours(self) -> None:
        self.assertIsInstance(reactor, DirectReactor)

    def test_it_is_the_daemons(self) -> None:
        program = (
            "import gc; from ironcurtain.tap import require_asyncio_reactor; require_asyncio_reactor()\n"
            "from twisted.internet import reactor; print(type(reactor).__name__, gc.get_threshold()[0])"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.stdout, f"DirectReactor {NEW_OBJECTS}\n", done.stderr)

    async def test_an_end(self) -> None:
        reader, write = self.reader(lambda: CONNECTION_DONE)
        write()
        self.assertIsInstance(await reader.lost, ConnectionDone)

    async def test_an_error(self) -> None:
        def fail() -> None:
            raise ValueError("bad")

        reader, write = self.reader(fail)
        write()
        self.assertIsInstance(await reader.lost, ValueError)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    async def test_what_is_no_error_of_a_program_does_not_end_the_reactor(self) -> None:
        for error in (asyncio.CancelledError(), SystemExit(1)):

            def fail(error: BaseException = error) -> None:
                raise error

            reader, write = self.reader(fail)
            write()
            self.assertIs(await reader.lost, error)
            self.assertEqual(len(self.flushLoggedErrors(type(error))), 1)

    async def test_an_end_that_raises_does_not_end_the_reactor(self) -> None:
        for error in (ValueError("bad"), SystemExit(1)):
            reader, write = self.reader(lambda: CONNECTION_DONE)

            def lost(reason: Failure, reader: Reader = reader, error: BaseException = error) -> None:
                reactor.removeReader(reader)
                reactor.callLater(0, reader.lost.callback, None)
                raise error

            reader.connectionLost = lost  # type: ignore[method-assign]
            write()
            await reader.lost
            self.assertEqual(len(self.flushLoggedErrors(type(error))), 1)
