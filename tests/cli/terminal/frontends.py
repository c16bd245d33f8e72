"""A front end over a played session, on a clock."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.terminal.frontend import FrontEnd
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.undoing import Proposal
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.home.session_paths import SessionPaths
from tests.cli.terminal.doubles import INFO, KeptSurface, PlayedSession

T = TypeVar("T")


class FrontEndCase(SynchronousTestCase):
    """Makes the parts; the surface is ``live`` or not, as the class says."""

    live = True

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1000)
        self.session = PlayedSession(self.clock.seconds)
        self.surface = KeptSurface(self.live)
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.logs = SessionPaths(Path(directory.name))
        self.proposal = Proposal(4, "/workspace", (), True, ("+agent", "Undo restores 1 file as before turn 1."))
        self.proposing: Deferred[None] = succeed(None)
        self.asked: list[int | None] = []
        printer = Printer(self.surface, self.clock, self.clock.seconds)
        self.front = FrontEnd(self.session, INFO, self.logs, self.clock, printer, self.propose)

    async def propose(self, turn: int | None) -> Proposal:
        """:returns: the undo that is to be shown, once it may be."""
        self.asked.append(turn)
        await self.proposing
        return self.proposal

    def begin(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        """Start it, and let what it shows be drawn."""
        done = Deferred.fromCoroutine(work)
        self.draw()
        return done

    def draw(self) -> None:
        """Let time pass until all is drawn."""
        self.clock.pump([0.05, 0])

    def type(self, *lines: str) -> None:
        """The person types, having read what is there."""
        for line in lines:
            self.clock.advance(QUIET_SECONDS)
            assert self.surface.listener is not None
            self.surface.listener.typed(line, self.clock.seconds() if self.live else float("inf"))
            self.draw()

    def clean(self) -> None:
        """Nothing is left behind."""
        self.assertFalse(self.surface.is_open)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.flushLoggedErrors(), [])
