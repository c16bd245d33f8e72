"""The reactor: everything in asyncio's order, some of it by a shorter way."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.main import CONNECTION_DONE
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.reactor import NEW_OBJECTS, DirectLoop, DirectReactor
from tests.conftest import reactor
from tests.pipes import pair

PATIENCE = 60.0
VARIABLE: ContextVar[str] = ContextVar("VARIABLE")


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


class Heard(asyncio.Protocol):
    """Does something when something comes."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def data_received(self, data: bytes) -> None:
        """For asyncio."""
        self.act()


class TransportTests(SynchronousTestCase):
    """asyncio's own transports are called by the shorter way too, and notice nothing of it."""

    def run_transport(self, act: Callable[[DirectLoop], object]) -> list[dict[str, Any]]:
        """
        Have something done when a transport has read, in a loop that somebody stops.

        :returns: what the loop had to say of errors.
        """
        loop, errors = DirectLoop(), list[dict[str, Any]]()
        self.addCleanup(loop.close)
        loop.set_exception_handler(lambda _, context: errors.append(context))
        mine, theirs = socket.socketpair()
        self.addCleanup(theirs.close)

        def too_late() -> None:
            errors.append({"message": "nothing happened"})
            loop.stop()

        async def connect() -> asyncio.Transport:
            VARIABLE.set("the transport's")
            transport, _ = await loop.create_connection(lambda: Heard(lambda: act(loop)), sock=mine)
            return transport

        transport = loop.run_until_complete(connect())
        loop.call_soon(lambda: loop.call_soon(theirs.send, b"x"))
        late = loop.call_later(PATIENCE, too_late)
        loop.run_forever()
        late.cancel()
        transport.abort()
        loop.run_until_complete(asyncio.sleep(0))
        return errors

    def test_the_selector_calls_them(self) -> None:
        callers: list[str] = []

        def act(loop: DirectLoop) -> None:
            frame = sys._getframe()
            while frame.f_back is not None:
                frame = frame.f_back
                callers.append(frame.f_code.co_qualname)
            loop.stop()

        self.run_transport(act)
        self.assertIn("DirectSelector.select", callers)

    def test_they_have_their_own_context(self) -> None:
        seen: list[str] = []

        def act(loop: DirectLoop) -> None:
            seen.append(VARIABLE.get("another"))
            loop.stop()

        self.run_transport(act)
        self.assertEqual(seen, ["the transport's"])

    def test_what_a_reader_raises_is_told_to_the_loop(self) -> None:
        reading, writing = pair(self)

        def act(loop: DirectLoop) -> None:
            def fail() -> None:
                os.read(reading, 100)
                loop.stop()
                raise ValueError("bad")

            loop.add_reader(reading, fail)
            os.write(writing, b"x")

        (error,) = self.run_transport(act)
        self.assertIsInstance(error["exception"], ValueError)

    def test_from_another_thread(self) -> None:
        def act(loop: DirectLoop) -> None:
            thread = threading.Thread(target=loop.call_soon_threadsafe, args=(loop.stop,))
            thread.start()
            self.addCleanup(thread.join)

        self.assertEqual(self.run_transport(act), [])

    def test_what_a_program_names_by_itself_instead_of_by_its_number(self) -> None:
        reading, writing = socket.socketpair()
        for end in (reading, writing):
            self.addCleanup(end.close)

        def act(loop: DirectLoop) -> None:
            def read() -> None:
                reading.recv(1)
                loop.stop()

            loop.add_reader(reading.fileno(), lambda: errors.append("who read before"))
            loop.add_reader(reading, read)
            writing.send(b"x")

        errors: list[Any] = []
        errors += self.run_transport(act)
        self.assertEqual(errors, [])

    def test_a_signal(self) -> None:
        def act(loop: DirectLoop) -> None:
            loop.add_signal_handler(signal.SIGUSR1, loop.stop)
            self.addCleanup(loop.remove_signal_handler, signal.SIGUSR1)
            loop.call_later(0, os.kill, os.getpid(), signal.SIGUSR1)

        self.assertEqual(self.run_transport(act), [])


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

    async def test_readers_that_are_added_again_and_again(self) -> None:
        rounds, counted, done = list[None](), list[None](), Deferred[None]()

        def again() -> None:
            rounds.append(None)
            if len(rounds) < 100:
                reactor.addReader(second)
                to_first()
                to_second()
            else:
                reactor.callLater(0, done.callback, None)

        _, to_first = self.reader(again)
        second, to_second = self.reader(lambda: counted.append(None))
        again()
        await done
        self.assertGreater(len(counted), 30)  # it reads what came in two rounds at once

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
