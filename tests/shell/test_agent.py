"""The agent in the user's terminal: who gets keys and output, and when an instruction begins and ends."""

from __future__ import annotations

import signal

from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.session.events import Notice, TurnFinished, TurnStarted
from ironcurtain.shell.execution import KILL_LINE
from ironcurtain.shell.messages import (
    ApprovalRequested,
    InstructionAccepted,
    InstructionDone,
    Interrupt,
    StepCompleted,
    StepOutcome,
    StepOutput,
)
from ironcurtain.shell.streams import ShellStreams
from ironcurtain.shell.typed_instructions import JOIN_SECONDS, LINE_SECONDS
from ironcurtain.shell.wrapped import MARKS_SECONDS
from ironcurtain.shell_integration.marks import InstructionTyped, Mark, MarkReader
from tests.shell.model import last_words, problems
from tests.shell.wrapped import NONCE, PASTING, PROMPT, AgentTestCase, mark, private


def pasted(command: bytes) -> bytes:
    return b"\x1b[200~" + command + b"\x1b[201~\r"


class ShellTests(AgentTestCase):
    """No instruction is given."""

    def test_keys_and_output_pass_as_they_are(self) -> None:
        self.start()
        self.shows(b"\x1b[1mhi\xff\x00" + PROMPT)
        self.assertEqual(self.eye.new(), b"\x1b[1mhi\xff\x00$ ")
        self.types(b"l\x1b[A\x03\xfe\r")
        self.assertEqual(self.pty.typed, b"l\x1b[A\x03\xfe\r")
        self.shows(mark("C"), b"out\r\n", mark("D;1"), private("cwd", "/tmp/x y"), PROMPT)
        self.assertEqual(self.eye.new(), b"out\r\n$ ")
        self.assertEqual((self.wrapped.state.status, self.wrapped.directory), (1, "/tmp/x y"))
        self.assertEqual(self.lines.lines(), ["hi\ufffd$ out", "$"])
        self.assertEqual(self.mode.noted, [])

    def test_the_size_reaches_the_shell_the_agent_and_the_lines(self) -> None:
        self.ready()
        self.person.resized(20, 10)
        self.assertEqual((self.pty.sizes, self.mode.noted), ([(20, 10)], ["resized 20 10"]))
        self.shows(b"\r" + b"x" * 30 + b"\r\x1b[Ay\r\n\r\n")  # up by one row is the first half of the line
        self.assertTrue(self.lines.lines()[0].startswith("yx"))

    def test_a_shell_that_shows_marks_is_not_told_of(self) -> None:
        self.ready()
        self.clock.advance(MARKS_SECONDS * 2)
        self.assertEqual((self.eye.new(), self.emitted), (b"", []))

    def test_without_marks_the_user_is_told_and_has_another_sign(self) -> None:
        self.start()
        self.shows(b"$ ")
        self.clock.advance(MARKS_SECONDS)
        self.assertIn(b"begin an instruction with ##", self.eye.new())
        self.assertIn("##", "".join(each.text for each in self.emitted if isinstance(each, Notice)))
        self.types(b"# comment\r")
        self.assertEqual(self.pty.typed, b"# comment\r")
        self.types(b"## what is this\r")
        self.assertEqual(self.pty.typed, b"# comment\r\r")  # Enter alone, for another prompt
        self.clock.advance(JOIN_SECONDS)
        self.turn()
        self.assertEqual(self.model.requests[0].messages[0].content[0].text.split("\n")[0], "what is this")  # type: ignore[union-attr]
        self.says("A shell.")
        self.types(b"ls\r")
        self.assertTrue(self.pty.typed.endswith(b"ls\r"))

    def test_it_ends_with_its_shell(self) -> None:
        self.ready()
        self.pty.end(3)
        self.assertEqual((self.eye.end, self.ends), (("the shell ended", 3), ["the shell ended"]))
        self.assertEqual(self.mode.noted, [])

    def test_stopped_it_hangs_up(self) -> None:
        self.ready()
        self.successResultOf(Deferred.fromCoroutine(self.agent.stop()))
        self.assertEqual(self.pty.signals, [signal.SIGHUP])
        self.assertEqual((self.eye.end, self.ends), (("the session was ended", 129), []))


