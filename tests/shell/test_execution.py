"""Typing commands into a shell: when, how, and what ends them."""

from __future__ import annotations

import signal
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import SessionError
from ironcurtain.shell.execution import (
    BEGIN_SECONDS,
    GRACE_SECONDS,
    LOOK_SECONDS,
    LOOKS,
    MARK_SECONDS,
    PROMPT_SECONDS,
    TYPED_SECONDS,
    Capture,
    CommandResult,
    CommandRunner,
)
from ironcurtain.shell.messages import StepOutcome
from tests.shell.support import ShellTestCase


class CaptureTests(SynchronousTestCase):
    """The beginning and the end of a long output."""

    def test_what_fits_is_kept_as_it_is(self) -> None:
        capture = Capture(10)
        for piece in (b"0123", b"4567", b"89"):
            capture.add(piece)
        self.assertEqual(capture.result(), (b"0123456789", 0))

    @given(st.integers(2, 50), st.lists(st.binary(max_size=40)))
    def test_any_slicing_keeps_both_ends(self, limit: int, pieces: list[bytes]) -> None:
        capture, whole, half = Capture(limit), b"".join(pieces), limit // 2
        for piece in pieces:
            capture.add(piece)
        kept, left_out = capture.result()
        if len(whole) <= 2 * half:
            self.assertEqual((kept, left_out), (whole, 0))
            return
        head, gap, tail = kept.partition(b"\n[... %d bytes left out ...]\n" % left_out)
        self.assertEqual((bool(gap), left_out), (True, len(whole) - len(head) - len(tail)))
        self.assertTrue(whole[:half].startswith(head) and whole[-half:].endswith(tail))
        self.assertEqual(whole[:half][len(head) :].split(), whole[:half].split()[-1:] if head != whole[:half] else [])

    def test_no_word_is_cut(self) -> None:
        capture = Capture(40)
        capture.add(b"a first word, KEY=canary-4f7d2b90ac1-0123456789 and the end")
        kept, _ = capture.result()
        self.assertNotIn(b"canary", kept)
        self.assertTrue(kept.startswith(b"a first word, \n[...") and kept.endswith(b" and the end"))


class GuardedShell:
    """A shell that must not be signalled at its prompt."""

    def __init__(self) -> None:
        self.in_foreground, self.running = True, False
        self.pty, self.pasting = self, False

    def line(self, command: str) -> str:
        return command

    def end_line(self) -> None:
        pass

    def write(self, data: bytes) -> None:
        pass

    def signal_foreground(self, number: signal.Signals) -> None:
        if not self.running:
            raise AssertionError(f"{number.name} without a command")


