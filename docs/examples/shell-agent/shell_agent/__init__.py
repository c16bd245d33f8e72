"""An agent that is a shell: each message is a script, and what the script prints is the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from ironcurtain.agents.adapter import Facts, File
from ironcurtain.agents.outcome import AgentAnswer, TurnOutcome, failure
from ironcurtain.agents.streams.dialogue import WholeOutput

IMAGE = files(__name__) / "image"
"""The folder from which its image is built."""


class ShellAgent:
    """The shell that every image has."""

    id = "shell-agent"
    display_name = "Shell agent"
    image = "shell-agent"
    providers = ()
    supports_pty = True

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """:returns: which file a shell reads first."""
        return {"ENV": "/usr/local/share/shell-agent/start.sh"}

    def files(self, facts: Facts) -> Sequence[File]:
        """:returns: the orientation, and a file that the agent continues to write."""
        return (
            File("orientation", "orientation.md", facts.orientation),
            File("home", "notes.txt", "The agent's own notes.\n", replace=False),
        )

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: a shell that reads its script, the message, from standard input."""
        return ("sh", "-eu", "-c", '. "$ENV"; eval "$(cat)"')

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: a shell for a terminal."""
        return ("sh", "-i")

    def dialogue(self, facts: Facts) -> WholeOutput:
        """:returns: that it says nothing before it ends, and that its output is the answer."""
        return WholeOutput(self.answer)

    def answer(self, outcome: TurnOutcome) -> AgentAnswer:
        """:raises TurnFailed: the script failed, or printed nothing."""
        text = outcome.stdout.decode("utf-8", "replace").strip()
        if outcome.exit_code != 0:
            raise failure(self.display_name, outcome)
        if not text:
            raise failure(self.display_name, outcome, kind="empty")
        return AgentAnswer(text)


AGENT = ShellAgent()
