"""Agent programs where neither Docker nor bubblewrap works, and Landlock does."""

from __future__ import annotations

import os
import shutil

from twisted.trial.unittest import SkipTest

from ironcurtain.process.accounts import session_account
from ironcurtain.sandbox.landlock import implementation as landlock
from tests.cli.cases import ProductCase

WORDS = "Landlock works here, but cannot hold the network of an agent program, which needs bubblewrap or Docker"

OWN_AGENT = "ironcurtain start --agent builtin"


class LandlockOnlyTests(ProductCase):
    def setUp(self) -> None:
        if (reason := landlock.unavailable(session_account("", os.environ, None, os.geteuid()).switched)) is not None:
            raise SkipTest(reason)
        super().setUp()
        programs = self.product.person / "programs"  # bubblewrap's needs are not among them
        programs.mkdir()
        git = shutil.which("git")
        (programs / "git").symlink_to(git or "/nonexistent")
        self.product.environ |= {"PATH": str(programs), "DOCKER_HOST": f"unix://{self.product.person}/nothing.sock"}
        self.product.environ["ANTHROPIC_API_KEY"] = "sk-ant-of-nobody"

    def test_agent_program_is_refused_with_what_landlock_cannot_do_and_what_runs(self) -> None:
        for command in (
            ("start", "--agent", "claude-code", "do it"),
            ("start", "--agent", "codex", "--sandbox", "bubblewrap", "do it"),
            ("loop", "--agent", "claude-code", "-p", "do it"),
        ):
            done = self.product.run(*command)
            self.assertNotEqual(done.returncode, 0, command)
            self.assertIn("bubblewrap: ", done.stderr, command)
            self.assertIn(WORDS, done.stderr, command)
            self.assertIn(OWN_AGENT, done.stderr, command)

    def test_own_agent_runs(self) -> None:
        done = self.product.run("start", "--backend", self.product.script({"text": "Here."}), "do it")
        self.assertEqual((done.returncode, done.stdout), (0, "Here.\n"), done.stderr)
        self.assertIn("sandboxes are made with Landlock", done.stderr)

    def test_doctor_says_it_once(self) -> None:
        findings = self.product.json("doctor")
        said = [each for each in findings if WORDS in each["mend"]]
        self.assertEqual([(each["what"], each["state"]) for each in said], [("agents with Landlock", "hint")])
        self.assertIn(OWN_AGENT, said[0]["mend"])
        self.assertIn("runs nowhere", next(each["detail"] for each in findings if each["what"] == "agent claude-code"))
