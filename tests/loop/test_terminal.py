"""``ironcurtain loop --pty`` as a person uses it: the installed product in a real terminal."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.loop.state import read_state
from ironcurtain.terminal.recording import read_cast
from tests.product import Product, children
from tests.ssh_daemon import SshDaemon
from tests.tmux import Tmux

AGENT = Path(__file__).with_name("agent.py")

NO_PTY = """
import os, sys
limit, openpty, opened = int(sys.argv[1]), os.openpty, []
sys.argv[0:2] = ["ironcurtain"]

def fail():
    opened.append(1)
    if len(opened) > limit:
        raise OSError(28, "No space left on device")
    return openpty()

os.openpty = fail
from ironcurtain.cli import main
main()
"""
"""Our command on a machine that has only so many terminals."""


class TerminalCase(SynchronousTestCase):
    """Each test has a home and a terminal of its own."""

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(self.finish)
        (self.product.project / "PROMPT.md").write_text("When all is done, print LOOP_COMPLETE alone on a line.")
        self.terminal = Tmux(self.product, columns=160)
        self.addCleanup(self.terminal.close)
        self.terminal.type("stty -g >before; echo rea''dy")
        self.terminal.wait("ready")

    def finish(self) -> None:
        self.assertEqual([line for line in self.product.close() if "tmux" not in line], [])

    def loop(self, options: str, *words: str, program: str = "", command: str = "") -> None:
        """Start a loop with our agent, or with another command."""
        line = program or " ".join(self.product.command())
        agent = command or f"{sys.executable} {AGENT} {' '.join(words)}"
        self.terminal.type(f"clear; {line} loop {options} -- {agent}; status=$?; echo st''atus $status; stty -g >after")

    def ready(self, iteration: int = 1) -> int:
        """:returns: the pid of the agent, once it is there."""
        text = self.terminal.wait(f"^ready [0-9]+, iteration {iteration}, ")
        found = re.search(rf"^ready (\d+), iteration {iteration}, ", text, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def ended(self, status: int) -> str:
        """The loop ended, and the terminal is as it was."""
        text = self.terminal.wait(rf"^status {status}$")
        self.as_before()
        return text

    def as_before(self) -> None:
        self.terminal.type("echo on''ce more")
        self.terminal.wait("once more")
        before, after = ((self.product.project / name).read_text() for name in ("before", "after"))
        self.assertEqual(before, after)
        flags = "#{alternate_on}#{mouse_any_flag}#{cursor_flag}"
        self.assertEqual(self.terminal.ask("display-message", "-p", flags).strip(), "001")

    def outcomes(self) -> list[str]:
        (path,) = self.product.home.glob("sessions/*/loop.json")
        return [str(iteration.outcome) for iteration in read_state(path).iterations]


class InteractiveTests(TerminalCase):
    """The agent has a terminal, and the person's keys."""

    def test_the_promise_ends_it_with_all_as_it_was(self) -> None:
        self.loop("--pty", "once")
        text = self.ended(0)
        self.assertIn("LOOP_COMPLETE", text)
        self.assertEqual(self.outcomes(), ["promise"])

    def test_much_at_once_is_shown_read_and_recorded(self) -> None:
        self.loop("--pty", "flood", "once")
        self.assertRegex(self.ended(0), r"line 099998 of much\n *line 099999 of much\n")
        (path,) = self.product.home.glob("sessions/*/recording.cast")
        shown = "".join(event.output for event in read_cast(path.read_bytes()).events)
        lines = re.findall("line ([0-9]+) of much\r\n", shown)
        self.assertEqual(lines, [f"{number:06}" for number in range(100_000)])

    def test_keys_reach_it_and_the_prompt_is_its_last_argument(self) -> None:
        self.loop("--pty -n 1", "raw")
        self.ready()
        self.terminal.wait(", 3 words, input terminal")
        self.terminal.keys("a", "Escape", "Left", "C-d", "C-]", "d")
        text = self.terminal.wait("^keys [0-9a-f]*64")
        keys = "".join(re.findall("^keys ([0-9a-f]+)", text, re.MULTILINE))
        self.assertEqual(bytes.fromhex(keys), b"a\x1b\x1b[D\x04\x1dd")
        self.terminal.keys("q")
        self.ended(3)

    def test_the_title_of_the_window_is_the_one_it_was(self) -> None:
        self.terminal.type("printf '\\033]2;mine\\007'")
        self.loop("--pty", command="sh -c 'printf \"\\033]2;theirs\\007LOOP_COMPLETE\"'")
        self.ended(0)
        self.assertEqual(self.terminal.ask("display-message", "-p", "#{pane_title}").strip(), "mine")

    def test_ctrl_c_twice_within_a_second(self) -> None:
        self.loop("--pty")
        self.ready()
        self.terminal.keys("C-c")
        self.terminal.wait("got SIGINT")
        self.terminal.keys("C-c", "C-c")
        text = self.ended(130)
        self.assertIn("got SIGTERM", text)
        self.assertEqual(self.outcomes(), ["interrupted"])

    def test_ctrl_c_twice_where_the_first_one_ends_the_program(self) -> None:
        self.loop("--pty -n 50 --max-failures 50", command="sh -c 'sleep 600'")
        for iteration in range(1, 50):  # how soon the next one begins is for the machine to say
            self.terminal.wait(f"iteration {iteration} of at most 50|^status ")
            if "status " in self.terminal.text:
                break
            self.terminal.keys("C-c")
        self.ended(130)

    def test_ctrl_c_once_and_again_later(self) -> None:
        self.loop("--pty")
        self.ready()
        for count in (1, 2):
            self.terminal.keys("C-c")
            self.terminal.wait("got SIGINT[^$]*" * count)
            time.sleep(1.2)  # the window of a second is what is tested
        self.terminal.type("q")
        self.terminal.wait("^ready [0-9]+, iteration 2")
        self.terminal.keys("C-\\")
        self.ended(130)

    def test_ctrl_c_as_kitty_sends_it(self) -> None:
        self.loop("--pty", "raw")
        self.ready()
        key = "\x1b[99;5u"
        self.terminal.keys("-l", key)
        self.terminal.wait(f"^keys {key.encode().hex()}")
        self.terminal.keys("-l", key * 2)
        self.ended(130)

    def test_ctrl_backslash_kills(self) -> None:
        self.loop("--pty", "raw", "stubborn", "alternate")
        self.ready()
        self.terminal.keys("C-\\")
        self.ended(130)
        (path,) = self.product.home.glob("sessions/*/recording.cast")
        self.assertIn("ready", path.read_text())
        self.assertNotIn("got SIGTERM", path.read_text())

    def test_five_seconds_of_grace(self) -> None:
        self.loop("--pty", "stubborn")
        self.ready()
        begun = time.monotonic()
        self.terminal.keys("C-c", "C-c")
        self.terminal.wait("got SIGTERM")
        self.ended(130)
        self.assertGreater(time.monotonic() - begun, 4.5)

    def test_in_a_paste_they_are_text(self) -> None:
        self.loop("--pty", "raw", "paste")
        self.ready()
        self.terminal.run("set-buffer", "a\x03\x03\x1cz")
        self.terminal.run("paste-buffer", "-p")
        text = self.terminal.wait("(?s)^keys .*7e.*7e$")  # it may come in several reads
        self.assertIn(b"\x1b[200~a\x03\x03\x1cz\x1b[201~".hex(), text.replace("\n", "").replace("keys ", ""))
        self.terminal.keys("C-\\")
        self.ended(130)

    def test_an_idle_one_is_ended_and_the_next_begins(self) -> None:
        self.loop("--pty --idle-timeout 6 -n 2")
        self.ready(1)
        begun = time.monotonic()
        while time.monotonic() - begun < 8:
            time.sleep(0.2)  # each key is activity
            self.terminal.keys("x")
        self.assertEqual(self.terminal.text.count("ready"), 1)
        self.ready(2)
        self.terminal.wait("it was idle for 6 s")
        self.ended(3)
        self.assertEqual(self.outcomes(), ["idle", "idle"])

    def test_its_size_follows(self) -> None:
        self.loop("--pty")
        self.ready()
        self.terminal.resize(100, 40)
        self.terminal.wait("^size 100 40")
        self.terminal.keys("C-\\")
        self.ended(130)

    def test_a_program_that_is_killed_has_failed(self) -> None:
        self.loop("--pty --max-failures 2", "alternate")
        for iteration in (1, 2):
            os.kill(self.ready(iteration), signal.SIGKILL)
        self.ended(4)
        self.assertEqual(self.outcomes(), ["failed", "failed"])


