"""A person with terminals of tmux, in which the installed commands show the screens of real agents."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.container_agent.test_real_agents import CLAUDE, PATIENCE, Agent, call, text
from tests.model_stub.process import StubProcess
from tests.product import Product, wait_until
from tests.tmux import Tmux

PROMPT = "bypass permissions on"
"""What Claude Code shows when it waits for the first message: all its first questions are answered."""

SIGN = "\u276f"
"""What Claude Code shows before what is typed."""

AS_BEFORE = ("0", "0", "0", "0", "1", "1")
"""The modes of a terminal that no program has changed."""

READING = (call("filesystem__read_text_file", path="~/secret.txt"), text("All ", "done."))
"""What the model answers in :meth:`TerminalCase.read_secret`."""


class TerminalCase(SynchronousTestCase):
    """Tests with terminals; another class makes the product, and plays the model."""

    product: Product
    stub: StubProcess

    def terminal(self, columns: int = 100, rows: int = 30) -> Tmux:
        """:returns: one more terminal, with a shell that knows our commands."""
        made = Tmux(self.product, columns, rows, PATIENCE)
        self.addCleanup(made.close)
        directory = Path(self.product.command()[0]).parent
        made.type(f"PATH={directory}:$PATH; PS1='$ '; clear")
        made.wait(r"^\$$")
        return made

    def run_in(self, terminal: Tmux, line: str, name: str) -> None:
        """Run a command in a terminal, between two looks at the terminal's settings; its status goes to a file."""
        where = self.product.person / name
        kept = f"echo $? > {where}.status; stty -g > {where}.after; echo o''ver {name}"
        terminal.type(f"stty -g > {where}.before; {line}; {kept}")

    def ended(self, terminal: Tmux, name: str, word: str = "over") -> int:
        """:returns: the status of a command, once it has ended and the terminal is as before."""
        terminal.wait(f"^{word} {name}$")
        where = self.product.person / name
        self.assertEqual(Path(f"{where}.after").read_text(), Path(f"{where}.before").read_text())
        self.assertEqual(terminal.flags[2:], AS_BEFORE)
        return int(Path(f"{where}.status").read_text())

    def killed(self, terminal: Tmux, name: str) -> int:
        """:returns: the status of a command that was killed: the terminal is as before a moment later."""
        end, where = time.monotonic() + PATIENCE, self.product.person / name
        while terminal.flags[2:] != AS_BEFORE and time.monotonic() < end:
            time.sleep(0.1)
        terminal.type(f"clear; stty -g > {where}.after; echo re''stored {name}")
        return self.ended(terminal, name, "restored")

    def say(self, terminal: Tmux, message: str) -> None:
        """Type a message, and send it when the agent shows it."""
        terminal.keys("-l", message)
        terminal.wait(rf"{SIGN}\s{message}")
        terminal.keys("Enter")

    def greet(self, terminal: Tmux) -> None:
        """Talk until the agent's program has tools to offer: it does not wait for them when it starts."""
        for number in range(int(PATIENCE)):
            self.stub.add(text(f"Greeting {number}."))
            self.say(terminal, f"hello {number}")
            terminal.wait(f"Greeting {number}")
            if any("filesystem__read_text_file" in tool for tool in self.stub.turns[-1]["tools"]):
                return
        raise self.fail("there are no tools")

    def read_secret(self, terminal: Tmux, agent: Agent, *words: str) -> None:
        """Give an agent with a screen a task; a call waits for a person, and the answer is seen."""
        line, task = " ".join(("ironcurtain start --pty --agent", agent.id, *words)), "Read the secret"
        if agent is CLAUDE:
            self.run_in(terminal, line, "first")
            terminal.wait(PROMPT)
            self.greet(terminal)
            self.stub.add(*READING)
            self.say(terminal, task)
        else:
            self.stub.add(*READING)
            self.run_in(terminal, f"{line} '{task}'", "first")

        # The screen of Codex also wants to show announcements, which are on a host of their own.
        def found() -> list[dict[str, Any]]:
            return [each for each in self.product.escalations() if each["server"] == "filesystem"]

        (escalation,) = wait_until(found, PATIENCE)
        done = self.product.run("approve", str(escalation["number"]), "--digest", escalation["digest"])
        self.assertEqual(done.returncode, 0, done.stderr)
        terminal.wait("All done")

    def stop(self, terminal: Tmux) -> None:
        """Stop what :meth:`read_secret` started; with what status is for the agent to say."""
        done = self.product.run("stop", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.ended(terminal, "first")
