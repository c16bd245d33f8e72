"""Nothing that a person types is lost, and nothing that is said to them."""

from __future__ import annotations

from ironcurtain.llm.model import ModelError
from ironcurtain.session.events import Notice
from ironcurtain.shell import messages
from ironcurtain.shell.announcements import LOOK_SECONDS
from ironcurtain.shell.execution import CLEARED
from ironcurtain.shell.messages import InstructionDone, Note, Steer
from ironcurtain.shell.streams import AHEAD_LIMIT
from ironcurtain.shell.terminal_mode import Left
from ironcurtain.shell.typed_instructions import JOIN_SECONDS
from ironcurtain.shell.wrapped import MARKS_SECONDS
from ironcurtain.shell_integration.typed_marks import UNRECORDED
from ironcurtain.terminal.key_reader import PASTE_SECONDS
from tests.shell.model import last_words, problems
from tests.shell.wrapped import PASTING, PROMPT, AgentTestCase, mark, private


class WordTests(AgentTestCase):
    """Words for the model while it works."""

    def setUp(self) -> None:
        super().setUp()
        self.ready()
        self.shows(PASTING)
        self.instructs("look")

    def test_while_it_writes_its_answer_they_come_next(self) -> None:
        self.agent.act(Note(text="only the first"))
        self.agent.act(Steer(plan_id="old", context="and quickly"))
        self.says("There are two.")
        self.assertIn("only the first\nand quickly", last_words(self.model.requests[1]))
        self.says("One.")
        self.assertEqual(self.turns[0].answer, "One.")

    def test_while_a_plan_runs_all_of_them_come_with_the_results(self) -> None:
        self.plans("allow one", "allow two")
        self.agent.act(Steer(plan_id="", context="no more"))
        self.agent.act(Steer(plan_id="", context="really"))
        self.runs(b"")
        self.assertIn("no more\nreally", last_words(self.model.requests[1]))
        self.assertEqual(problems(self.model.requests[1]), [])

    def test_what_the_model_could_not_be_told_is_said(self) -> None:
        self.agent.act(Steer(plan_id="", context="only the first"))
        self.model.fail(ModelError("network", "it broke"))
        self.turn()
        notices = [each.text for each in self.told if isinstance(each, messages.Notice)]
        self.assertEqual(notices, ["the model was not told: only the first"])
        self.assertIsInstance(self.told[-1], InstructionDone)
        self.instructs("again")
        self.says("So.")
        self.assertEqual(self.turns[1].answer, "So.")

    def test_history_has_commands_of_the_agent_only_if_the_settings_say_so(self) -> None:
        typed = [self.wrap(history=history).line("ls") for history in (True, False)]
        self.assertEqual(typed, ["ls", f"{UNRECORDED}ls"])

    def test_what_no_command_read_is_said_to_be_off_the_line(self) -> None:
        cleared = messages.Notice(text=CLEARED)
        self.plans("allow one", "allow two")
        self.shows(mark("C"))
        self.agent.type(b"y")
        self.assertNotIn(cleared, self.told)
        self.shows(mark("D;0"), PROMPT, b"y")
        self.assertEqual(self.told.count(cleared), 1)

    def test_a_note_that_was_not_sent_is_on_the_shells_line(self) -> None:
        self.mode.left = Left(unsent="and the")
        self.says("One.")
        self.assertTrue(self.pty.typed.endswith(b"# and the"))

    def test_a_paste_that_goes_on_is_whole_for_the_shell(self) -> None:
        self.mode.left = Left(unread=b"\x1b[200~one\r")
        self.says("One.")
        self.agent.write(b"two\x1b[201~")
        self.assertTrue(self.pty.typed.endswith(b"\x1b[200~one\rtwo\x1b[201~"))

    def test_keys_that_were_not_taken_are_said(self) -> None:
        self.mode.left = Left(untaken=b"ls\r")
        self.says("One.")
        self.assertIn(b"typed while the agent worked, and not taken: ls\\r", self.eye.new())
        self.assertFalse(self.pty.typed.endswith(b"ls\r"))


