"""Screens of real agents in sandboxes of bubblewrap: the installed commands in real terminals, and a played model."""

from __future__ import annotations

from tests.container_agent.terminals import TerminalCase
from tests.container_agent.test_real_agents import CLAUDE, CODEX, GEMINI, OPENCODE, Agent
from tests.container_agent.test_real_without_docker import WithoutDockerCase


class ScreenTests(TerminalCase, WithoutDockerCase):
    """
    A task is given, a call waits for a person, and the answer is seen, also by who attaches; sizes reach the program.
    """

    def test_claude_code(self) -> None:
        self.shows(CLAUDE, "claude", "^─{80}$")

    def test_codex(self) -> None:
        self.shows(CODEX, "codex", "All done")

    def test_gemini(self) -> None:
        self.shows(GEMINI, "gemini", "^▄{80}$")

    def test_opencode(self) -> None:
        self.shows(OPENCODE, "opencode", r"^.{60,68}ctrl\+p commands$")

    def shows(self, agent: Agent, name: str, narrower: str) -> None:
        """:param narrower: what the agent shows in 80 columns and not in 100, if there is anything."""
        self.play(agent, name)
        product = self.product
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(self.model)
        (product.person / "secret.txt").write_text("the moon is far")
        product.project.chmod(0o777)
        first, second = self.terminal(), self.terminal()
        self.read_secret(first, agent, "--sandbox bubblewrap --workspace .")
        self.assertIn("the moon is far", str(self.stub.turns[-1]["results"]))
        (session,) = product.json("sessions")
        self.assertEqual((session["options"]["sandbox"], session["terminal"]), ("bubblewrap", True))
        self.run_in(second, "ironcurtain attach 1", "attached")
        second.wait("All done")
        second.resize(80, 24)
        first.wait(narrower)
        self.stop(first)
        self.ended(second, "attached")
