from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort
from twisted.trial.unittest import TestCase

from ironcurtain.control.client import ControlClient
from ironcurtain.control.listening import listen
from ironcurtain.operations import Principal
from ironcurtain.operations.model import Name
from ironcurtain.operations.operations import Operations
from ironcurtain.session import events
from ironcurtain.session.events import KEPT
from tests.audit.doubles import scratch
from tests.control.doubles import Collector, connect
from tests.session.doubles import World, request


class CountingOperations(Operations):
    """Knows how many watch."""

    watching = 0

    def watch(self, who: Principal, name: Name, wake: Callable[[], None]) -> Callable[[], None]:
        stop, gone = super().watch(who, name, wake), list[bool]()
        self.watching += 1

        def unwatch() -> None:
            stop()
            if not gone:
                self.watching -= 1
            gone.append(True)

        return unwatch


class StreamTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.world = World(scratch(self), reactor=reactor)
        self.operations = CountingOperations(self.world.manager)
        self.path = scratch(self) / "control.sock"
        self.port: IListeningPort = listen(reactor, self.path, self.operations)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.finish()))
        self.session = await self.world.manager.create(request())

    async def finish(self) -> None:
        await self.world.manager.stop("the end")
        self.world.watcher.stop()
        stopped = self.port.stopListening()
        if stopped is not None:
            await stopped

    async def follow(self, query: str = "") -> Collector:
        connection = await connect(self.path)
        head = f"GET /v1/sessions/1/events{query} HTTP/1.0\r\nHost: x\r\n\r\n"
        connection.transport.write(head.encode())  # type: ignore[union-attr]
        await connection.until(b": events\n\n")
        return connection

    async def leave(self, connection: Collector) -> None:
        connection.transport.loseConnection()  # type: ignore[union-attr]
        await connection.closed

    def read(self, connection: Collector) -> list[dict[str, Any]]:
        _, _, stream = connection.data.partition(b"\r\n\r\n")
        found = []
        for part in stream.split(b"\n\n")[1:-1]:
            number, data = part.split(b"\n", 1)
            found.append(json.loads(data.removeprefix(b"data: ")))
            self.assertEqual(int(number.removeprefix(b"id: ")), found[-1]["sequence"])
        return found

    async def test_events_come_one_by_one_as_they_happen(self) -> None:
        reader = await self.follow()
        for number in range(5):
            text = f"event {number}"
            self.session.events.emit(events.AgentText(text=text))
            await reader.until(text.encode())
        seen = self.read(reader)
        self.assertEqual([event["sequence"] for event in seen], list(range(1, self.session.events.last + 1)))
        self.assertEqual(seen[-1]["event"], {"type": "agent_text", "text": "event 4"})
        self.assertIn(b"content-type: text/event-stream", reader.data.lower())
        await self.leave(reader)

    async def test_a_reader_goes_on_where_it_was(self) -> None:
        self.session.events.emit(events.AgentText(text="one"))
        after = self.session.events.last
        self.session.events.emit(events.AgentText(text="two"))
        reader = await self.follow(f"?after={after}")
        await reader.until(b"two")
        self.assertEqual([event["sequence"] for event in self.read(reader)], [after + 1])
        await self.leave(reader)

    async def test_line_ends_do_not_break_the_stream(self) -> None:
        reader = await self.follow()
        self.session.events.emit(events.AgentText(text="a\n\ndata: b\r\nid: 9\u2028end"))
        await reader.until(b"end")
        self.assertEqual(self.read(reader)[-1]["event"]["text"], "a\n\ndata: b\r\nid: 9\u2028end")
        await self.leave(reader)

    async def test_a_slow_reader_is_told_what_it_missed(self) -> None:
        """It does not read while far more happens than is kept; others are not kept waiting."""
        slow, quick = await self.follow(), await self.follow()
        slow.transport.pauseProducing()  # type: ignore[union-attr]
        count = KEPT * 2
        for number in range(count):
            self.session.events.emit(events.AgentText(text=f"{number} " + "x" * 1000))
            if number % 100 == 0:
                await quick.until(b'"text":"%d ' % number)
        self.session.events.emit(events.AgentText(text="the last"))
        await quick.until(b"the last")
        self.assertNotIn("missed", [event["event"]["type"] for event in self.read(quick)])
        slow.transport.resumeProducing()  # type: ignore[union-attr]
        await slow.until(b"the last")
        seen, last = self.read(slow), 0
        missed = [event["event"]["count"] for event in seen if event["event"]["type"] == "missed"]
        for event in seen:
            self.assertEqual(event["sequence"], last + event["event"].get("count", 1))
            last = event["sequence"]
        self.assertEqual(last, self.session.events.last)
        self.assertGreater(sum(missed), KEPT // 2)
        await self.leave(slow)
        await self.leave(quick)

    async def test_a_reader_that_is_gone_is_not_served_any_more(self) -> None:
        readers = [await self.follow() for _ in range(3)]
        self.assertEqual(self.operations.watching, 3)
        for reader in readers:
            await self.leave(reader)
        answer = await connect(self.path)
        answer.transport.write(b"GET /v1/sessions HTTP/1.0\r\n\r\n")  # type: ignore[union-attr]
        await answer.closed
        self.assertEqual(self.operations.watching, 0)
        self.session.events.emit(events.AgentText(text="nobody hears"))

    async def test_the_end_of_the_session_is_reported(self) -> None:
        reader = await self.follow()
        await self.world.manager.close(self.session, "enough")
        await reader.until(b'"closed"')
        self.assertEqual(self.read(reader)[-1]["event"], {"type": "state", "state": "closed", "reason": "enough"})
        await self.leave(reader)

    async def test_a_session_that_was_joined_or_released_goes_on_without_its_holder(self) -> None:
        client = ControlClient(reactor, str(self.path))
        for let_be in (client.release, client.join):
            self.session.ends_with_owner = None
            holder = await self.follow("?hold=1")
            self.assertTrue(self.session.ends_with_owner)
            await let_be(1)
            self.assertEqual((await client.stop(1, held=True)).state, "ready")
            await self.leave(holder)
        self.assertEqual((await client.session(1)).state, "ready")

    async def test_a_session_that_is_held_ends_with_its_holder(self) -> None:
        holder = await self.follow("?hold=1")
        watcher = await self.follow()
        await self.leave(holder)
        await watcher.until(b'"closed"')
        self.assertEqual(self.session.state, "closed")
        await self.leave(watcher)
