"""``ironcurtain escalation-listener`` as a person uses it: in a real terminal, with a real session that asks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.verification import signed_heads
from tests.product import LIMIT, Command, Product, until
from tests.tmux import Tmux

OUTSIDE = {
    "code": "try:\n    print(filesystem.read_text_file('~/secret.txt'))\nexcept PermissionError as e:\n    print(e)"
}
DONE = {"text": "All done."}


class ListenerTests(SynchronousTestCase):
    """Each test has a home and a terminal of its own."""

    def setUp(self) -> None:
        self.product = Product()
        (self.product.person / "secret.txt").write_text("the moon is far")
        self.addCleanup(self.finish)
        self.terminal = Tmux(self.product)
        self.addCleanup(self.terminal.close)
        self.line = " ".join(self.product.command("escalation-listener"))

    def finish(self) -> None:
        self.assertEqual([line for line in self.product.close() if "tmux" not in line], [])

    def ask(self) -> Command:
        """:returns: a session in another terminal, that is about to ask."""
        process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE))
        assert process.stdin is not None
        process.stdin.write("look outside\n")
        process.stdin.flush()
        return process

    def test_a_call_is_approved_by_key_and_the_terminal_is_as_before(self) -> None:
        self.terminal.keys("stty -g > before; echo rea''dy", "Enter")
        self.terminal.wait("^ready")
        self.terminal.keys(f"{self.line}; echo st''atus $?; stty -g > after", "Enter")
        self.terminal.wait("no sessions")
        process = self.ask()
        text = self.terminal.wait("digest ")  # the last part that is drawn
        for part in (
            "ESCALATION 1, ",
            "filesystem.read_text_file",
            "path = ",
            "secret.txt",
            "session 1, builtin",
            "rule ",
            "left",
        ):
            self.assertIn(part, text)
        self.terminal.until(lambda: "1 waiting" in self.terminal.ask("display-message", "-p", "#{pane_title}"))
        self.terminal.until(lambda: self.terminal.rang)
        self.terminal.keys("a")
        self.terminal.wait(r"Approve 1, filesystem.read_text_file\? y/Esc")
        self.terminal.wait("y yes .*/ command$")  # until keys count, a sign stands after them
        self.terminal.keys("y")
        self.terminal.wait("escalation 1 was approved by local:")
        until(process.stdout, "All done.")
        process.communicate("/quit\n")
        text = self.terminal.wait(r"(?s)no sessions.*session 1 has ended, audit head \d+ [0-9a-f]{16}")
        (log,) = self.product.home.glob("sessions/*/audit.jsonl")
        heads = [f"audit head {head.sequence} {head.head[:16]}" for head in signed_heads(log)]
        self.assertTrue(any(head in text for head in heads), text)
        self.terminal.keys("q")
        self.terminal.wait("status 0\n[#$]")  # after what is typed before the prompt, output would follow that
        modes = self.terminal.ask("display-message", "-p", "#{alternate_on}#{mouse_any_flag}#{cursor_flag}")
        self.assertEqual(modes.strip(), "001")
        before, after = (self.product.project / name for name in ("before", "after"))
        self.terminal.keys("echo do''ne", "Enter")
        self.terminal.wait("^done")
        self.assertEqual(before.read_text(), after.read_text())
        (decision,) = [record for record in self.product.audit() if record["kind"] == "decision"]
        self.assertEqual(decision["outcome"], "approved")

    def test_t_attaches_to_a_conversation_and_the_console_comes_back(self) -> None:
        process = self.ask()
        self.terminal.keys(f"{self.line}; echo st''atus $?", "Enter")
        self.terminal.wait("1 waiting")
        self.terminal.type("/sessions")
        self.terminal.wait("Enter open")
        self.terminal.keys("Enter")
        self.terminal.wait("t attach")
        self.terminal.keys("t")
        self.terminal.wait("or /deny 1 within")
        self.terminal.type("/quit")
        self.terminal.wait("d deny  Tab lists")
        self.terminal.keys("q")
        self.terminal.wait("status 0")
        self.assertEqual(self.product.run("deny", "1").returncode, 0)
        process.communicate("/quit\n")

    def test_a_second_listener_says_that_there_is_one(self) -> None:
        self.terminal.keys(self.line, "Enter")
        self.terminal.wait("no sessions")
        self.terminal.run("new-window", "-c", str(self.product.project), "/bin/sh")
        self.terminal.keys(f"{self.line}; echo st''atus $?", "Enter")
        text = self.terminal.wait("status 69")
        self.assertIn("another escalation listener is running (process", text)
        first = int((self.product.home / "escalation-listener.lock").read_text())
        os.kill(first, 15)
        self.terminal.until(lambda: not Path(f"/proc/{first}").exists())

    def test_a_signal_gives_the_terminal_back(self) -> None:
        self.terminal.keys(f"stty -g > before; {self.line}; echo st''atus $?; stty -g > after; echo do''ne", "Enter")
        self.terminal.wait("no sessions")
        pid = int((self.product.home / "escalation-listener.lock").read_text())
        os.kill(pid, 15)
        self.terminal.wait("status 143")
        self.terminal.wait("^done")
        before, after = (Path(self.product.project / name).read_text() for name in ("before", "after"))
        self.assertEqual(before, after)
        self.assertEqual(self.terminal.ask("display-message", "-p", "#{alternate_on}").strip(), "0")

    def test_a_kill_gives_the_terminal_back(self) -> None:
        self.terminal.type(f"stty -g > before; {self.line}; status=$?")
        self.terminal.wait("no sessions")
        os.kill(int((self.product.home / "escalation-listener.lock").read_text()), 9)
        self.terminal.until(lambda: self.terminal.flags[2:] == ("0", "0", "0", "0", "1", "1"))
        # What the shell said at once may have been on the screen that is gone.
        self.terminal.type("clear; stty -g > after; echo st''atus $status")
        self.terminal.wait("^status 137")
        before, after = (Path(self.product.project / name).read_text() for name in ("before", "after"))
        self.assertEqual(before, after)


class RefusalTests(SynchronousTestCase):
    """Where it cannot draw, it says so in one sentence."""

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(self.product.close)

    def test_without_a_terminal(self) -> None:
        done = self.product.run("escalation-listener")
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertRegex(done.stderr, r"^ironcurtain: escalation-listener needs a terminal: use .*instead\n$")

    def test_on_a_terminal_that_cannot_be_drawn_on(self) -> None:
        line = " ".join(self.product.command("escalation-listener"))
        done = subprocess.run(
            ["script", "-qec", line, "/dev/null"],
            env={**self.product.environ, "TERM": "dumb"}, text=True, capture_output=True, check=False, timeout=LIMIT,
        )  # fmt: skip
        self.assertEqual(done.returncode, 64)
        self.assertIn("cannot draw on this terminal (TERM=dumb)", done.stdout)
