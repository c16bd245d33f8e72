"""One running program of an agent, without a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.streams.reports import Report, Text, TurnOver
from ironcurtain.container.container import ProgramEnded
from ironcurtain.container.errors import ContainerDied
from ironcurtain.container_agent.program import BURST, RATE, AgentProgram
from tests.agents.streams.replaying import dialogue

RESULT = b'{"type": "result", "result": "done"}\n'


class ProgramTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.reports, self.lines = Clock(), list[Report](), list[str]()
        self.written: list[bytes] = []
        self.ended: Deferred[ProgramEnded] = Deferred()
        self.stdout: Callable[[bytes], Deferred[None] | None]
        self.stderr: Callable[[bytes], Any]
        self.program = AgentProgram(dialogue("claude-code"), self.reports.append, self.lines.append, self.clock)
        sandbox: Any = SimpleNamespace(open=self.open)
        self.successResultOf(Deferred.fromCoroutine(self.program.start(sandbox, ("x",), {})))

    async def open(self, argv: Any, *, stdout: Any, stderr: Any, environment: Any) -> Any:
        self.stdout, self.stderr = stdout, stderr
        return SimpleNamespace(write=self.written.append, ended=self.ended)

    def test_a_turn_ends_while_the_program_goes_on(self) -> None:
        turn = self.program.send("hello")
        self.assertIn(b"hello", self.written[0])
        self.stdout(b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "done"}]}}\n')
        self.assertIn(Text("done"), self.reports)
        self.stdout(RESULT)
        self.assertEqual(self.successResultOf(turn).answer, "done")
        self.assertTrue(self.program.running)
        self.assertIsNone(self.program.outcome.exit_code)

    def test_a_result_without_a_turn_is_ignored(self) -> None:
        self.stdout(RESULT)
        self.assertNoResult(self.program.send("hello"))

    def test_the_end_of_the_program_ends_the_turn(self) -> None:
        turn = self.program.send("hello")
        self.stderr(b"it broke")
        self.ended.callback(ProgramEnded(7, out_of_memory=False))
        self.assertIsNotNone(self.successResultOf(turn).failed)
        self.assertEqual((self.program.running, self.program.outcome.exit_code), (False, 7))
        self.assertEqual(self.lines, ["it broke"])

    def test_the_end_of_the_sandbox_fails_the_turn(self) -> None:
        turn: Deferred[TurnOver] = self.program.send("hello")
        self.ended.errback(ContainerDied("gone"))
        self.failureResultOf(turn, ContainerDied)
        self.assertFalse(self.program.running)

    def test_a_flood_of_output_has_to_wait(self) -> None:
        self.assertIsNone(self.stdout(b"x" * BURST))
        waiting = self.stdout(b"x" * 2 * RATE)
        assert waiting is not None
        self.clock.advance(1.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.2)
        self.successResultOf(waiting)
        self.clock.advance(60)
        self.assertIsNone(self.stdout(b"x" * RATE))