class RunTests(ShellTestCase):
    """One command."""

    def run_command(self, command: str = "ls", seconds: float = 60.0) -> Deferred[CommandResult]:
        """Run it; its output is shown in ``self.shown``."""
        self.shown: list[bytes] = []
        running = Deferred.fromCoroutine(self.runner.run(command, seconds, self.shown.append))
        self.turn()
        return running

    def waiting(self) -> list[object]:
        """:returns: what of the runner still waits for its time."""
        of_the_audit_log = ("Syncing", "Checkpoints")
        return [c for c in self.clock.getDelayedCalls() if not any(name in repr(c) for name in of_the_audit_log)]

    def test_it_is_one_paste_and_enter(self) -> None:
        result = self.successResultOf(self.run_command("for x in 1\ndo ls\ndone"))
        self.assertEqual(self.shell.written, b"\x1b[200~for x in 1\ndo ls\ndone\x1b[201~\r")
        self.assertEqual((result.outcome, result.status), (StepOutcome.DONE, 0))

    def test_output_is_shown_and_kept(self) -> None:
        result = self.successResultOf(self.run_command())
        self.assertEqual(result.output, b"output of ls\r\n")
        self.assertEqual(self.shown, [b"output of ls\r\n"])

    def test_what_is_no_commands_output_is_not_taken(self) -> None:
        self.assertFalse(self.runner.output(b"$ "))

    def test_a_status_other_than_0_is_a_failure(self) -> None:
        self.shell.statuses["ls"] = 2
        result = self.successResultOf(self.run_command())
        self.assertEqual((result.outcome, result.status), (StepOutcome.FAILED, 2))

    def test_nothing_is_typed_unless_the_line_is_empty(self) -> None:
        self.runner.typed()
        self.failureResultOf(self.run_command(), SessionError)
        self.assertEqual(self.shell.written, b"")

    def test_several_lines_need_bracketed_paste(self) -> None:
        self.shell.pasting = False
        result = self.successResultOf(self.run_command("a\nb"))
        self.assertEqual((result.outcome, self.shell.written), (StepOutcome.NOT_RUN, b""))
        self.run_command("a")
        self.assertEqual(self.shell.written, b"a\r")

    def test_what_the_shell_does_not_begin_is_cancelled(self) -> None:
        self.shell.deaf = True
        running = self.run_command("echo 'open")
        self.clock.advance(BEGIN_SECONDS)
        self.assertTrue(self.shell.written.endswith(b"\x03"))
        self.shell.prompt()
        self.assertEqual(self.successResultOf(running).outcome, StepOutcome.NOT_RUN)

    def test_a_prompt_without_a_beginning_is_a_command_that_did_not_run(self) -> None:
        """As after a syntax error."""
        self.shell.deaf = True
        running = self.run_command("echo )")
        self.shell.prompt()
        self.assertEqual(self.successResultOf(running).outcome, StepOutcome.NOT_RUN)

    def test_a_prompt_ends_a_command_whose_end_has_no_mark(self) -> None:
        self.shell.slow.add("ls")
        running = self.run_command()
        self.shell.prompt()
        result = self.successResultOf(running)
        self.assertEqual((result.outcome, result.status), (StepOutcome.FAILED, None))

    def test_it_waits_for_the_prompt_but_not_for_ever(self) -> None:
        self.shell.slow.add("ls")
        running = self.run_command()
        self.runner.command_ended(0)
        self.assertNoResult(running)
        self.clock.advance(PROMPT_SECONDS)
        self.assertEqual(self.successResultOf(running).outcome, StepOutcome.DONE)

    def test_the_time_limit_ends_it_step_by_step(self) -> None:
        self.shell.slow.add("ls")
        running = self.run_command(seconds=10.0)
        self.clock.advance(10.0)
        self.clock.advance(GRACE_SECONDS)
        self.clock.advance(GRACE_SECONDS)
        self.assertEqual(self.shell.signals, [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
        self.shell.finish(137)
        result = self.successResultOf(running)
        self.assertEqual((result.outcome, result.status), (StepOutcome.TIMED_OUT, 137))
        self.assertEqual(self.waiting(), [])

    def test_an_interrupt_is_a_key_and_a_kill_a_signal(self) -> None:
        self.shell.slow.add("ls")
        running = self.run_command()
        self.runner.kill()
        self.assertEqual(self.shell.signals, [signal.SIGKILL])
        self.runner.interrupt()
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.successResultOf(running).outcome, StepOutcome.INTERRUPTED)
        self.assertEqual(self.waiting(), [])

    def test_an_interrupt_that_the_shell_got_comes_again_when_the_command_has_the_terminal(self) -> None:
        for begin in (False, True):  # between the mark of its beginning and the start of its process, and before both
            self.shell.slow.add("ls")
            self.shell.deaf, self.shell.in_foreground = True, True
            running = self.run_command()
            if begin:
                self.runner.command_began()
            self.runner.interrupt()
            self.clock.advance(LOOK_SECONDS)
            self.runner.command_began()
            self.clock.advance(LOOK_SECONDS)
            self.shell.in_foreground = False
            self.clock.advance(LOOK_SECONDS)
            self.assertEqual(self.shell.signals, [])  # the job may still have the shell's handlers
            self.clock.advance(LOOK_SECONDS)
            self.assertEqual(self.shell.signals, [signal.SIGINT])
            self.clock.advance(LOOK_SECONDS)
            self.shell.finish(130)
            self.assertEqual(self.successResultOf(running).outcome, StepOutcome.INTERRUPTED)
            self.assertEqual((self.shell.signals, self.waiting()), ([signal.SIGINT], []))
            self.shell.signals.clear()

    def test_an_interrupt_that_the_command_got_comes_once(self) -> None:
        self.shell.slow.add("ls")
        self.run_command()
        self.shell.deaf = True
        self.runner.interrupt()
        for _ in range(3):
            self.clock.advance(LOOK_SECONDS)
        self.assertEqual((self.shell.signals, self.shell.written.count(b"\x03")), ([], 1))

    def test_a_shell_that_runs_the_command_itself_is_interrupted_once(self) -> None:
        self.shell.slow.add("ls")
        self.shell.in_foreground = True
        self.run_command()
        self.shell.deaf = True
        self.runner.interrupt()
        for _ in range(LOOKS + 1):
            self.clock.advance(LOOK_SECONDS)
        self.shell.in_foreground = False
        for _ in range(2):
            self.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.shell.signals, [])

    def test_a_kill_that_came_too_early_comes_again(self) -> None:
        self.shell.slow.add("ls")
        self.shell.in_foreground = True
        self.run_command()
        self.shell.deaf = True
        self.runner.kill()
        self.shell.signals.clear()
        self.shell.in_foreground = False
        for _ in range(2):
            self.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.shell.signals, [signal.SIGKILL])

    def test_after_an_interrupt_a_shell_without_marks_is_asked_for_the_end(self) -> None:
        self.shell.slow.add("ls")
        answers = ["", "end"]
        self.shell.end_line = lambda: answers.pop(0)
        running = self.run_command()
        self.shell.deaf = True
        self.runner.interrupt()
        self.clock.advance(LOOK_SECONDS)
        for _ in range(2):
            self.clock.advance(MARK_SECONDS)
        self.assertEqual((answers, self.shell.written[-5:]), ([], b"\x03end\r"))
        self.assertFalse(self.runner.output(b"end\r\n"))
        self.shell.finish(130)
        result = self.successResultOf(running)
        self.assertEqual((result.outcome, result.status), (StepOutcome.INTERRUPTED, 130))
        self.assertEqual(self.waiting(), [])

    def test_a_shell_of_unknown_syntax_is_not_typed_into(self) -> None:
        self.shell.line = lambda command: None
        result = self.successResultOf(self.run_command())
        self.assertEqual((result.outcome, self.shell.written), (StepOutcome.NOT_RUN, b""))

    def test_an_interrupt_counts_before_the_command_has_begun(self) -> None:
        self.shell.deaf = True
        running = self.run_command()
        for _ in range(2):
            self.runner.interrupt()
        self.assertTrue(self.shell.written.endswith(b"\r"))  # the terminal would drop what the shell has not read
        self.clock.advance(TYPED_SECONDS)
        self.assertTrue(self.shell.written.endswith(b"\r\x03"))
        self.shell.prompt()
        self.assertEqual(self.successResultOf(running).outcome, StepOutcome.INTERRUPTED)
        self.assertEqual(self.waiting(), [])

    def test_an_interrupt_before_the_command_has_begun_comes_when_it_has(self) -> None:
        self.shell.deaf = True
        self.run_command()
        self.runner.interrupt()
        self.runner.command_began()
        self.assertTrue(self.shell.written.endswith(b"\r"))  # its process may still have the shell's handlers
        self.clock.advance(LOOK_SECONDS)
        self.assertTrue(self.shell.written.endswith(b"\r\x03"))

    @given(
        st.lists(
            st.sampled_from(("began", "ended", "prompt", "interrupt", "kill", "job", "no job", "time", "typed")),
            max_size=40,
        )
    )
    def test_whatever_comes_the_shell_itself_is_not_signalled_and_the_end_is_seen(self, course: list[str]) -> None:
        clock, shell = Clock(), GuardedShell()
        runner = CommandRunner(shell, clock, 1000, lambda message: None)
        runner.prompt_ended()
        running = Deferred.fromCoroutine(runner.run("ls", 60.0, lambda data: None))

        def prompt() -> None:
            runner.prompt_began()
            runner.prompt_ended()

        steps: dict[str, Callable[[], object]] = {
            "began": runner.command_began,
            "ended": lambda: runner.command_ended(0),
            "prompt": prompt,
            "interrupt": runner.interrupt,
            "kill": runner.kill,
            "job": lambda: setattr(shell, "in_foreground", False),
            "no job": lambda: setattr(shell, "in_foreground", True),
            "time": lambda: clock.advance(LOOK_SECONDS),
            "typed": runner.typed,
        }
        for step in course:
            steps[step]()
            shell.running = runner.running
        prompt()
        self.successResultOf(running)
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_the_end_of_the_shell_is_an_error(self) -> None:
        self.shell.deaf = True
        for begun in (False, True):
            self.runner.prompt_ended()
            running = self.run_command()
            if begun:
                self.runner.command_began()
            self.runner.lost()
            self.failureResultOf(running, SessionError)
            self.assertEqual(self.waiting(), [])