class AheadTests(AgentTestCase):
    """Keys for the shell while it reads an instruction."""

    def begin(self, ahead: bytes) -> None:
        """They are typed behind it."""
        self.ready()
        self.types(b"# one\r")
        self.shows(PASTING, private("instruction", "# one"), PROMPT)
        self.types(ahead)
        self.clock.advance(JOIN_SECONDS)
        self.turn()
        self.assertTrue(self.pty.typed.endswith(b"\x15"))

    def test_they_are_on_its_line_afterwards(self) -> None:
        self.begin(b"make tes")
        self.says("So.")
        self.assertTrue(self.pty.typed.endswith(b"\x15make tes"))

    def test_a_paste_ends_before_the_agent_begins(self) -> None:
        self.ready()
        self.types(b"# one\r")
        self.shows(PASTING, private("instruction", "# one"), PROMPT)
        self.types(b"\x1b[200~make\rx")
        self.clock.advance(10 * JOIN_SECONDS)
        self.turn()
        self.types(b"y\x1b[201~")
        self.assertTrue(self.pty.typed.endswith(b"\x1b[200~make\rxy\x1b[201~"))
        self.clock.advance(JOIN_SECONDS)
        self.turn()
        self.assertTrue(self.pty.typed.endswith(b"\x15"))

    def test_a_long_one_is_not_typed_again_without_its_begin(self) -> None:
        self.begin(b"rm -r build; " + b"x" * AHEAD_LIMIT)
        self.says("So.")
        self.assertTrue(self.pty.typed.endswith(b"\x15"))
        self.assertIn(b"Ctrl-Y brings it back", self.eye.new())

    def test_the_agent_begins_although_the_end_of_a_paste_does_not_come(self) -> None:
        self.ready()
        self.types(b"# one\r")
        self.shows(PASTING, private("instruction", "# one"), PROMPT)
        self.types(b"\x1b[200~make\rx")
        self.clock.advance(PASTE_SECONDS)
        self.types(b"\x03")
        self.shows(PROMPT)
        self.clock.advance(JOIN_SECONDS)
        self.turn()
        self.assertEqual(self.mode.noted, ["begin"])

    def test_with_a_note_they_are_said_to_be_in_the_kill_ring(self) -> None:
        self.begin(b"make tes")
        self.mode.left = Left(unsent="and the")
        self.says("So.")
        self.assertTrue(self.pty.typed.endswith(b"\x15# and the"))
        self.assertIn(b"Ctrl-Y brings it back", self.eye.new())

    def test_they_are_there_when_the_user_goes_back(self) -> None:
        self.begin(b"make tes")
        self.agent.suspend()
        self.assertTrue(self.pty.typed.endswith(b"\x15make tes"))
        self.says("So.")
        self.assertEqual(self.pty.typed.count(b"make tes"), 2)

    def test_edited_ones_are_said_to_be_in_the_kill_ring(self) -> None:
        self.begin(b"make\x01x")
        self.says("So.")
        self.assertIn(b"Ctrl-Y brings it back", self.eye.new())

    def test_the_shell_ends_meanwhile(self) -> None:
        self.begin(b"make tes")
        typed = self.pty.typed
        self.pty.end(0)
        self.assertEqual(self.pty.typed, typed)


