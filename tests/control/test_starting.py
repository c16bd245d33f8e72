"""Sessions that take long to start: who waits hears what they do, and can give them up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.control.client import ControlClient
from ironcurtain.control.listening import listen
from ironcurtain.control.wire import RemoteError
from ironcurtain.errors import Unavailable, UsageError
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

    async def started(self) -> Deferred[SessionInfo]:
        """:returns: the start of a session, whose agent takes long."""
        starting = Deferred.fromCoroutine(self.client.start(request(task="look"), self.heard.append))
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
            await self.client.start(wanted, self.heard.append)
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
        try:
            await ControlClient(reactor, path).start(request())
        except Unavailable as e:
            self.assertIn("does not answer", str(e))
        else:
            self.fail("it started")
