"""A conversation moves from one terminal to another."""

from __future__ import annotations

import time

from tests.cli.cases import DaemonCase, ProductCase
from tests.product import Command, until
from tests.tmux import Tmux

ANSWERS = ({"text": "first answer"}, {"text": "second answer"})


def talk(process: Command, message: str, answer: str) -> None:
    """Say something, and wait until the answer is there."""
    assert process.stdin is not None
    process.stdin.write(f"{message}\n")
    process.stdin.flush()
    until(process.stdout, answer)


class DaemonJoiningTests(DaemonCase):
    def test_it_is_left_and_gone_on_with_elsewhere(self) -> None:
        first = self.product.start("start", "--backend", self.product.script(*ANSWERS))
        talk(first, "hello", "first answer")
        _, err = first.communicate("/detach\n")
        self.assertEqual(first.returncode, 0, err)
        self.assertIn("Session 1 continues. To attach again: ironcurtain attach 1", err)
        second = self.product.run("attach", stdin="again\n")
        self.assertEqual((second.returncode, second.stdout), (0, "second answer\n"), second.stderr)
        self.assertLess(second.stderr.index("> hello\n"), second.stderr.index("first answer\n"))
        self.assertEqual([session["turns"] for session in self.product.json("sessions")], [2])
        self.assertEqual([record["mode"] for record in self.product.audit() if record["kind"] == "attach"], ["drive"])
        self.assertEqual(self.product.run("stop", "last").returncode, 0)

    def test_what_was_joined_outlives_the_terminal_it_began_at(self) -> None:
        first = self.product.start("start", "--backend", self.product.script(*ANSWERS))
        talk(first, "hello", "first answer")
        second = self.product.start("attach", "1")
        until(second.stderr, "first answer")
        first.kill()
        first.communicate()
        talk(second, "again", "second answer")
        _, err = second.communicate("/quit\n")
        self.assertEqual(second.returncode, 0, err)
        self.assertIn("Session 1 continues.", err)
        self.assertEqual(self.product.run("stop", "last").returncode, 0)

    def test_whoever_began_it_may_leave_it_to_others(self) -> None:
        first = self.product.start("start", "--backend", self.product.script(*ANSWERS))
        talk(first, "hello", "first answer")
        second = self.product.start("attach", "1")
        until(second.stderr, "first answer")
        _, err = first.communicate("/quit\n")
        self.assertIn("Session 1 continues.", err)
        self.assertEqual(self.product.run("stop", "last").returncode, 0)
        _, err = second.communicate()
        self.assertEqual(second.returncode, 1)
        self.assertIn("the session is closed: ended by local:", err)
        self.assertNotIn("continues", err)

    def test_a_single_task_is_left(self) -> None:
        backend, gate = self.product.held("at last")
        terminal = Tmux(self.product, 100, 30)
        self.addCleanup(terminal.close)
        program = self.product.command()[0]
        terminal.type(f"{program} start --backend '{backend}' 'take your time'; echo sta''tus $?")
        terminal.until(lambda: [s["state"] for s in self.product.sessions()] == ["processing"])
        terminal.type("/detach")
        self.assertIn("Session 1 continues.", terminal.wait("^status 0$"))
        gate.touch()
        terminal.until(lambda: [s["state"] for s in self.product.sessions()] == ["ready"])
        self.assertIn("at last\n", self.product.run("attach", "1", stdin="").stderr)
        self.assertEqual(self.product.run("stop", "last").returncode, 0)


class WatchingTests(DaemonCase):
    """``observe`` of a conversation."""

    def test_lines_on_standard_output_until_it_ends(self) -> None:
        first = self.product.start("start", "--backend", self.product.script(*ANSWERS))
        talk(first, "hello", "first answer")
        watching = self.product.start("observe")
        until(watching.stdout, "first answer")
        talk(first, "again", "second answer")
        until(watching.stdout, "second answer")
        first.communicate("/quit\n")
        out, err = watching.communicate()
        self.assertEqual((watching.returncode, err), (0, ""))
        self.assertIn("the session is closed", out)

    def test_at_a_terminal_what_is_typed_goes_nowhere(self) -> None:
        terminal = Tmux(self.product, 100, 30)
        self.addCleanup(terminal.close)
        backend, gate = self.product.held("at last")
        first = self.product.start("start", "--backend", backend)
        assert first.stdin is not None
        first.stdin.write("take your time\n")
        first.stdin.flush()
        terminal.type(f"{self.product.command()[0]} observe 1; echo sta''tus $?")
        self.assertIn("take your time", terminal.wait("thinking [0-9]+ s"))
        terminal.type("/approve 1")
        self.assertIn("to take part: ironcurtain attach 1", terminal.wait("this only shows the session"))
        gate.touch()
        terminal.wait("at last")
        terminal.keys("C-d")
        terminal.wait("^status 0$")
        terminal.until(lambda: [(s["state"], s["turns"]) for s in self.product.sessions()] == [("ready", 1)])
        first.communicate("/quit\n")


class OwnProcessTests(ProductCase):
    def setUp(self) -> None:
        super().setUp()
        self.terminal = Tmux(self.product, 100, 40)
        self.addCleanup(self.terminal.close)

    def talk(self) -> None:
        """Begin a conversation at the terminal's shell."""
        program = self.product.command()[0]
        self.terminal.type(f"{program} start --backend {self.product.script(*ANSWERS)}; echo sta''tus $?")
        self.terminal.wait("/help lists")

    def test_it_is_left_and_come_back_to(self) -> None:
        terminal = self.terminal
        self.talk()
        terminal.type("hello")
        terminal.wait("first answer")
        terminal.type("/detach")
        terminal.wait("Enter returns to it")
        second = self.product.run("attach", stdin="again\n")
        self.assertEqual((second.returncode, second.stdout), (0, "second answer\n"), second.stderr)
        terminal.keys("Enter")
        terminal.wait("second answer")
        terminal.type("/detach")
        terminal.until(lambda: terminal.text.count("Enter returns to it") == 2)
        self.assertEqual(self.product.run("stop", "last").returncode, 0)
        self.assertIn("Session 1 was closed: ended by local:", terminal.wait("^status 1$"))

    def test_in_the_background_it_goes_on(self) -> None:
        terminal = self.terminal
        terminal.type("bash --norc")
        self.talk()
        terminal.type("/detach")
        terminal.wait("Enter returns to it")
        terminal.keys("C-z")
        terminal.wait("Stopped")
        terminal.type("bg; echo ag''ain")
        terminal.wait("^again")
        second = self.product.run("attach", "1", stdin="hello\n")
        self.assertEqual((second.returncode, second.stdout), (0, "first answer\n"), second.stderr)
        terminal.type("clear; fg")
        terminal.wait("start --backend")
        terminal.keys("Enter")
        terminal.wait("first answer")
        terminal.type("/quit")
        terminal.until(lambda: not self.product.sessions())
        self.assertIn("To resume session 1: ironcurtain start --resume 1", terminal.wait("ironcurtain logs 1"))

    def test_it_ends_with_ctrl_c(self) -> None:
        terminal = self.terminal
        self.talk()
        terminal.type("/detach")
        terminal.wait("Enter returns to it")
        terminal.keys("C-c")
        terminal.wait("status 130$")
        while "end" not in [record["kind"] for record in self.product.audit()[-2:]]:
            time.sleep(0.02)