class TogetherTests(AgentTestCase):
    """Keys that come in one read with the one that gives the shell back, as in a paste that is not marked."""

    def left(self, rest: bytes) -> tuple[bytes, bytes]:
        """:returns: what the shell gets of them, and what is said."""
        self.ready()
        self.shows(PASTING)
        self.instructs("look")
        before = self.pty.typed
        self.eye.new()
        self.agent.suspend(rest)
        return self.pty.typed[len(before) :], self.eye.new()

    def test_they_run_nothing(self) -> None:
        typed, said = self.left(b"rm -r x\rls\r")
        self.assertEqual(typed, b"rm -r x")
        self.assertIn(b"typed while the agent worked, and not taken: \\rls\\r", said)

    def test_characters_are_on_the_line(self) -> None:
        self.assertEqual(self.left("gr\u00fc\u00dfe".encode()), ("gr\u00fc\u00dfe".encode(), b"$ "))

    def test_keys_with_control_are_not_pressed(self) -> None:
        for key in (b"\n", b"\t", b"\x03", b"\x04", b"\x0f", b"\x7f", b"\x1bOA", b"\x1b[A", b"\x1b\r"):
            with self.subTest(key):
                self.setUp()
                self.assertEqual(self.left(b"ls" + key + b"x")[0], b"ls")

    def test_pastes_that_are_marked_are_whole(self) -> None:
        for paste in (b"\x1b[200~a\rb\x1b[201~c", b"\x1b[200~a\rb"):
            with self.subTest(paste):
                self.setUp()
                self.assertEqual(self.left(paste)[0], paste)


class BackInTheShellTests(AgentTestCase):
    """What comes while the user has left the agent for the shell."""

    def setUp(self) -> None:
        super().setUp()
        self.ready()
        self.shows(PASTING)
        self.instructs("look")
        self.agent.suspend()
        self.eye.new()

    def test_an_answer_is_announced_above_the_prompt(self) -> None:
        self.shows(b"ls -")
        self.says("One.")
        said = self.eye.new()
        self.assertIn(b"the agent has answered: # shows it", said)
        self.assertTrue(said.endswith(b"\r\n$ ls -"), said)

    def test_a_question_is_announced(self) -> None:
        self.plans("ls\n-l")
        self.assertIn(b"the agent asks whether to run 'ls", self.eye.new())

    def test_steps_that_wait_for_the_terminal_are_announced(self) -> None:
        self.plans("allow ls")
        self.assertIn(b"the agent has a plan of 1 step, and waits for the terminal: # lets it go on", self.eye.new())

    def test_an_error_is_announced(self) -> None:
        self.model.fail(ModelError("network", "it broke"))
        self.turn()
        self.assertIn(b"the agent has stopped: it broke", self.eye.new())

    def test_nothing_is_said_within_a_command(self) -> None:
        self.shows(b"vi\r\n", mark("C"), b"full screen")
        self.eye.new()
        self.says("One.")
        self.clock.advance(LOOK_SECONDS * 3)
        self.assertEqual(self.eye.new(), b"")
        self.shows(mark("D;0"), PROMPT)
        self.assertEqual(self.eye.new().count(b"the agent has answered"), 1)
        self.clock.advance(LOOK_SECONDS * 3)
        self.assertEqual(self.eye.new(), b"")

    def test_the_sign_alone_shows_it(self) -> None:
        self.says("One.")
        self.mode.noted.clear()
        self.types(b"#\r")
        self.shows(private("instruction", "#"), PROMPT)
        self.clock.advance(JOIN_SECONDS)
        self.assertEqual(self.mode.noted, ["begin", "end"])
        self.assertEqual(len(self.model.requests), 1)


class LateMarksTests(AgentTestCase):
    """A shell whose files take longer than it has."""

    def told_of(self) -> list[str]:
        return [each.text for each in self.emitted if isinstance(each, Notice)]

    def test_what_was_said_is_taken_back(self) -> None:
        self.start()
        self.clock.advance(MARKS_SECONDS)
        self.assertIn("this shell shows no marks", self.told_of()[0])
        self.shows(PROMPT)
        self.assertIn("an instruction begins with # as usual", self.told_of()[1])
        self.instructs("look")
        self.says("One.")
        self.assertEqual(self.turns[0].answer, "One.")
        self.assertEqual(len(self.told_of()), 2)

    def test_without_marks_a_command_of_which_no_end_is_shown_holds_nothing_up(self) -> None:
        self.start()
        self.shows(mark("C"))
        self.eye.new()
        self.clock.advance(MARKS_SECONDS)
        self.assertIn(b"begin an instruction with ##", self.eye.new())
