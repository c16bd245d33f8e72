"""The course of an agent below, without a process."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ProcessDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from ironcurtain.shell.child_run import ALIVE_SECONDS, LOST_SECONDS, ChildRun
from ironcurtain.shell.children import ChildStart
from ironcurtain.shell.messages import ProposedStep, StepKind
from ironcurtain.shell.tools import StepRun
from tests.shell.support import ShellTestCase


class Spawning(Clock):
    """A reactor whose processes only read and write what a test says."""

    pid = 7

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.input_open = True

    def spawnProcess(self, protocol: Any, *arguments: Any, **more: Any) -> None:
        self.protocol = protocol
        protocol.makeConnection(self)

    def write(self, data: bytes) -> None:
        self.written += data

    def closeStdin(self) -> None:
        self.input_open = False

    def loseConnection(self) -> None:
        """Nothing to do."""

    def resumeProducing(self) -> None:
        """Nothing to do."""

    def end(self) -> None:
        """The process ends."""
        self.protocol.processExited(Failure(ProcessDone(0)))
        self.protocol.processEnded(Failure(ProcessDone(0)))

    @property
    def said(self) -> list[dict[str, Any]]:
        """The actions that it was given."""
        return [json.loads(line) for line in self.written.splitlines()]


class AliveTests(ShellTestCase):
    """An agent on another machine is told that this one is there, so that it does not go on without."""

    def run_on(self, host: str) -> tuple[Spawning, Deferred[int | None]]:
        """Start an agent."""
        reactor = Spawning()
        step = ProposedStep(
            number=1, command="x", purpose="y", kind=StepKind.AGENT, arguments={"host": host, "task": "t"}
        )
        how = StepRun(directory="/", seconds=1000.0, show=lambda data: None, ask=lambda call, judged: succeed("tester"))
        child = ChildRun(reactor, self.admission, step, how)  # type: ignore[arg-type]
        return reactor, Deferred.fromCoroutine(child.run(ChildStart(("ssh",), {}, b"")))

    def test_it_is_told_so_until_it_is_done(self) -> None:
        reactor, running = self.run_on("far")
        reactor.pump([ALIVE_SECONDS] * 3)
        self.assertEqual(reactor.said, [{"type": "alive", "seconds": LOST_SECONDS}] * 4)
        self.assertGreater(LOST_SECONDS, 3 * ALIVE_SECONDS)
        reactor.protocol.outReceived(b'{"type":"done"}\n')
        self.assertFalse(reactor.input_open)
        reactor.pump([ALIVE_SECONDS] * 3)
        self.assertEqual(len(reactor.said), 4)
        reactor.end()
        self.assertEqual((self.successResultOf(running), reactor.getDelayedCalls()), (0, []))

    def test_its_end_ends_that(self) -> None:
        reactor, running = self.run_on("far")
        reactor.end()
        self.assertEqual((self.successResultOf(running), reactor.getDelayedCalls()), (0, []))

    def test_on_this_machine_there_is_no_need(self) -> None:
        reactor, running = self.run_on("")
        reactor.advance(ALIVE_SECONDS)
        self.assertEqual(reactor.said, [])
        reactor.end()
        self.successResultOf(running)
