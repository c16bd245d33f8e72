"""Tests for which tasks a host takes: those that it has room for."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError, ConnectionLost
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.fleet.taken import Keeper, Taken
from ironcurtain.fleet.taking import UNFIT_SECONDS, Room, Taker
from ironcurtain.fleet.tasks import Body, Over, Started
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role
from ironcurtain.session.manager import SessionManager, TooMany
from ironcurtain.session.model import SessionRequest
from tests.audit.doubles import scratch
from tests.fleet.test_tasks import ID, task
from tests.session.doubles import World, request

EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: begins\n\n"
"""The beginning of what a daemon answers that starts a session."""


def response(status: bytes, body: bytes) -> bytes:
    """:returns: a response of HTTP."""
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


class TakerTests(SynchronousTestCase):
    def setUp(self) -> None:
        place = scratch(self)
        home, self.key = Home(place, place / "run"), SigningKey.load_or_make(scratch(self))
        trust = Trust({"laptop": Host("laptop", self.key.public.raw, {"local:ada": frozenset((Role.ADMIN,))})})
        self.reactor, self.checked = MemoryReactorClock(), list[SessionRequest]()
        self.why = ""
        room = Room(1, None, ("builtin", "codex"), (), "build")
        self.keeper = Keeper(self.reactor, home)
        self.taker = Taker(self.reactor, home, lambda: trust, lambda: room, self.check, self.keeper)

    async def check(self, request: SessionRequest) -> None:
        self.checked.append(request)
        if self.why:
            raise Unavailable(self.why)

    def offer(self, **more: Any) -> Deferred[bool]:
        return self.taker.offered(task(**more).offer("laptop", self.key))

    def test_task_whose_agent_cannot_run_here_is_left_to_others(self) -> None:
        self.why = "no Docker Engine answers"
        body = Body(task="Fix it", options={"account": "work", "sandbox": "container", "model": "x"})
        self.assertFalse(self.successResultOf(self.offer(agent="codex", body=body)))
        (asked,) = self.checked
        self.assertEqual((asked.kind, asked.options), ("codex", {"account": "work", "sandbox": "container"}))
        self.assertEqual(len(self.reactor.unixClients), 0)  # its text was not asked for
        self.assertFalse(self.successResultOf(self.offer(agent="codex", body=body)))
        self.assertEqual(len(self.checked), 1)  # known for a while
        self.reactor.advance(UNFIT_SECONDS + 0.1)
        self.why = ""
        self.offer(agent="codex", body=body)
        self.assertEqual((len(self.checked), len(self.reactor.unixClients)), (2, 1))

    def test_task_that_fits_is_asked_for(self) -> None:
        self.offer()
        self.assertEqual((len(self.checked), len(self.reactor.unixClients)), (1, 1))

    def refuse(self) -> None:
        """No host answers."""
        for _, factory, *_ in self.reactor.unixClients:
            factory.clientConnectionFailed(None, Failure(ConnectError()))

    def test_task_that_may_run_here_is_left_to_nobody_else(self) -> None:
        """The daemon here has said what is missing, or is cut off when it may have started the session."""
        missing = b'{"error": {"code": "UNAVAILABLE", "message": "no key", "exit_status": 69}}'
        for answer, over in ((response(b"503 Unavailable", missing), Over.REFUSED), (EVENTS, Over.NOT_YET)):
            offered = self.offer()
            self.answer(response(b"200 OK", msgspec.json.encode(Body(task="Fix it"))))
            self.answer(response(b"200 OK", b"{}"))
            self.answer(answer)
            self.assertTrue(self.successResultOf(offered))
            said = self.keeper.known(ID)
            assert said is not None
            self.assertEqual((said.session, said.over), (0, over))
            self.assertNotEqual(said.why, "")

    def answer(self, data: bytes) -> None:
        """Answer what was asked last, and end the connection."""
        _, factory, *_ = self.reactor.unixClients[-1]
        asking = factory.buildProtocol(None)
        asking.makeConnection(StringTransport())
        asking.dataReceived(data)
        asking.connectionLost(Failure(ConnectionLost()))

    def test_offer_that_is_repeated_does_not_end_what_runs(self) -> None:
        """Nor does another host's task of the same id."""
        for origin in ("laptop", "other"):
            self.keeper.begin(Taken(id=ID, origin=origin, restart=True, started=Started()))
            self.keeper.tell(ID, session=7)
            offered = self.offer()
            self.refuse()
            self.assertEqual(self.successResultOf(offered), origin == "laptop")  # then the message is done with
            self.assertEqual(self.keeper.known(ID), Started(session=7))

    def test_task_whose_host_does_not_answer_is_not_begun(self) -> None:
        offered = self.offer()
        self.refuse()
        self.assertFalse(self.successResultOf(offered))
        self.assertEqual(self.keeper.runs(ID), "")


class RequireRoomTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world, self.left = World(scratch(self)), 0.0
        self.addCleanup(self.world.watcher.stop)
        kind = replace(self.world.kind, in_container=True, limited=lambda request: self.left)
        self.manager = SessionManager({"plain": kind}, self.world.services, lambda request: request.workspace)

    def require(self, kind: str = "plain") -> Deferred[None]:
        return Deferred.fromCoroutine(self.manager.require_room(SessionRequest(kind)))

    def test_account_with_a_limit_has_no_room_until_it_ends(self) -> None:
        self.left = 90.0
        self.assertIn("ends in 90 s", str(self.failureResultOf(self.require(), Unavailable).value))
        self.left = 0.0
        self.successResultOf(self.require())

    def test_unknown_agent_and_used_up_slots_have_no_room(self) -> None:
        self.failureResultOf(self.require("other"), UsageError)
        for _ in range(self.world.services.settings.limits.max_concurrent_sessions):
            self.successResultOf(self.require())  # takes none of them
            self.successResultOf(Deferred.fromCoroutine(self.manager.create(request())))
        self.failureResultOf(self.require(), TooMany)
        self.assertNotEqual(os.listdir(self.world.home.slots), [])
        self.successResultOf(Deferred.fromCoroutine(self.manager.stop("the test ends")))
