"""The agent of a shell that nobody looks at: it takes messages."""

from __future__ import annotations

import signal

from twisted.internet.defer import Deferred

from ironcurtain.errors import SessionError
from ironcurtain.shell.first_prompt import FIRST_PROMPT_SECONDS
from ironcurtain.shell.messages import StepOutput
from tests.shell.wrapped import PASTING, PROMPT, AgentTestCase, mark


class PipeTests(AgentTestCase):
    """Nobody looks at a terminal."""

    def starting(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self.agent.start())

    def test_it_starts_with_the_first_prompt(self) -> None:
        started = self.starting()
        self.shows(b"welcome\r\n", mark("A"))
        self.assertNoResult(started)
        self.shows(mark("B"))
        self.successResultOf(started)
        self.clock.advance(FIRST_PROMPT_SECONDS)
        self.assertEqual(self.pty.signals, [])

    def test_a_shell_that_shows_no_marks_needs_a_terminal(self) -> None:
        self.wrapped.integrated = False
        self.assertIn("needs a terminal", str(self.failureResultOf(self.starting(), SessionError).value))

    def test_without_a_prompt_it_does_not_start(self) -> None:
        started = self.starting()
        self.shows(b"$ ")
        self.clock.advance(FIRST_PROMPT_SECONDS)
        self.assertIn("no prompt with marks", str(self.failureResultOf(started, SessionError).value))
        self.assertEqual(self.pty.signals, [signal.SIGHUP])

    def test_a_shell_that_ends_at_once(self) -> None:
        started = self.starting()
        self.pty.end(1)
        self.assertIn("ended with status 1", str(self.failureResultOf(started, SessionError).value))

    def test_messages_are_instructions(self) -> None:
        self.starting()
        self.shows(PASTING, PROMPT)
        reply = Deferred.fromCoroutine(self.agent.respond("look"))
        self.plans("allow ls")
        self.runs(b"a\r\n")
        self.says("One.")
        self.assertEqual(self.successResultOf(reply).text, "One.")
        self.assertEqual([each.text for each in self.told if isinstance(each, StepOutput)], ["a\n"])

    def test_the_shell_ends_and_so_does_the_instruction(self) -> None:
        self.starting()
        self.shows(PASTING, PROMPT)
        reply = Deferred.fromCoroutine(self.agent.respond("look"))
        self.plans("allow exit")
        self.shows(mark("C"))
        self.pty.end(1)
        self.assertIn("the shell ended", str(self.failureResultOf(reply, SessionError).value))

    def test_in_a_terminal_there_are_no_messages(self) -> None:
        self.ready()
        reply = Deferred.fromCoroutine(self.agent.respond("look"))
        self.failureResultOf(reply, SessionError)