class BeginTests(AgentTestCase):
    """An instruction takes the terminal."""

    def test_it_begins_after_the_next_prompt(self) -> None:
        self.ready()
        self.types(b"# look\r")
        self.shows(b"# look\r\n", private("instruction", "# look"))
        self.clock.advance(1.0)
        self.assertEqual((self.mode.noted, self.eye.new()), ([], b"# look\r\n"))
        self.shows(PROMPT)
        self.assertEqual(self.mode.noted, [])
        self.clock.advance(JOIN_SECONDS)
        self.assertEqual((self.mode.noted, self.eye.new()), (["begin"], b""))
        self.assertEqual(self.mode.messages, [InstructionAccepted(text="look")])
        self.assertEqual(self.emitted, [TurnStarted(turn=1, message="look")])

    def test_an_empty_one_is_none(self) -> None:
        self.ready()
        self.types(b"#\r")
        self.shows(private("instruction", "#"), PROMPT)
        self.clock.advance(JOIN_SECONDS)
        self.assertEqual((self.model.requests, self.mode.noted), ([], ["begin", "end"]))
        self.assertTrue(self.eye.new().endswith(b"$ "))
        self.types(b"ls\r")
        self.assertTrue(self.pty.typed.endswith(b"ls\r"))

    def test_those_that_were_typed_ahead_are_one(self) -> None:
        self.ready()
        self.types(b"# one\r# two\r")
        self.shows(private("instruction", "# one"), PROMPT)
        self.clock.advance(JOIN_SECONDS / 2)
        self.shows(private("instruction", "# two"), PROMPT)
        self.clock.advance(JOIN_SECONDS / 2)
        self.assertEqual(self.model.requests, [])
        self.clock.advance(JOIN_SECONDS)
        self.assertEqual([each.text for each in self.told if isinstance(each, InstructionAccepted)], ["one\ntwo"])

    def test_a_command_that_was_typed_ahead_runs_first_and_is_seen(self) -> None:
        self.ready()
        self.types(b"# one\rdate\r")
        self.shows(private("instruction", "# one"), PROMPT, b"date\r\n")
        self.shows(mark("C"), b"Tues")
        self.assertEqual(self.eye.new(), b"$ date\r\nTues")
        self.clock.advance(60.0)
        self.types(b"y")  # for the command
        self.assertEqual((self.mode.noted, self.pty.typed[-1:]), ([], b"y"))
        self.shows(b"day\r\n", mark("D;0"), PROMPT)
        self.assertEqual(self.eye.new(), b"day\r\n")
        self.clock.advance(JOIN_SECONDS)
        self.assertEqual(self.mode.noted, ["begin"])
        self.says("So.")
        self.assertEqual(self.eye.new(), b"$ ")

    def test_a_line_that_was_typed_ahead_is_waited_for_but_not_for_ever(self) -> None:
        self.ready()
        for runs in (True, False):
            self.types(b"# one\r")
            self.shows(private("instruction", "# one"), PROMPT)
            self.types(b"make\r")
            self.clock.advance(JOIN_SECONDS)
            self.assertEqual(self.mode.noted, [])
            if runs:
                self.shows(mark("C"), b"made\r\n", mark("D;0"), PROMPT)
                self.clock.advance(JOIN_SECONDS)
                self.assertIn(b"made\r\n", self.eye.new())
            else:
                self.clock.advance(LINE_SECONDS)
            self.assertEqual(self.mode.noted, ["begin"])
            self.says("So.")
            self.mode.noted.clear()

    def test_what_was_begun_on_the_next_line_is_cleared(self) -> None:
        self.ready()
        self.types(b"# one\r")
        self.shows(PASTING, private("instruction", "# one"), PROMPT)
        self.types(b"rm -rf")
        self.shows(b"rm -rf")
        self.clock.advance(JOIN_SECONDS)
        self.assertTrue(self.pty.typed.endswith(b"rm -rf\x15"))
        self.turn()
        self.plans("allow ls")
        self.assertTrue(self.pty.typed.endswith(b"\x15" + pasted(b"allow ls")))

    def test_the_prompt_is_shown_once_at_the_end(self) -> None:
        self.ready()
        self.shows(PASTING)
        self.instructs("look")
        self.assertEqual(self.eye.new(), PASTING + b"# look\r\n")
        self.plans("allow ls")
        self.runs(b"a\r\n")
        self.assertEqual(self.eye.new(), b"a\r\n")
        self.shows(b"\x1b[K")  # part of the prompt
        self.says("One.")
        self.assertEqual(self.mode.noted[-1], "end")
        self.assertEqual(self.eye.new(), b"$ \x1b[K")
        self.types(b"x")
        self.assertEqual(self.pty.typed[-1:], b"x")


