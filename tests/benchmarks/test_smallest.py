"""Every benchmark runs to its end. What it measures is judged by nobody here."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.sandbox import bubblewrap
from tests import agent_images, engine
from tests.machine import demand_sight
from tests.programs import program

TOP = Path(__file__).resolve().parents[2]
LIMIT = 600
"""Seconds for one (the longest took 20, but the first one with an image builds that)."""

HELPERS = frozenset(
    (
        "daemon",
        "distance",
        "first_request",
        "fleet_figure",
        "fleet_simulated",
        "mitm_peers",
        "mitm_relay",
        "relay",
        "resident_ends",
        "sizes",
        "terminal_ends",
    )
)
"""Modules that benchmarks use."""


def with_agents() -> str:
    """:returns: a ``PATH`` with the agents' programs, if there are any for tests."""
    programs = Path(os.environ.get("IRONCURTAIN_TEST_NODE", "."), "node_modules", ".bin").resolve()
    return f"{programs}:{os.environ['PATH']}"


class SmallestTests(SynchronousTestCase):
    def run_it(self, name: str, **environ: str) -> str:
        """:returns: what a benchmark prints. CI runs them: together they take a minute of two processors."""
        if not os.environ.get("CI"):
            raise SkipTest("benchmarks run under CI (CI=true make test)")
        line = [sys.executable, "-m", f"benchmarks.{name}", "--smallest"]
        done = subprocess.run(
            line, cwd=TOP, env={**os.environ, **environ}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_each_is_tried_here(self) -> None:
        tried = {
            argument.value
            for node in ast.walk(ast.parse(Path(__file__).read_text()))
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "run_it"
            for argument in node.args
            if isinstance(argument, ast.Constant)
        }
        self.assertEqual(tried | HELPERS, {path.stem for path in (TOP / "benchmarks").glob("*.py")})

    def test_attach(self) -> None:
        for name in ("ssh", "ssh-keygen", "sshd", "tmux", "docker"):
            program(name)
        self.assertIn("ours", self.run_it("attach", **engine.environment()))

    def test_escalation(self) -> None:
        self.assertIn("through the files: asked to released", self.run_it("escalation"))

    def test_fleet(self) -> None:
        self.assertIn("an idle member among", self.run_it("fleet"))

    def test_fleet_attach(self) -> None:
        for name in ("ssh", "ssh-keygen", "sshd"):
            program(name)
        self.assertIn("build-3 killed: over after", self.run_it("fleet_attach"))

    def test_fleet_bound(self) -> None:
        for name in ("ssh", "ssh-keygen", "sshd"):
            program(name)
        self.assertRegex(self.run_it("fleet_bound"), r"nats-py +[0-9.]+ ms")

    def test_fleet_race(self) -> None:
        self.assertIn("20 decisions", self.run_it("fleet_race"))

    def test_loop(self) -> None:
        program("script")
        self.assertIn("keys     script", self.run_it("loop"))

    def test_memory(self) -> None:
        demand_sight()
        self.assertIn("sessions started and ended", self.run_it("memory"))

    def test_mitm(self) -> None:
        program("cc")
        program("/usr/include/openssl/ssl.h")
        printed = self.run_it("mitm")
        self.assertIn("ours to relay: rate", printed)
        self.assertIn("KiB for an idle tunnel: ", printed)

    def test_newcomer(self) -> None:
        self.assertIn("task and review", self.run_it("newcomer", PATH=with_agents()))

    def test_resident(self) -> None:
        if (reason := bubblewrap.available()) is not None:
            raise SkipTest(reason)
        printed = self.run_it("resident", PATH=with_agents())
        if "none is installed" in printed:
            raise SkipTest("no agent is installed")
        self.assertIn("a piece of text, sent to seen", printed)

    def test_session(self) -> None:
        self.assertIn("with us", self.run_it("session", **agent_images.environment()))

    def test_shell(self) -> None:
        program("script")
        self.assertIn("more than bash", self.run_it("shell"))

    def test_startup(self) -> None:
        self.assertIn("a whole session", self.run_it("startup"))

    def test_terminal(self) -> None:
        self.assertIn("comings and goings", self.run_it("terminal"))

    def test_tool_call(self) -> None:
        self.assertIn("ratio to relay", self.run_it("tool_call"))

    def test_verdict(self) -> None:
        self.assertIn("fetch documentation", self.run_it("verdict"))
