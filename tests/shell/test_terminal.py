"""``ironcurtain shell`` as a person uses it: the installed product in a real terminal, with a scripted model."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.inheritance import VARIABLE, AgentPolicies, policies_in
from tests.fish import without_manuals
from tests.product import Product
from tests.tmux import Tmux

POLICY = """
version = 1
[approval]
default = "ask"
[approval.shell]
mode = "ask"
allow_patterns = ["echo *"]
deny_patterns = ["sudo *"]
"""


class TerminalCase(SynchronousTestCase):
    """Each test has a home and a terminal of its own."""

    shell, status = "bash", "$?"

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(self.finish)
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "policy.toml").write_text(POLICY)
        (self.product.person / ".zshrc").write_text("PS1='%# '\n")
        (self.product.person / ".bashrc").write_text("PS1='\\$ '\n")
        without_manuals(self.product.person)
        self.terminal = Tmux(self.product, columns=100, rows=40)
        self.addCleanup(self.terminal.close)
        self.terminal.type("stty -g >before; echo rea''dy")
        self.terminal.wait("ready")

    def finish(self) -> None:
        self.assertEqual([line for line in self.product.close() if "tmux" not in line], [])

    def begin(self, *turns: dict[str, Any], backend: str = "") -> None:
        """Start the shell with a scripted model, or another."""
        script = backend or self.product.script(*turns)
        command = " ".join(self.product.command("shell"))
        self.terminal.type(
            f"clear; {command} --shell {self.shell} --backend {shlex.quote(script)}; status=$?; echo st''atus $status; "
            "stty -g >after"
        )
        self.terminal.until(lambda: bool(list(self.product.home.glob("pty-registry/*.json"))))
        self.terminal.type("echo sh''ell")
        self.terminal.wait("^shell")

    def answer(self, key: str, asked: str = "a allow") -> None:
        """Press a key once keys count: until then, a sign stands after the last one."""
        self.terminal.wait(rf"{asked}[^…]*q quit\s*\Z")
        self.terminal.keys(key)

    def leave(self, status: int = 0) -> str:
        """Leave it; the terminal is as it was."""
        self.terminal.type(f"exit {status}")
        text = self.terminal.wait(rf"^status {status}$")
        self.as_before()
        return text

    def as_before(self) -> None:
        """The terminal is as it was."""
        before, after = (self.product.project / name for name in ("before", "after"))
        self.terminal.until(lambda: after.exists() and after.read_bytes().endswith(b"\n"))
        self.assertEqual(before.read_text(), after.read_text())

    def records(self) -> list[dict[str, object]]:
        """:returns: the audit log of the only session."""
        (path,) = self.product.home.glob("sessions/*/audit.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]


PLAN = {
    "text": "Two files are to be made.",
    "commands": [
        {"command": "touch one", "purpose": "make the first"},
        {"command": "touch two", "purpose": "make the second"},
    ],
}
THANKS = {"text": "Both are there."}


class PlanTests(TerminalCase):
    """A plan in bash."""

    def test_it_is_approved_runs_and_is_recorded(self) -> None:
        self.begin(PLAN, {**THANKS, "expect": {"last_result_contains": "exit status: 0"}})
        self.terminal.type("# make two files")
        self.terminal.wait("a allow all")
        self.terminal.keys("l", "a")
        self.terminal.wait("too early: press a again|several keys came at once")
        self.assertFalse((self.product.project / "one").exists())
        self.answer("a")
        self.terminal.wait("Both are there")
        self.assertTrue((self.product.project / "two").exists())
        self.terminal.type(f"echo {self.status}-aft''er")
        self.terminal.wait("^0-after")
        self.leave(3)
        calls = [r["arguments"] for r in self.records() if r["kind"] == "call"]
        self.assertEqual([each["command"] for each in calls], ["touch one", "touch two"])  # type: ignore[index]
        decided = [(r["outcome"], r["by"]) for r in self.records() if r["kind"] == "decision"]
        self.assertEqual([outcome for outcome, _ in decided], ["approved", "approved"])

    def test_a_command_that_runs_is_interrupted_and_the_shell_goes_on(self) -> None:
        self.begin({"commands": [{"command": "sleep 1000", "purpose": "wait"}]})
        self.terminal.type("# wait")
        self.answer("a")
        self.terminal.wait("^\\$ sleep 1000")
        self.terminal.keys("C-c")
        self.terminal.wait("interrupted")
        self.terminal.type("echo still he''re")
        self.terminal.wait("^still here")
        self.leave()

    def test_it_is_left_for_the_shell_and_comes_back(self) -> None:
        self.begin(PLAN, THANKS)
        self.terminal.type("# make two files")
        self.terminal.wait("a allow all")
        self.terminal.keys("C-z")
        self.terminal.until(lambda: "a allow" not in self.terminal.text)
        self.terminal.type("echo mean''while")
        self.terminal.wait("^meanwhile")
        self.terminal.type("#")
        self.answer("a")
        self.terminal.wait("Both are there")
        self.leave()

    def test_what_is_no_instruction_reaches_the_shell(self) -> None:
        self.begin()
        self.terminal.type("\\# a comment")
        self.terminal.type("cat <<EOF")
        self.terminal.type("# in a document")
        self.terminal.type("EOF")
        self.terminal.wait("^# in a document")
        self.leave()


class ZshTests(PlanTests):
    """The same in zsh."""

    shell = "zsh"


class FishTests(PlanTests):
    """The same in fish."""

    shell, status = "fish", "$status"

    test_what_is_no_instruction_reaches_the_shell = None  # type: ignore[assignment]  # fish has no here-documents


class DecisionTests(TerminalCase):
    """What the person or the policy decides, which is the same in each shell."""

    def test_denied_nothing_runs(self) -> None:
        self.begin(PLAN)
        self.terminal.type("# make two files")
        self.answer("d")
        self.terminal.wait("^╰ stopped")
        self.terminal.type("ls | wc -l; echo do''ne")
        self.terminal.wait("^done")
        self.assertFalse((self.product.project / "one").exists())
        self.leave()

    def test_what_the_policy_denies_does_not_run(self) -> None:
        self.begin({"commands": [{"command": "sudo touch x", "purpose": "as root"}]}, {"text": "So be it."})
        self.terminal.type("# do it as root")
        self.answer("a")
        self.terminal.wait("So be it")
        denied = [r["rule"] for r in self.records() if r["kind"] == "call" and r["decision"] == "deny"]
        self.assertEqual(denied, ["approval.shell.deny_patterns"])
        self.leave()

    def test_an_approval_comes_from_another_terminal(self) -> None:
        self.begin(PLAN, THANKS)
        self.terminal.type("# make two files")
        self.answer("s")
        self.terminal.wait("x skip")
        (waiting,) = self.product.json("escalations")
        done = self.product.run("approve", str(waiting["number"]), "--digest", waiting["digest"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.terminal.until((self.product.project / "one").exists)
        self.terminal.wait("Step 2 of 2")
        self.answer("x", "x skip")
        self.terminal.wait("Both are there")
        self.assertFalse((self.product.project / "two").exists())
        self.leave()

    def test_a_word_of_the_user_changes_the_plan(self) -> None:
        self.begin(PLAN, {"text": "Only one.", "expect": {"last_user_contains": "only the first"}})
        self.terminal.type("# make two files")
        self.terminal.wait("a allow all")
        self.terminal.type("# only the first")
        self.terminal.wait("Only one")
        self.assertFalse((self.product.project / "one").exists())
        self.leave()


class EndTests(TerminalCase):
    """However it ends, the terminal is as it was and nothing is left running."""

    def test_by_a_signal(self) -> None:
        self.begin(PLAN)
        self.terminal.type("# make two files")
        self.terminal.wait("a allow all")
        os.kill(self.pid, signal.SIGTERM)
        self.terminal.wait("^status 143$")
        self.as_before()

    @property
    def pid(self) -> int:
        """Of our command: the owner of the only session."""
        (entry,) = self.product.home.glob("pty-registry/*.json")
        return int(json.loads(Path(entry).read_text())["pid"])

    def test_killed_the_terminal_is_restored(self) -> None:
        self.begin(PLAN)
        os.kill(self.pid, signal.SIGKILL)
        # The user's shell may print before the terminal is restored, when a new line does not begin at the left edge;
        # and the settings are restored a moment before the rest.
        self.terminal.wait("^ *status 137$")
        before, device = (self.product.project / "before").read_text(), self.terminal.device
        self.terminal.until(lambda: subprocess.check_output(["stty", "-g", "-F", device], text=True) == before)
        self.terminal.type("echo as be''fore")
        self.terminal.wait("as before$")


class UnmarkedTests(TerminalCase):
    """A shell that shows no marks."""

    shell = "dash"

    def test_instructions_begin_with_two_signs(self) -> None:
        self.begin(PLAN, {**THANKS, "expect": {"last_result_contains": "exit status: 0"}}, {"text": "Bye."})
        self.terminal.wait("begin an instruction with ##")
        self.terminal.type("## make two files")
        self.answer("a")
        self.terminal.wait("Both are there")
        self.assertTrue((self.product.project / "two").exists())
        self.assertNotIn("133;", self.terminal.text)
        self.terminal.type("## bye")
        self.terminal.wait("Bye")
        self.leave(3)

    def test_an_interrupted_command_is_over(self) -> None:
        wait = {"commands": [{"command": "sleep 1000", "purpose": "wait"}]}
        self.begin(wait, PLAN, THANKS)
        self.terminal.type("## wait")
        self.answer("a")
        self.terminal.wait("^\\$ sleep 1000")
        self.terminal.keys("C-c")
        self.terminal.wait("interrupted with status 130")
        self.terminal.type("## make two files")
        self.answer("a")
        self.terminal.wait("Both are there")
        self.assertTrue((self.product.project / "two").exists())
        self.leave()

    def test_another_program_in_place_of_the_shell(self) -> None:
        self.shell = "bash"
        self.begin({"text": "Hello."})
        self.terminal.type("exec dash")
        self.terminal.wait("begin an instruction with ##")
        self.terminal.type("## hello")
        self.terminal.wait("Hello")
        self.leave()


class AnnouncedTests(TerminalCase):
    """What is said while the user is at the prompt of the shell."""

    def test_an_answer_that_comes_meanwhile(self) -> None:
        backend, gate = self.product.held("There is nothing.")
        self.begin(backend=backend)
        self.terminal.type("# look")
        self.terminal.wait("thinking")
        self.terminal.keys("C-z")
        self.terminal.until(lambda: "thinking" not in self.terminal.text)
        self.terminal.type(f"touch {gate}; until test -e seen; do sleep 0.1; done; echo st''ill")
        self.terminal.until(lambda: bool(list(self.product.home.glob("sessions/*/history.jsonl"))))
        (self.product.project / "seen").touch()
        self.terminal.wait(r"^still\n\[ironcurtain\] the agent has answered: # shows it")
        self.assertNotIn("There is nothing", self.terminal.text)
        self.terminal.type("#")
        self.terminal.wait("There is nothing")
        self.leave()


class ContextTests(TerminalCase):
    """What the model is told of the shell."""

    def test_variables_as_they_are_now(self) -> None:
        (self.product.home / "config.toml").write_text(
            'version = 1\n[context]\ninclude_env = ["EDITOR", "MY_KEY"]\nrequery_env = true\n'
        )
        self.begin({"text": "Done.", "expect": {"last_user_contains": "EDITOR=nano\n--- end of state"}})
        self.terminal.type("export EDITOR=nano MY_KEY=4711")
        self.terminal.type("# which editor")
        self.terminal.wait("Done")
        self.leave()


class UnreachedTests(TerminalCase):
    """No model answers for a while."""

    def test_an_instruction_waits_and_is_confirmed_again(self) -> None:
        answer = self.product.person / "answer"
        self.begin(backend=f"subprocess:cat {answer}")
        self.terminal.type("# make two files")
        self.terminal.wait("the instruction waits as number 1")
        answer.write_text("Here I am.\n")
        self.terminal.type("# hello")
        self.terminal.wait("1  make two files")
        self.terminal.type("#-")
        self.terminal.wait("discarded: 1")
        self.leave()


class SecretTests(TerminalCase):
    """What the environment holds stays out of the records."""

    def test_an_instruction_with_a_secret(self) -> None:
        self.terminal.type("export DEPLOY_TOKEN=canary-7f3a9d1c5e")
        self.begin({"text": "Done."})
        self.terminal.type("# use canary-7f3a9d1c5e")
        self.terminal.wait("Done")
        self.leave()
        for path in self.product.home.rglob("*"):
            if path.is_file():
                self.assertNotIn(b"canary-7f3a9d1c5e", path.read_bytes(), path)


class BeginningTests(TerminalCase):
    """Before the session is there."""

    def run_it(self, options: str = "") -> None:
        """Start the shell, and wait for nothing."""
        command = " ".join(self.product.command("shell", "--shell", "bash"))
        self.terminal.type(f"clear; {command} {options}; status=$?; stty -g >after; echo st''atus $status")

    def test_an_instruction_that_is_typed_at_once(self) -> None:
        (self.product.person / ".bashrc").write_text("PS1='inner> '\n")
        self.run_it(f"--backend {self.product.script(PLAN, THANKS)}")
        self.terminal.wait("^inner>")
        self.terminal.type("# make two files")
        self.answer("a", "a allow all")
        self.terminal.wait("Both are there")
        self.terminal.type("exit 3")
        self.terminal.wait("^status 3$")
        self.as_before()

    def test_the_shell_ends_before(self) -> None:
        (self.product.person / ".bashrc").write_text("echo by''e; exit 5\n")
        self.run_it()
        self.assertIn("bye", self.terminal.wait("^status 5$"))
        self.as_before()

    def test_what_other_machines_are_told_of_the_policy(self) -> None:
        (self.product.person / ".bashrc").write_text(f"echo ${VARIABLE} >told; exit 5\n")
        self.run_it()
        self.terminal.wait("^status 5$")
        told = policies_in({VARIABLE: (self.product.project / "told").read_text().strip()})
        self.assertEqual(told, AgentPolicies((tomllib.loads(POLICY)["approval"],), 1))

    def test_a_session_that_cannot_start(self) -> None:
        (self.product.home / "policy.toml").write_text("version = 1\nno_such = 1\n")
        self.run_it()
        self.assertIn("no_such", self.terminal.wait("^status 78$"))
        self.as_before()

    def test_terminated(self) -> None:
        answered = "printf '\\e[5n'; read -rsd n"  # by the terminal, so that the relay is there
        program = 'sh -c "kill $PPID; exec sleep 1000"'  # bash may start one more program after a hang-up
        (self.product.person / ".bashrc").write_text(f"{answered}; {program}\n")
        self.run_it()
        self.terminal.wait("^status 143$")
        self.as_before()
