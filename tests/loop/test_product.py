"""``ironcurtain loop`` without a terminal: the installed product."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.loop.state import read_state
from tests.machine import demand_namespaces, process_descriptor
from tests.product import LIMIT, Product, until

NTH = "$IRONCURTAIN_LOOP_ITERATION"
EVENTS = '"$IRONCURTAIN_LOOP_EVENTS"'
EVENT = 'echo "<event topic=\\"a\\">b</event>"'

PROMPT = "Mend it. When all is done, print LOOP_COMPLETE alone on a line.\n"


class LoopCase(SynchronousTestCase):
    """Each test has a home of its own."""

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.prompt = self.product.project / "PROMPT.md"
        self.prompt.write_text(PROMPT)

    def loop(self, *words: str, script: str = "", status: int) -> subprocess.CompletedProcess[str]:
        """:returns: a loop that has ended as it must."""
        program = ("--", "sh", "-c", script) if script else ()
        done = self.product.run("loop", *words, *program)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def session(self) -> Path:
        """:returns: the directory of the only session."""
        (path,) = self.product.home.glob("sessions/*/session.json")
        return path.parent

    def outcomes(self) -> list[str]:
        return [str(iteration.outcome) for iteration in read_state(self.session() / "loop.json").iterations]

    def records(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.product.audit() if record["kind"] == kind]


class EndingTests(LoopCase):
    """How loops end, and what they say with their status."""

    def test_the_promise(self) -> None:
        done = self.loop(
            script=f'cat; echo {NTH}; test {NTH} = 3 && echo "**LOOP_COMPLETE**"; exit 0',
            status=0,
        )
        self.assertEqual(done.stdout, f"{PROMPT}1\n{PROMPT}2\n{PROMPT}3\n**LOOP_COMPLETE**\n")
        self.assertIn("the promise was made in iteration 3", done.stderr)
        self.assertEqual(self.outcomes(), ["done", "done", "promise"])
        self.assertEqual(json.loads((self.session() / "session.json").read_text())["turns"], 3)

    def test_whatever_the_status_of_the_program(self) -> None:
        self.loop(script="echo LOOP_COMPLETE; exit 9", status=0)

    def test_what_comes_to_one_place_comes_in_its_order(self) -> None:
        line = self.product.command("loop", "-n", "20", "--", "sh", "-c", f"echo output {NTH}")
        done = subprocess.run(
            line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT,
            env=self.product.environ, cwd=self.product.project,
        )  # fmt: skip
        shown = [line for line in done.stdout.splitlines() if "iteration" in line or "output" in line]
        for number in range(1, 21):
            begun, output, ended, *shown = shown
            self.assertIn(f"iteration {number} of at most 20", begun)
            self.assertEqual(output, f"output {number}")
            self.assertIn(f"iteration {number}: done", ended)

    def test_iterations(self) -> None:
        done = self.loop("-n", "2", script="echo not yet", status=3)
        self.assertIn("the limit of 2 iterations is reached", done.stderr)

    def test_time(self) -> None:
        self.loop("--max-time", "1.5s", script="echo here; sleep 60", status=3)
        self.assertEqual(self.outcomes(), ["limit"])

    def test_failures_in_a_row(self) -> None:
        self.loop("--max-failures", "2", script="exit 5", status=4)
        self.assertEqual(self.outcomes(), ["failed", "failed"])

    def test_idle_only_if_it_is_asked_for(self) -> None:
        self.loop("-n", "1", "--idle-timeout", "1", script="sleep 60", status=3)
        self.assertEqual(self.outcomes(), ["idle"])

    def test_signals(self) -> None:
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            process = self.product.start("loop", "--", "sh", "-c", "echo here; exec sleep 60")
            until(process.stdout, "here")
            process.send_signal(number)
            _, said = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, status, said)

    def test_what_a_stubborn_program_started_ends_with_it(self) -> None:
        process = self.product.start("loop", "--", "sh", "-c", "trap '' TERM; sleep 60 & echo here; wait; sleep 60")
        until(process.stdout, "here")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130, said)

    def test_nobody_reads_what_it_shows(self) -> None:
        line = " ".join(self.product.command("loop", "-n", "3", "--", "echo", "hello"))
        done = subprocess.run(
            ["/bin/sh", "-c", f"{line} 2>errors | true"], env=self.product.environ, cwd=self.product.project,
            timeout=LIMIT, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0)


class StartTests(LoopCase):
    """What is refused, and what is fallen back to."""

    def test_wrong_usage(self) -> None:
        for words in (
            ("--pty", "--no-pty", "--", "true"),
            ("--observe", "--no-pty", "--", "true"),
            ("--agent", "claude-code", "--", "true"),
            ("--max-cost", "1", "--", "true"),
            ("--max-time", "soon", "--", "true"),
            ("nonsense",),
            ("--",),
            ("--backend", "kiro"),
            ("--config", "missing.yml", "--", "true"),
            ("--git-checkpoint", "--", "true"),
        ):
            self.loop(*words, status=64)

    def test_values_that_cannot_be_are_told_plainly(self) -> None:
        for words, why in (
            (("-n", "0"), "--max-iterations: must be at least 1"),
            (("--completion-promise", " "), "--completion-promise: must not be empty"),
            (("--max-time", "0"), "--max-time: must be more than 0"),
            (("--max-failures", "0"), "--max-failures: must be at least 1"),
            (("--json",), "--json is for 'ironcurtain loop config'"),
        ):
            done = self.loop(*words, "--", "true", status=64)
            self.assertTrue(done.stderr.startswith(f"ironcurtain: {why}"), done.stderr)

    def test_no_prompt(self) -> None:
        self.prompt.unlink()
        done = self.loop("--", "true", status=64)
        self.assertIn("PROMPT.md", done.stderr)

    def test_no_such_command(self) -> None:
        done = self.loop("--", "nonsense", status=69)
        self.assertIn("there is no command nonsense", done.stderr)

    def test_a_terminal_is_wanted_where_there_is_none(self) -> None:
        for flag in ("--pty", "--observe"):
            done = self.loop(flag, "-n", "1", script="test -t 1 || echo piped", status=3)
            warning = "warning: PTY mode requested but stdout is not a TTY, falling back to headless"
            self.assertIn(warning, done.stderr.splitlines()[0])
            self.assertEqual(done.stdout, "piped\n")

    def test_a_terminal_is_wanted_and_there_are_no_more(self) -> None:
        """``/dev/pts`` is full: the one terminal that it may hold is script(1)'s."""
        words = shlex.join(
            self.product.command("loop", "--pty", "-n", "1", "--", "sh", "-c", "test -t 1 || echo piped")
        )
        mounted = "mount -t devpts -o newinstance,ptmxmode=0666,max=1 devpts /dev/pts"
        line = f"{mounted} && mount --bind /dev/pts/ptmx /dev/ptmx && exec script -qec {shlex.quote(words)} /dev/null"
        done = subprocess.run(
            [*demand_namespaces(), "sh", "-c", line], env=self.product.environ, cwd=self.product.project,
            stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=LIMIT, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        text = " ".join(done.stdout.split())  # lines are wrapped on a terminal
        self.assertIn("no terminal can be opened (No space left on device), falling back to headless", text)
        self.assertIn("piped", text)

    def test_its_own_text_or_another_file(self) -> None:
        (self.product.project / "OTHER.md").write_text("another\n")
        for words, told in ((("-p", "do it"), "do it"), (("-P", "OTHER.md"), "another\n")):
            done = self.loop(*words, "-n", "1", "--", "cat", status=3)
            self.assertEqual(done.stdout, told)

    def test_nobody_reads_its_output(self) -> None:
        """A pager that was stopped holds up the program, and not us: nothing is lost, and Ctrl-C ends it."""
        for ends in ("read on", "interrupted"):
            process = self.product.start(
                "loop", "-n", "1", "-p", "go on", "--", "sh", "-c", "seq 1000000; echo all >&2"
            )
            assert process.stdout is not None
            until(process.stdout, "1000")
            (pid,) = (int(path.stem.removeprefix("owner-")) for path in self.product.home.glob("run/owner-*.sock"))
            self.wait_until_it_rests(pid)
            if ends == "interrupted":
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(LIMIT), 130)
                process.communicate()
            else:
                told, complained = process.communicate(timeout=LIMIT)
                self.assertTrue(told.endswith("\n999999\n1000000\n"))
                self.assertIn("all\n", complained)
                self.assertEqual(process.returncode, 3)

    def wait_until_it_rests(self, pid: int) -> None:
        """Wait until a process has used no processor time for a while."""
        used, rested = -1.0, 0
        while rested < 5:
            time.sleep(0.1)  # whether a process does nothing cannot be awaited
            now = time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3), as Linux does it
            used, rested = now, rested + 1 if now - used < 0.02 else 0

    def test_another_workspace(self) -> None:
        other = self.product.person / "other"
        other.mkdir()
        (other / "PROMPT.md").write_text("there")
        done = self.loop("--workspace", str(other), "-n", "1", script="cat; pwd", status=3)
        self.assertEqual(done.stdout, f"there{other}\n")

    def test_the_file_is_read_each_time(self) -> None:
        done = self.loop("-n", "2", script="cat; echo changed >PROMPT.md", status=3)
        self.assertEqual(done.stdout, f"{PROMPT}changed\n")

    def test_the_settings_in_force(self) -> None:
        (self.product.project / "ralph.yml").write_text("cli:\n  idle_timeout_secs: 42\nhats: {}\n")
        done = self.loop("config", "--pty", status=0)
        self.assertRegex(done.stdout, r"cli.idle_timeout_secs +42 +/.*ralph.yml")
        self.assertRegex(done.stdout, r"cli.pty_mode +True +--pty")
        self.assertIn("hats has no meaning here", done.stderr)
        found = self.product.run("loop", "config", "--json")
        self.assertEqual(json.loads(found.stdout)["cli.backend"], {"value": "claude", "from": "default"})

    def test_a_file_that_is_wrong(self) -> None:
        (self.product.project / "ralph.yml").write_text("cli:\n  pty_mod: true\n")
        self.loop("--", "true", status=78)

    def test_a_file_that_an_agent_made_expensive(self) -> None:
        for text, why in (
            ("a: &a [*a]\n", "ralph.yml:1: has an alias: write its value out"),
            (f"#{'x' * 70_000}\n", "ralph.yml: is larger than 65536 bytes"),
        ):
            (self.product.project / "ralph.yml").write_text(text)
            self.assertIn(why, self.loop("--", "true", status=78).stderr)

    def test_help(self) -> None:
        done = self.loop("--help", status=0)
        for word in ("LOOP_COMPLETE", "--observe", "reset", "[-- COMMAND ...]", "Exit status"):
            self.assertIn(word, done.stdout)
        self.assertNotIn("\\b", done.stdout)  # how click is told to leave lines as they are


