"""One running program of an agent, without a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.agents.streams.reports import Report, Text, TurnOver
from ironcurtain.container.container import ProgramEnded
from ironcurtain.container.errors import ContainerDied
from ironcurtain.container_agent.program import BURST, RATE, AgentProgram
from ironcurtain.errors import SessionError
from tests.agents.streams.replaying import dialogue

RESULT = b'{"type": "result", "result": "done"}\n'


class Faulty:
    """A dialogue that fails at one of its methods, as one of a plug-in may."""

    def __init__(self, at: str) -> None:
        self._at, self._sound = at, dialogue("claude-code")

    def __getattr__(self, name: str) -> Any:
        def fail(*given: object) -> Any:
            raise KeyError("session_id")

        return fail if name == self._at else getattr(self._sound, name)


class ProgramTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.reports, self.lines = Clock(), list[Report](), list[str]()
        self.written: list[bytes] = []
        self.ends = 0
        self.ended: Deferred[ProgramEnded] = Deferred()
        self.stdout: Callable[[bytes], Deferred[None] | None]
        self.stderr: Callable[[bytes], Any]
        self.program = self.started(dialogue("claude-code"))

    def started(self, talk: Dialogue, report: Callable[[Report], None] | None = None) -> AgentProgram:
        """:returns: a program that runs."""
        program = AgentProgram(talk, report or self.reports.append, self.lines.append, self.clock)
        sandbox: Any = SimpleNamespace(open=self.open)
        self.successResultOf(Deferred.fromCoroutine(program.start(sandbox, ("x",), {})))
        return program

    async def open(self, argv: Any, *, stdout: Any, stderr: Any, environment: Any) -> Any:
        self.stdout, self.stderr = stdout, stderr
        return SimpleNamespace(write=self.written.append, ended=self.ended, end=self.end)

    async def end(self) -> None:
        self.ends += 1

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

    def test_an_end_is_not_explained_by_what_came_before_its_turn(self) -> None:
        self.stderr(b"a warning at the start\n")
        self.program.send("hello")
        self.stdout(RESULT)
        turn = self.program.send("more")
        self.stderr(b"it broke\n")
        self.ended.callback(ProgramEnded(7, out_of_memory=False))
        self.assertIsNotNone(self.successResultOf(turn).failed)
        self.assertEqual((self.program.outcome.stdout, self.program.outcome.stderr), (b"", b"it broke\n"))

    def test_the_end_of_a_first_turn_may_be_explained_by_the_start(self) -> None:
        self.stderr(b"no login\n")
        self.program.send("hello")
        self.ended.callback(ProgramEnded(7, out_of_memory=False))
        self.assertEqual(self.program.outcome.stderr, b"no login\n")

    def test_a_program_that_ended_before_its_turn_is_explained(self) -> None:
        self.stderr(b"it broke\n")
        self.ended.callback(ProgramEnded(7, out_of_memory=False))
        self.program.send("hello")
        self.assertEqual(self.program.outcome.stderr, b"it broke\n")

    def test_the_end_of_the_sandbox_fails_the_turn(self) -> None:
        turn: Deferred[TurnOver] = self.program.send("hello")
        self.ended.errback(ContainerDied("gone"))
        self.failureResultOf(turn, ContainerDied)
        self.assertFalse(self.program.running)

    def test_a_fault_of_the_dialogue_fails_the_turn_at_once_and_ends_the_program(self) -> None:
        for at in ("begin", "message", "output", "error_line", "ended"):
            with self.subTest(at):
                self.ended, self.ends = Deferred(), 0
                program = self.started(Faulty(at))
                turn = program.send("hello")
                self.stdout(b"{}\n")
                self.stderr(b"it broke\n")
                if at == "ended":
                    self.ended.callback(ProgramEnded(7, out_of_memory=False))
                why = str(self.failureResultOf(turn, SessionError).value)
                self.assertIn("internal error: KeyError", why)
                self.assertEqual((program.running, self.ends), (False, 1))
                self.stdout(RESULT)  # what comes afterwards is not read
                self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

    def test_a_fault_in_handing_over_fails_the_turn_that_runs(self) -> None:
        for at in ("join", "interrupt"):
            with self.subTest(at):
                program = self.started(Faulty(at))
                turn = program.send("hello")
                self.assertFalse(program.join("more") if at == "join" else program.interrupt())
                self.failureResultOf(turn, SessionError)
                self.assertFalse(program.running)
                self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

    def test_a_fault_of_who_gets_the_reports_fails_the_turn(self) -> None:
        def fail(report: Report) -> None:
            raise KeyError(report)

        program = self.started(dialogue("claude-code"), fail)
        turn = program.send("hello")
        self.stdout(b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "done"}]}}\n')
        self.failureResultOf(turn, SessionError)
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

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
