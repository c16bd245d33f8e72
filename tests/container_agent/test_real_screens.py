"""
An agent's own screen as people use it: the installed commands in real terminals (tmux), Claude Code in the real Engine,
OpenSSH's client, and only the model played by a server on this machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from pathlib import Path
from typing import Any

from tests.container_agent.terminals import PROMPT, SIGN, TerminalCase
from tests.container_agent.test_real_agents import (
    CLAUDE,
    CODEX,
    GEMINI,
    OPENCODE,
    PATIENCE,
    Agent,
    RealAgentCase,
    call,
    text,
)
from tests.ssh_daemon import SshDaemon
from tests.tmux import Tmux


class ScreenCase(TerminalCase, RealAgentCase):
    """A person with several terminals."""

    def interrupt(self, terminal: Tmux, name: str) -> None:
        """
        End a command's agent by Ctrl-C, of which it wants two within a second: press it as long as the agent is there.
        One more may reach the shell, which is to take no note of it.
        """

        def over() -> bool:
            if re.search(f"{PROMPT}|Ctrl-C again", shown := terminal.text):
                terminal.keys("C-c")
            return re.search(f"^over {name}$", shown, re.MULTILINE) is not None

        terminal.until(over)

    def same(self, one: Tmux, other: Tmux) -> None:
        """Two terminals show the same, cell by cell, once nothing moves any more."""
        end = time.monotonic() + PATIENCE
        while (left := (one.cells, one.flags)) != (right := (other.cells, other.flags)):
            if time.monotonic() > end:
                self.assertEqual(left, right)
            time.sleep(0.1)

    def session(self) -> dict[str, Any]:
        """:returns: how the only session is described on disk."""
        (path,) = self.product.home.glob("sessions/*/session.json")
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def over(self) -> None:
        """All of it has ended in order, which may be a moment after the terminals were told."""
        end = time.monotonic() + PATIENCE
        while not ((head := self.session()["head"]) and head["final"]):
            self.assertLess(time.monotonic(), end, "the session did not end")
            time.sleep(0.1)
        self.assertTrue(self.records("end"))
        self.assertEqual(self.containers(), [])


class AloneTests(ScreenCase):
    def test_without_a_daemon(self) -> None:
        self.play(CLAUDE)
        first, second = self.terminal(), self.terminal()

        # A call is put before a person, who decides in another terminal.
        self.run_in(first, "ironcurtain start --pty", "first")
        first.wait(PROMPT)
        self.greet(first)
        self.stub.add(call("filesystem__read_text_file", path="~/secret.txt"), text("All ", "done."))
        self.say(first, "Read the secret")
        (escalation,) = self.waiting()
        self.assertEqual(escalation["label"], "claude-code: interactive")
        first.wait("waiting for a person to decide")
        first.until(lambda: first.rang)
        done = self.product.run("approve", str(escalation["number"]), "--digest", escalation["digest"])
        self.assertEqual(done.returncode, 0, done.stderr)
        first.wait("All done")

        # Somebody attaches from another process, and sees what a terminal shows that was there all the time.
        self.run_in(second, "ironcurtain attach 1", "attached")
        second.wait("All done")
        self.same(first, second)
        second.keys("-l", "typed here")
        first.wait(rf"{SIGN}\styped here")
        self.same(first, second)
        second.resize(80, 24)
        first.wait("^─{80}$")
        viewer = self.pid_of("ironcurtain.cli attach 1")
        os.kill(viewer, signal.SIGKILL)
        self.assertEqual(self.killed(second, "attached"), 137)

        # One who looks on changes nothing, and leaves.
        self.run_in(second, "ironcurtain observe 1", "observing")
        second.wait("typed here")
        second.keys("-l", "unheard")
        second.read()
        second.keys("C-]", "d")
        self.assertEqual(self.ended(second, "observing"), 0)
        self.assertNotIn("unheard", first.text)

        # Over SSH, through the daemon, to the process that owns the session.
        daemon = SshDaemon(self, self.product, "attach", "view")
        self.run_in(second, shlex.join(daemon.ssh("attach", "-t")) + " attach 1", "remote")
        second.wait("typed here")
        second.keys("-l", " and there")
        first.wait("typed here and there")
        second.keys("C-\\")
        self.assertEqual(self.ended(second, "remote"), 0)
        self.assertIn("detached; it continues", second.text)
        self.run_in(second, shlex.join(daemon.ssh("view", "-t")) + " attach 1", "refused")
        self.assertEqual(self.ended(second, "refused"), 77)

        # Its own terminal is left and comes back; SIGTERM ends everything.
        first.keys("C-]", "d")
        first.wait("runs in this process, and ends with it")
        first.keys("Enter")
        first.wait("typed here and there")
        os.kill(self.pid_of("ironcurtain.cli start --pty"), signal.SIGTERM)
        self.assertEqual(self.ended(first, "first"), 143)
        self.assertEqual(self.containers(), [])
        described = self.session()
        self.assertEqual((described["state"], described["status"], described["terminal"]), ("closed", 143, True))
        attached = [(record["by"].partition(":")[0], record["mode"]) for record in self.records("attach")]
        wanted = [("local", "drive"), ("local", "drive"), ("local", "observe"), ("attach", "drive")]
        self.assertEqual(attached, wanted)
        self.assertRecorded("escalation 1: filesystem.read_text_file", "model request 1", "filesystem.read_text_file")

    def assertRecorded(self, *marks: str) -> None:
        """The recording shows what was drawn, marks what happened, and hides what was typed."""
        (path,) = self.product.home.glob("sessions/*/recording.cast")
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        head, *lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual((head["width"], head["height"]), (100, 30))
        said = " | ".join(data for _, kind, data in lines if kind == "m")
        for mark in marks:
            self.assertIn(mark, said)
        # A program that draws over what was there may move the cursor in place of the blank.
        self.assertRegex("".join(data for _, kind, data in lines if kind == "o"), r"All(?: |\x1b\[\d+[CG])done\.")
        self.assertEqual({data for _, kind, data in lines if kind == "i"}, {"*"})

    def pid_of(self, command: str) -> int:
        """:returns: the process of a command of ours."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
                environ = (path.parent / "environ").read_bytes()
            except OSError:
                continue
            line = b" ".join(words).decode("utf-8", "replace").strip()
            if line.endswith(command) and f"HOME={self.product.person}\0".encode() in environ and b"python" in words[0]:
                return int(path.parent.name)
        raise self.fail(f"{command} does not run")