class WorkTests(AgentTestCase):
    """While the agent has the terminal."""

    def setUp(self) -> None:
        super().setUp()
        self.ready()
        self.shows(PASTING)
        self.instructs("look")
        self.eye.new()

    def test_keys_are_the_agents(self) -> None:
        typed = self.pty.typed
        self.types(b"a\r")
        self.assertEqual((self.pty.typed, self.mode.noted[-1]), (typed, "typed a\r"))

    def test_output_of_a_command_goes_everywhere(self) -> None:
        self.plans("allow ls")
        self.shows(b"allow ls\r\n", mark("C"), b"\x1b[1ma\x1b[m\r\n")
        self.assertEqual((self.eye.new(), self.mode.noted[-1]), (b"\x1b[1ma\x1b[m\r\n", "output \x1b[1ma\x1b[m\r\n"))
        self.assertEqual(self.lines.lines(), ["$ # look"])  # the model gets it as the result
        self.assertEqual([each.text for each in self.told if isinstance(each, StepOutput)], ["\x1b[1ma\x1b[m\n"])
        self.shows(mark("D;0"), PROMPT)
        self.says("One.")
        self.assertEqual([(turn.message, turn.answer, turn.error) for turn in self.turns], [("look", "One.", "")])
        self.assertEqual(self.emitted[-1], TurnFinished(turn=1, answer="One.", error="", code=""))

    def test_what_was_typed_to_a_command_and_not_read_is_not_in_front_of_the_next(self) -> None:
        self.plans("allow one", "allow two")
        self.shows(mark("C"), b"go on? ")
        self.agent.type(b"y")
        self.shows(mark("D;0"), PROMPT, b"y")
        self.assertTrue(self.pty.typed.endswith(b"y\x15" + pasted(b"allow two")))
        self.runs(b"")
        self.plans("allow three")
        self.assertTrue(self.pty.typed.endswith(pasted(b"allow two") + pasted(b"allow three")))

    def test_an_interrupt_is_recorded_as_such(self) -> None:
        self.agent.act(Interrupt())
        self.turn()
        self.assertEqual((self.turns[0].error, self.mode.noted), ("cancelled", ["begin", "end"]))
        self.assertEqual(self.emitted[-1], TurnFinished(turn=1, answer="", error="cancelled", code="CANCELLED"))
        self.assertEqual(self.eye.new(), b"$ ")

    def test_the_shell_ends_whatever_the_agent_does(self) -> None:
        self.pty.end(0)
        self.turn()
        self.assertEqual((self.model.cancelled, self.mode.noted), (1, ["begin", "end"]))
        self.assertEqual(self.turns[0].error, "the shell ended")
        self.assertEqual(self.told[-1], InstructionDone(error="the shell ended"))
        self.assertEqual(self.eye.end, ("the shell ended", 0))

    def test_the_shell_ends_while_its_command_runs(self) -> None:
        self.plans("allow exit")
        self.shows(mark("C"), b"bye")
        self.pty.end(7)
        self.turn()
        self.assertEqual((self.mode.noted.count("end"), self.eye.end), (1, ("the shell ended", 7)))
        self.assertEqual(self.turns[0].error, "the shell ended")

    def test_the_shell_ends_while_somebody_is_asked(self) -> None:
        self.plans("ls")
        self.pty.end(0)
        self.turn()
        self.assertEqual((self.escalations.pending(), self.mode.noted.count("end")), ([], 1))
        self.assertEqual(len(self.turns), 1)

    def test_the_last_word_comes_before_the_end(self) -> None:
        said: list[str] = []
        self.front_ends.watch(lambda message: said.append(type(message).__name__))
        self.front_ends.at_end(lambda: said.append("ending"))
        self.pty.end(0)
        self.assertEqual(said, ["InstructionDone", "ending"])


