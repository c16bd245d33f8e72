"""A loop with Claude Code in the real Engine; only the model is played by a server on this machine."""

from __future__ import annotations

from ironcurtain.loop.state import read_state
from tests.container_agent.test_real_agents import CLAUDE, RealAgentCase, call, text
from tests.container_agent.test_real_screens import ScreenCase

PROMPT = "Fix the tests. When all is done, print LOOP_COMPLETE on a line of its own.\n"


class LoopingCase(RealAgentCase):
    """What both have in common."""

    def prompt(self) -> None:
        """Write it, in a workspace in which the agent may write, too, if we are root."""
        self.product.project.chmod(0o777)
        (self.product.project / "PROMPT.md").write_text(PROMPT)

    def outcomes(self) -> list[str]:
        (path,) = self.product.home.glob("sessions/*/loop.json")
        return [str(iteration.outcome) for iteration in read_state(path).iterations]


class HeadlessTests(LoopingCase):
    def test_until_the_promise(self) -> None:
        """Each iteration has the workspace of those before, a call is put before a person, and nothing else is kept."""
        self.play(
            CLAUDE,
            call("filesystem__write_file", path="/workspace/hello.txt", content="hello\n"),
            text('<event topic="begun">one file</event> Not yet.'),
            call("filesystem__read_text_file", path="/workspace/hello.txt"),
            text("All mended.\n\nLOOP_COMPLETE"),
        )
        self.prompt()
        done = self.product.run("loop", "--agent", "claude-code", "-n", "5", "--max-cost", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, '<event topic="begun">one file</event> Not yet.\nAll mended.\n\nLOOP_COMPLETE\n')
        self.assertEqual(self.outcomes(), ["done", "promise"])
        self.assertIn("[loop] event begun: one file", done.stderr)
        self.assertEqual((self.product.project / "hello.txt").read_text(), "hello\n")
        messages = self.stub.requests[-1]["json"]["messages"]
        said = str([message["content"] for message in messages if message["role"] != "system"])
        self.assertEqual(("- begun: one file" in said, "write_file" in said, "hello.txt" in said), (True, False, True))
        decisions = [(record["tool"], record["decision"]) for record in self.records("call")]
        self.assertEqual(decisions, [("write_file", "allow"), ("read_text_file", "allow")])
        self.assertEqual([record["outcome"] for record in self.records("iteration-end")], ["done", "promise"])
        (first, second) = (record["cost"] for record in self.records("iteration-end"))
        self.assertGreater(first, 0)
        self.assertGreater(second, 0)


class ScreenTests(ScreenCase, LoopingCase):
    def test_on_its_own_screen(self) -> None:
        """
        The agent waits at its prompt when it is done: the idle timeout ends it. When the loop goes on, the agent knows
        nothing of what it said before; its promise counts.
        """
        self.play(CLAUDE, text("Half of it."))
        self.prompt()
        terminal = self.terminal()
        self.run_in(terminal, "ironcurtain loop --pty --agent claude-code --idle-timeout 15 -n 1", "loop")
        terminal.wait("Half of it")
        self.assertEqual(self.ended(terminal, "loop"), 3)
        self.stub.add(text("All mended.\n\nLOOP_COMPLETE"))
        self.run_in(terminal, "clear; ironcurtain loop --resume -n 2", "again")
        terminal.wait("All mended")
        self.assertEqual(self.ended(terminal, "again"), 0)
        self.assertEqual(self.outcomes(), ["idle", "promise"])
        terminal.wait("the promise was made")