class SessionTests(LoopCase):
    """A loop is a session like any other."""

    def test_it_is_seen_and_ended_from_elsewhere(self) -> None:
        process = self.product.start("loop", "--", "sh", "-c", "echo here; exec sleep 60")
        until(process.stdout, "here")
        (found,) = self.product.json("sessions")
        self.assertEqual((found["kind"], found["number"], found["terminal"]), ("loop", 1, False))
        self.assertEqual(self.product.run("stop", "1").returncode, 0)
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130, said)

    def test_everything_is_recorded(self) -> None:
        self.loop(
            "-n",
            "2",
            script=f"{EVENT}; exit $(({NTH} - 1))",
            status=3,
        )
        begun, ended, events = (self.records(kind) for kind in ("iteration", "iteration-end", "loop-event"))
        told = [(one["number"], one["mode"], one["command"][0]) for one in begun]
        self.assertEqual(told, [(1, "headless", "sh"), (2, "headless", "sh")])
        self.assertEqual([(one["outcome"], one["status"]) for one in ended], [("done", 0), ("failed", 1)])
        self.assertEqual([(one["topic"], one["payload"]) for one in events], [("a", "b")] * 2)
        self.assertEqual(self.records("loop-end")[0]["outcome"], "limit")
        self.assertEqual((self.session() / "iterations" / "0001.txt").read_text(), '<event topic="a">b</event>\n')
        self.assertEqual(self.product.run("audit", "verify").returncode, 0)

    def test_events_reach_the_next_iteration(self) -> None:
        script = f"cat >>told; cat {EVENTS} >>events; test {NTH} = 1 && {EVENT}; exit 0"
        done = self.loop("-n", "2", script=script, status=3)
        self.assertIn("[loop] event a: b", done.stderr)
        project = self.product.project
        self.assertEqual((project / "events").read_text(), '{"topic":"a","payload":"b"}\n')
        told = f"{PROMPT}{PROMPT}\nEvents of the previous iteration:\n\n- a: b\n"
        self.assertEqual((project / "told").read_text(), told)

    def test_it_is_resumed(self) -> None:
        script = f"echo {NTH}; cat {EVENTS}; {EVENT}"
        self.loop("-n", "1", script=script, status=3)
        done = self.loop("--resume", status=3)
        self.assertEqual(done.stdout, "")
        done = self.loop("--resume", "1", "-n", "2", status=3)
        self.assertEqual(done.stdout, '2\n{"topic":"a","payload":"b"}\n<event topic="a">b</event>\n')
        self.assertEqual(self.outcomes(), ["done", "done"])

    def test_it_is_resumed_after_it_was_killed(self) -> None:
        process = self.product.start(
            "loop",
            "--",
            "sh",
            "-c",
            f"test {NTH} = 1 || exec echo LOOP_COMPLETE; echo here $$; exec sleep 1000",
        )
        agent = process_descriptor(int(until(process.stdout, "here").split()[1]))
        self.addCleanup(os.close, agent)
        process.kill()
        process.communicate()
        self.assertTrue(select.select([agent], [], [], LIMIT)[0], "the agent works on for nobody")
        self.loop("--resume", status=0)
        self.assertEqual(self.outcomes(), ["running", "promise"])

    def test_one_that_could_not_start_is_not_the_last_one(self) -> None:
        self.loop("-n", "1", script="echo one >f", status=3)
        self.loop("-p", "x", "--", "mistyped", status=69)
        self.loop("--git-checkpoint", "-p", "x", "--", "true", status=64)
        self.prompt.rename(self.prompt.with_name("elsewhere"))
        self.loop("--", "true", status=64)
        self.prompt.mkdir()
        self.loop("--", "true", status=64)
        self.assertIn("b/f", self.product.run("diff").stdout)
        self.assertIn("session 1", self.loop("--resume", "-n", "2", "-p", "x", status=3).stderr)
        self.assertEqual(self.product.run("undo", "-y").returncode, 0)

    def test_only_loops_are(self) -> None:
        self.product.run("start", "--backend", self.product.script({"text": "hi"}), "hello")
        done = self.loop("--resume", "1", status=64)
        self.assertIn("is not a loop", done.stderr)
        self.assertIn("there is no session that could go on", self.loop("--resume", status=69).stderr)

    def test_it_keeps_its_workspace(self) -> None:
        self.loop("-n", "1", script="echo one", status=3)
        self.assertIn("keeps its workspace", self.loop("--resume", "--workspace", "/tmp", status=64).stderr)

    def test_start_goes_on_with_no_loop(self) -> None:
        self.loop("-n", "1", script="echo one", status=3)
        script = self.product.script({"text": "hi"})
        for name, status, why in (
            ("1", 64, "ironcurtain loop --resume 1"),
            ("last", 69, "no session that could go on"),
        ):
            done = self.product.run("start", "--backend", script, "--resume", name, "go on")
            self.assertEqual(done.returncode, status)
            self.assertIn(why, done.stderr)
        self.product.run("start", "--backend", script, "hello")
        self.loop("-n", "1", script="echo one", status=3)
        done = self.product.run(
            "start", "--backend", self.product.script({"text": "a"}, {"text": "b"}), "-r", "last", "go on"
        )
        self.assertEqual((done.returncode, done.stdout), (0, "b\n"), done.stderr)

    def test_the_last_one_is_not_the_last_session(self) -> None:
        self.loop("-n", "1", script="echo one", status=3)
        self.product.run("start", "--backend", self.product.script({"text": "hi"}), "hello")
        self.assertIn("session 1", self.loop("--resume", "-n", "2", status=3).stderr)