class SuspendTests(AgentTestCase):
    """The user goes back to the shell, and returns."""

    def setUp(self) -> None:
        super().setUp()
        self.ready()
        self.shows(PASTING)
        self.instructs("look")
        self.plans("ls")
        (question,) = [each for each in self.told if isinstance(each, ApprovalRequested)]
        self.number = question.number
        self.eye.new()
        self.agent.suspend()
        self.typed = self.pty.typed

    def come_back(self, text: str = "") -> None:
        """The user types an instruction; the shell's next prompt is still to come."""
        self.types(f"# {text}\r".encode())
        self.shows(b"#\r\n", private("instruction", f"# {text}"))

    def test_the_shell_is_the_users(self) -> None:
        self.assertEqual((self.mode.noted, self.eye.new()), (["begin", "suspend"], b"$ "))
        self.types(b"date\r")
        self.assertEqual(self.pty.typed, self.typed + b"date\r")
        self.runs(b"Tuesday\r\n")
        self.assertEqual(self.eye.new(), b"echo of it\r\nTuesday\r\n$ ")
        self.assertEqual(self.mode.noted, ["begin", "suspend"])

    def test_nothing_is_typed_meanwhile(self) -> None:
        self.approves(self.number)
        self.types(b"vi")
        self.assertEqual(self.pty.typed, self.typed + b"vi")
        self.types(b"\x15")
        self.come_back()
        self.assertNotIn(b"ls", self.pty.typed)  # there is no prompt yet
        self.assertEqual(self.mode.noted[-1], "begin")
        self.shows(PROMPT)
        self.assertTrue(self.pty.typed.endswith(pasted(b"ls")))
        self.runs(b"a\r\n")
        self.says("One.")
        self.assertEqual(self.turns[0].answer, "One.")

    def test_approved_before_the_prompt_is_there(self) -> None:
        self.come_back()
        self.approves(self.number)
        self.assertNotIn(b"ls", self.pty.typed)
        self.shows(PROMPT)
        self.assertTrue(self.pty.typed.endswith(pasted(b"ls")))

    def test_a_word_on_the_way_back_counts_before_anything_runs(self) -> None:
        self.approves(self.number)
        self.come_back("not that")
        self.shows(PROMPT)
        self.assertNotIn(b"ls", self.pty.typed)
        (completed,) = [each for each in self.told if isinstance(each, StepCompleted)]
        self.assertEqual(completed.outcome, StepOutcome.NOT_RUN)
        request = self.model.requests[1]
        self.assertIn("not that", last_words(request))
        self.assertEqual(problems(request), [])

    def test_more_than_one_word(self) -> None:
        self.types(b"# not that\r# but this\r")
        self.shows(private("instruction", "# not that"), PROMPT, private("instruction", "# but this"), PROMPT)
        self.assertIn("not that", last_words(self.model.requests[1]))
        self.says("So.")
        self.assertEqual(self.mode.noted[-1], "end")

    def test_the_shell_ends_meanwhile(self) -> None:
        self.approves(self.number)
        self.pty.end(0)
        self.turn()
        self.assertEqual((self.mode.noted, self.eye.end), (["begin", "suspend", "end"], ("the shell ended", 0)))
        self.assertEqual(self.turns[0].error, "the shell ended")

    def test_not_while_a_command_is_typed_or_runs(self) -> None:
        self.come_back()
        self.shows(PROMPT)
        self.approves(self.number)
        self.agent.suspend()
        self.shows(mark("C"))
        self.agent.suspend()
        self.shows(mark("D;0"))
        self.agent.suspend()
        self.assertEqual(self.mode.noted, ["begin", "suspend", "begin"])
        self.shows(PROMPT)
        self.agent.suspend()
        self.assertEqual(self.mode.noted[-1], "suspend")


class TakenOverTests(AgentTestCase):
    """The shell was relayed before."""

    def relay(self, output: bytes, waiting: tuple[bytes | Mark, ...] = (), *, ahead: bytes = b"") -> None:
        """It wrote this, and the user has seen it."""
        reader = MarkReader(NONCE)
        shown = tuple(reader.feed(output))
        self.relayed = replace(self.relayed, streams=ShellStreams(reader, ahead=ahead), shown=shown, waiting=waiting)

    def test_what_was_shown_is_known_and_not_shown_again(self) -> None:
        self.relay(b"hi\r\n" + private("cwd", "/tmp") + PROMPT + mark("A")[:7])
        self.start()
        self.assertEqual((self.eye.new(), self.wrapped.directory), (b"", "/tmp"))
        self.clock.advance(MARKS_SECONDS * 2)
        self.assertEqual((self.lines.lines(), self.emitted), (["hi", "$"], []))
        self.shows(mark("A")[7:] + b"next")
        self.assertEqual(self.eye.new(), b"next")

    def test_an_instruction_that_was_typed(self) -> None:
        self.relay(PASTING + PROMPT + b"# look\r\n", (InstructionTyped("look"), *MarkReader(NONCE).feed(b"x" + PROMPT)))
        self.start()
        self.clock.advance(JOIN_SECONDS)
        self.assertEqual(self.mode.noted, ["begin"])
        self.assertTrue(last_words(self.model.requests[0]).startswith("look\n"))

    def test_keys_that_the_shell_did_not_take(self) -> None:
        self.relayed = replace(self.relayed, streams=ShellStreams(MarkReader(NONCE), ahead=b"l"), untyped=b"l")
        self.start()
        self.types(b"s\r")
        self.assertEqual((self.pty.typed, self.wrapped.ahead), (b"ls\r", b""))

    def test_line_begun_before_is_typed_again_after_the_instruction(self) -> None:
        waiting = (InstructionTyped("look"), *MarkReader(NONCE).feed(PROMPT))
        self.relay(PASTING + PROMPT + b"# look\r\n", waiting, ahead=b"ec")
        self.start()
        self.clock.advance(JOIN_SECONDS)
        self.model.say("done")
        self.assertEqual(self.pty.typed, KILL_LINE + b"ec")

    def test_without_marks_an_instruction_that_has_begun(self) -> None:
        self.relayed.streams.fallback.feed(b"## lo", True)
        self.wrapped.integrated = False
        self.start()
        self.types(b"ok\r")
        self.clock.advance(JOIN_SECONDS)
        self.assertEqual(self.mode.noted, ["begin"])
