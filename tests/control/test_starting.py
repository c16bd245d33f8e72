"""Sessions that take long to start: who waits hears what they do, and can give them up."""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.control.client import ControlClient
from ironcurtain.control.early import EarlyStart, asked_early
from ironcurtain.control.listening import listen
from ironcurtain.control.wire import RemoteError
from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.home.layout import Home
from ironcurtain.operations.operations import Operations
from ironcurtain.session import events
from ironcurtain.session.events import Stamped
from ironcurtain.session.model import SessionInfo, SessionRequest
from tests.audit.doubles import scratch
from tests.control.doubles import Collector, connect
from tests.session.doubles import PlainAgent, World, request


class StartTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.world = World(scratch(self), reactor=reactor)
        self.path = scratch(self) / "control.sock"
        self.port: IListeningPort = listen(reactor, self.path, Operations(self.world.manager))
        self.addCleanup(lambda: Deferred.fromCoroutine(self.finish()))
        self.client = ControlClient(reactor, str(self.path))
        self.pause: Deferred[None] = Deferred()
        self.world.next_agent = PlainAgent(pause=self.pause)
        self.heard: list[Stamped] = []

    async def finish(self) -> None:
        await self.world.manager.stop("the end")
        self.world.watcher.stop()
        stopped = self.port.stopListening()
        if stopped is not None:
            await stopped

    def start(self, wanted: SessionRequest) -> Coroutine[Any, Any, SessionInfo]:
        """:returns: asks for a session, and keeps what is heard until it has started."""
        return self.client.start(wanted, self.heard.append)

    async def started(self) -> Deferred[SessionInfo]:
        """:returns: the start of a session, whose agent takes long."""
        starting = Deferred.fromCoroutine(self.start(request(task="look")))
        await self.until(lambda: self.world.agents)
        return starting

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something is so."""
        while not holds():
            await deferLater(reactor, 0.005)

    def said(self) -> list[str]:
        """:returns: the progress that was heard of."""
        return [stamped.event.text for stamped in self.heard if isinstance(stamped.event, events.Progress)]

    def was_said(self, text: str) -> bool:
        """:returns: whether a progress was heard of."""
        return text in self.said()

    async def test_what_it_does_is_heard_while_it_starts(self) -> None:
        starting = await self.started()
        [session] = self.world.manager.all()
        for text in ("Step 1", "Step 2\n\ndata: x"):
            session.events.emit(events.Progress(text=text))
            await self.until(partial(self.was_said, text))
        self.assertFalse(starting.called)
        self.pause.callback(None)
        info = await starting
        self.assertEqual((info.number, info.label, info.state), (1, "plain: look", "ready"))
        self.assertEqual([stamped.sequence for stamped in self.heard], list(range(1, session.events.last + 1)))
        session.events.emit(events.Progress(text="later"))
        self.assertNotIn("later", self.said())

    async def test_who_gives_up_ends_it_at_once(self) -> None:
        starting = await self.started()
        starting.cancel()
        try:
            await starting
            self.fail("it started")
        except CancelledError:
            pass
        await self.until(lambda: self.world.manager.all() == [])
        self.assertEqual(self.world.agents[0].calls, ["start"])
        self.assertEqual(self.world.tools[0].calls[-1], "stop")

    async def test_who_asks_without_listening_can_give_up_too(self) -> None:
        connection = await connect(self.path)
        body = b'{"kind": "plain"}'
        head = f"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.transport.write(head.encode() + body)  # type: ignore[union-attr]
        await self.until(lambda: self.world.agents)
        connection.transport.loseConnection()  # type: ignore[union-attr]
        await connection.closed
        await self.until(lambda: self.world.manager.all() == [])
        self.assertEqual(self.world.tools[0].calls[-1], "stop")

    async def test_what_fails_before_there_is_a_session(self) -> None:
        for wrong, kind in ((SessionRequest("nothing"), "USAGE"), (request(resume="0" * 36), "NOT_FOUND")):
            error = await self.failure(wrong)
            assert isinstance(error, RemoteError)
            self.assertEqual(error.code, kind)
        self.assertEqual(self.heard, [])

    async def test_what_fails_while_it_starts(self) -> None:
        trouble = UsageError("no such model")
        self.world.next_agent = PlainAgent(trouble=trouble)
        error = await self.failure(request())
        assert isinstance(error, RemoteError)
        self.assertEqual((error.code, error.exit_status), ("SESSION_INIT_FAILED", trouble.exit_status))
        self.assertIn("no such model", str(error))
        closed = self.heard[-1].event
        assert isinstance(closed, events.StateChanged)
        self.assertEqual(closed.state, "closed")

    async def failure(self, wanted: SessionRequest) -> Exception:
        """:returns: the error with which a start ends."""
        try:
            await self.start(wanted)
        except Exception as e:
            return e
        raise AssertionError("it started")

    async def test_the_answer_ends_with_the_session(self) -> None:
        self.pause.callback(None)
        connection: Collector = await connect(self.path)
        body = b'{"kind": "plain"}'
        head = f"POST /v1/sessions?follow=1 HTTP/1.0\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.transport.write(head.encode() + body)  # type: ignore[union-attr]
        await connection.closed
        _, _, stream = connection.data.partition(b"\r\n\r\n")
        self.assertIn(b"\nevent: started\ndata: {", stream)
        self.assertTrue(stream.endswith(b"}\n\n"))


class EarlyStartTests(StartTests):
    """The same, asked for before there is a reactor."""

    def start(self, wanted: SessionRequest) -> Coroutine[Any, Any, SessionInfo]:
        return EarlyStart(str(self.path), wanted, hold=False).started(reactor, self.heard.append)

    async def held(self) -> EarlyStart:
        """:returns: a session that has started, and is held."""
        self.pause.callback(None)
        early = EarlyStart(str(self.path), request(), hold=True)
        self.addCleanup(early.leave)
        await early.started(reactor, self.heard.append)
        return early

    async def test_one_that_is_held_ends_with_who_asked(self) -> None:
        early = await self.held()
        [session] = self.world.manager.all()
        self.assertEqual(session.state, "ready")
        early.leave()
        await session.ended()

    async def test_one_that_is_released_goes_on(self) -> None:
        early = await self.held()
        await self.client.release(1)
        early.leave()
        self.assertEqual((await self.client.stop(1, held=True)).state, "ready")
        self.assertEqual((await self.client.send(1, "hello")).text, "you said hello")

    async def test_one_that_is_not_held_goes_on(self) -> None:
        self.pause.callback(None)
        await EarlyStart(str(self.path), request(), hold=False).started(reactor, self.heard.append)
        self.assertEqual((await self.client.session(1)).state, "ready")

    async def test_nobody_asked(self) -> None:
        home = Home(scratch(self), Path("/nowhere"))
        self.assertIsNone(asked_early(home, request(), hold=True))
        home.daemon_socket.parent.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as killed:
            killed.bind(str(home.daemon_socket))
        self.assertIsNone(asked_early(home, request(), hold=True))


class Dies(Protocol):
    """Begins an answer, and goes."""

    def dataReceived(self, data: bytes) -> None:
        """Answer whatever came."""
        assert self.transport is not None
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: events\n\n")
        self.transport.loseConnection()


class DeathTests(TestCase):
    async def test_a_process_that_dies_meanwhile(self) -> None:
        path = str(scratch(self) / "control.sock")
        port = await UNIXServerEndpoint(reactor, path).listen(Factory.forProtocol(Dies))
        self.addCleanup(port.stopListening)
        later: Deferred[object] = Deferred.fromCoroutine(ControlClient(reactor, path).start(request()))
        self.assertIn("does not answer", str(await self.assertFailure(later, Unavailable)))
        early = EarlyStart(path, request(), hold=True).started(reactor, lambda stamped: None)
        self.assertIn("is gone", str(await self.assertFailure(Deferred.fromCoroutine(early), Unavailable)))