class ObserveTests(TerminalCase):
    """The agent has a terminal, but no keys."""

    def test_its_input_is_at_the_end(self) -> None:
        self.loop("--observe")
        self.terminal.wait("^end of input")
        self.assertIn("input none", self.terminal.text)
        self.terminal.keys("a", "C-c")
        time.sleep(1.1)
        self.assertNotIn("got SIGINT", self.terminal.text)
        self.terminal.keys("C-c", "C-c")
        self.ended(130)

    def test_as_the_file_says(self) -> None:
        (self.product.project / "ralph.yml").write_text("cli:\n  pty_mode: true\n  pty_interactive: false\n")
        self.loop("--idle-timeout 2 -n 1")
        self.terminal.wait("^end of input")
        self.terminal.until(self.idle_while_keys_are_pressed)
        self.terminal.wait("^status 3$")
        self.terminal.keys("Enter")  # ends what the shell got of them
        self.ended(3)

    def idle_while_keys_are_pressed(self) -> bool:
        self.terminal.keys("Enter")  # which is no activity
        return "it was idle for 2 s" in self.terminal.text


class ViewerTests(TerminalCase):
    """Others look on, and type; the loop's terminal is one from its first iteration to its last."""

    def test_from_another_terminal(self) -> None:
        self.loop("--pty -n 2", "raw")
        self.ready()
        (found,) = self.product.json("sessions")
        self.assertEqual((found["kind"], found["terminal"]), ("loop", True))
        other = Tmux(self.product, columns=160)
        self.addCleanup(other.close)
        other.type(f"{' '.join(self.product.command('attach', '1'))}; echo st''atus $?")
        other.wait("^ready [0-9]+, iteration 1")
        other.keys("x")
        self.terminal.wait("^keys 78")
        other.keys("q")
        for terminal in (self.terminal, other):
            terminal.wait("^ready [0-9]+, iteration 2")
        self.terminal.keys("C-\\")
        other.wait("^status 130")
        self.ended(130)
        self.assertTrue(list(self.product.home.glob("sessions/*/recording.cast")))

    def test_over_ssh(self) -> None:
        daemon = SshDaemon(self, self.product, "attach", "view")
        self.loop("--pty -n 1", "raw")
        self.ready()
        other, looking = (Tmux(self.product, columns=160) for _ in range(2))
        for terminal, line in ((other, [*daemon.ssh("attach", "-t"), "attach", "1"]),
                               (looking, [*daemon.ssh("view", "-t"), "observe", "1"])):  # fmt: skip
            self.addCleanup(terminal.close)
            terminal.type(f"{shlex.join(line)}; echo st''atus $?")
            terminal.wait("^ready [0-9]+, iteration 1")
        looking.keys("y")  # who looks on does not type
        other.keys("x")
        for terminal in (self.terminal, other, looking):
            self.assertNotIn("keys 79", terminal.wait("^keys 78"))
        other.keys("q")
        for terminal in (other, looking):
            terminal.wait("^status 3")
        self.ended(3)