class LeavingTests(ScreenCase):
    """A session in the command's own process ends with it, whatever becomes of its terminal."""

    def begin(self) -> Tmux:
        self.play(CLAUDE)
        terminal = self.terminal()
        self.run_in(terminal, "ironcurtain start --pty", "first")
        terminal.wait(PROMPT)
        return terminal

    def left(self) -> Tmux:
        """:returns: one whose session goes on without it."""
        terminal = self.begin()
        terminal.keys("C-]", "d")
        terminal.wait("runs in this process, and ends with it")
        return terminal

    def close(self, terminal: Tmux) -> None:
        """Close its window."""
        terminal.run("new-window", "-d")  # else all of tmux ends
        terminal.run("kill-window")

    def test_the_window_is_closed(self) -> None:
        self.close(self.begin())
        self.over()

    def test_so_is_one_that_was_left(self) -> None:
        self.close(self.left())
        self.over()

    def test_ctrl_c_ends_one_that_was_left(self) -> None:
        terminal = self.left()
        terminal.keys("C-c")
        self.assertEqual(self.ended(terminal, "first"), 130)
        self.over()


class OtherAgentsTests(ScreenCase):
    """Screens of the others: a task is given, a call waits for a person, and the answer is seen."""

    def test_opencode(self) -> None:
        self.shows(OPENCODE)

    def test_codex(self) -> None:
        self.shows(CODEX)

    def test_gemini(self) -> None:
        self.shows(GEMINI)

    def shows(self, agent: Agent) -> None:
        self.play(agent)
        terminal = self.terminal()
        self.read_secret(terminal, agent)
        self.stop(terminal)


class DaemonTests(ScreenCase):
    def test_with_a_daemon(self) -> None:
        self.play(CLAUDE, text("First ", "done."), text("More ", "done."))
        daemon = SshDaemon(self, self.product, "admin", "view")
        first, second = self.terminal(), self.terminal()

        # It begins with its task, and goes on in the daemon when it is left.
        self.run_in(first, "ironcurtain start --pty -- '-x $(echo no) \"task\"'", "first")
        first.wait("First done")
        self.assertIn('-x $(echo no) "task"', first.text)
        first.keys("C-]", "d")
        self.assertEqual(self.ended(first, "first"), 0)
        self.assertIn("\nSession 1 continues. To attach again: ironcurtain attach 1", first.text)  # not on its screen

        # It is looked at over SSH by two at once, one of whom may only look; sizes follow the one who drives.
        self.run_in(first, f"trap : INT; {shlex.join(daemon.ssh('admin', '-t'))} attach 1", "driving")
        first.wait("First done")
        self.run_in(second, shlex.join(daemon.ssh("view", "-t")) + " observe 1", "observing")
        second.wait("First done")
        self.same(first, second)
        first.resize(90, 20)
        second.wait("^─{90} *$")
        second.keys("-l", "unheard")
        self.say(first, "go on")
        second.wait("More done")
        self.assertNotIn("unheard", first.text)

        # The program ends, and so everything does; why is said to everybody.
        self.interrupt(first, "driving")
        self.assertEqual((self.ended(first, "driving"), self.ended(second, "observing")), (0, 0))
        for terminal in (first, second):
            self.assertIn("ironcurtain: session 1: the agent ended", terminal.text)
        self.over()

        # It goes on with its conversation, until its container is killed.
        self.run_in(first, "ironcurtain start --pty -r 1", "resumed")
        first.wait("More done")
        self.run_in(second, "ironcurtain attach 1", "attached")
        second.wait("More done")
        self.docker("kill", *self.containers())
        self.assertEqual((self.ended(first, "resumed"), self.ended(second, "attached")), (137, 137))
        self.assertIn("the agent ended: it was killed, exit status 137", first.text)
        self.over()
        self.assertEqual(self.session()["status"], 137)
        self.assertEqual(len(list(self.product.home.glob("sessions/*/recording*.cast"))), 2)
