"""What is told after a session with a screen, in the daemon."""

from __future__ import annotations

import io
import sys

import msgspec
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort
from twisted.trial.unittest import TestCase

from ironcurtain.cli.screen import review_if_over
from ironcurtain.control.client import ControlClient
from ironcurtain.control.listening import listen
from ironcurtain.operations.operations import Operations
from ironcurtain.project.planted import SuspectFile
from ironcurtain.session.findings import Findings
from ironcurtain.session.session import Session
from ironcurtain.terminal.model import ProgramExit
from tests.audit.doubles import scratch
from tests.session.doubles import World, request


class ReviewTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.world = World(scratch(self), reactor=reactor)
        path = scratch(self) / "control.sock"
        self.port: IListeningPort = listen(reactor, path, Operations(self.world.manager))
        self.addCleanup(lambda: Deferred.fromCoroutine(self.finish()))
        self.owner = ControlClient(reactor, str(path))
        self.session: Session = await self.world.manager.create(request(terminal=(80, 24)))
        found = Findings(complete=True, files=[SuspectFile(path="hook", what="added", reason="git runs it")])
        self.session.paths.findings.write_bytes(msgspec.json.encode(found))

    async def finish(self) -> None:
        await self.world.manager.stop("the end")
        self.world.watcher.stop()
        stopped = self.port.stopListening()
        if stopped is not None:
            await stopped

    async def said(self) -> str:
        """:returns: what is told of the session."""
        written = io.StringIO()
        self.patch(sys, "stderr", written)
        await review_if_over(reactor, self.world.home, self.owner, self.session.info)
        return written.getvalue()

    async def test_a_session_that_goes_on(self) -> None:
        self.assertEqual(await self.said(), "")

    async def test_one_whose_program_ended(self) -> None:
        assert self.session.terminal is not None
        self.session.terminal.ended(ProgramExit(7, "exit status 7"))
        self.assertIn("hook", await self.said())
        self.assertEqual(self.session.state, "closed")

    async def test_one_that_ended_without_a_status(self) -> None:
        await self.world.manager.close(self.session, "its container is gone")
        self.assertIsNone(self.session.info.status)
        self.assertIn("hook", await self.said())