def command_line(pid: int) -> bytes:
    """:returns: nothing if there is no such process any more."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


class EndTests(TerminalCase):
    """The terminal is restored on every way out."""

    def pid(self) -> int:
        """:returns: of the loop."""
        (socket,) = self.product.home.glob("run/owner-*.sock")
        return int(socket.stem.removeprefix("owner-"))

    def gone(self, pid: int) -> None:
        """Wait until a process has ended; a zombie has no command line."""
        self.terminal.until(lambda: not command_line(pid))

    def test_sigterm(self) -> None:
        self.loop("--pty", "raw", "alternate")
        self.ready()
        os.kill(self.pid(), signal.SIGTERM)
        self.ended(143)

    def test_sigkill(self) -> None:
        before = set(children())
        self.loop("--pty", "raw", "alternate")
        agent = self.ready()
        loop = self.pid()
        os.kill(loop, signal.SIGKILL)
        self.terminal.until(lambda: not Path(f"/proc/{loop}").exists())  # from then on what it started is ours
        self.gone(agent)
        for pid in set(children()) - before:
            if b"tmux" not in command_line(pid):
                self.gone(pid)  # what has to notice by itself that we are gone
        # What the shell said at once may have been on the screen that is gone.
        self.terminal.type("clear; echo st''atus $status; stty -g >after")
        self.ended(137)

    def test_the_window_is_closed(self) -> None:
        outlives = "trap : HUP; " + shlex.join(self.product.command()) + ' "$@"; echo $? >status'
        self.loop("--pty", program=f"sh -c {shlex.quote(outlives)} sh")
        agent, loop = self.ready(), self.pid()
        self.terminal.run("new-window", "/bin/sh")
        self.terminal.run("kill-window", "-t", "0")
        self.gone(agent)
        self.gone(loop)
        status = self.product.project / "status"
        self.terminal.until(lambda: status.exists() and status.read_text() == "129\n")


class FallbackTests(TerminalCase):
    """Without a terminal to be had, there is none."""

    def test_from_the_start(self) -> None:
        script = self.product.person / "without.py"
        script.write_text(NO_PTY)
        self.loop("--pty", "once", program=f"{sys.executable} {script} 0")
        text = self.ended(0)
        self.assertIn("error: no terminal can be opened (No space left on device), falling back to headless", text)
        self.assertIn("2 words, input none", text)

    def test_later(self) -> None:
        script = self.product.person / "without.py"
        script.write_text(NO_PTY)
        self.loop("--pty", "once", program=f"{sys.executable} {script} 1")
        text = self.ended(0)
        self.assertIn("error: no terminal can be opened: No space left on device; falling back to headless", text)
