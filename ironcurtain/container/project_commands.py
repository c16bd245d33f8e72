"""
The commands that a project's ``devcontainer.json`` wants run where an agent works: nothing before a person has seen
them whole and agreed, and then only inside the agent's sandbox.

Agents can change the file. So an agreement holds for exactly the commands that were shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from ironcurtain.container.agreements import Agreements, Answer
from ironcurtain.container.devcontainer import LifecycleCommand
from ironcurtain.container.project_choices import ProjectChoices
from ironcurtain.home.layout import Home
from ironcurtain.text.display import one_line, paragraphs


class CommandsProposal(msgspec.Struct, frozen=True):
    """
    What a project wants to be run.

    :param file: the file that says it.
    :param project: real path of the project.
    :param commands: in the order in which they run.
    :param digest: of all of them.
    :param known: whether a person agreed to exactly these; ``None``: nobody was asked about them.
    """

    file: str
    project: str
    commands: tuple[LifecycleCommand, ...]
    digest: str
    known: bool | None

    @property
    def refusal(self) -> str:
        """Why they are not run, in a sentence; empty: they are."""
        if self.known:
            return ""
        what = f"the commands of {one_line(self.file)} are not run"
        if self.known is False:
            return f"{what}, as you decided"
        return f"{what}: look at them, and decide, with: ironcurtain images project {one_line(self.project)}"


class ProjectCommands:
    """
    :param choices: knows which files are read at all.
    """

    def __init__(self, home: Home, choices: ProjectChoices) -> None:
        self._agreements, self._choices = Agreements(home), choices

    def propose(self, project: str) -> CommandsProposal | None:
        """
        :param project: real path of a workspace.
        :returns: what it wants to be run; ``None``: nothing, or the settings do not ask it.
        :raises ConfigurationError: its file is wrong.
        """
        found = self._choices.described(project)
        if found is None or not found[1].commands:
            return None
        file, commands = found[0], found[1].commands
        digest = hashlib.sha256(msgspec.json.encode(commands)).hexdigest()
        said = self._agreements.of(project)
        return CommandsProposal(file, project, commands, digest, said.run if said.commands == digest else None)

    def answer(self, proposal: CommandsProposal, *, agreed: bool) -> None:
        """Keep what a person decided."""
        self._agreements.set_commands(proposal.project, Answer(proposal.digest, agreed))


def shown_commands(proposal: CommandsProposal) -> Sequence[str]:
    """:returns: all that a person agrees to, in lines."""
    lines = [
        f"{proposal.file} wants commands to be run before an agent's first message, in {proposal.project}.",
        "They run inside the agent's sandbox, as its user, and reach what the policy lets the agent reach:",
    ]
    for command in proposal.commands:
        lines.append(f"  {command.title}, {'once a session' if command.is_once else 'at each start'}:")
        lines += [f"    {line}" for line in command.text.split("\n")]
    return [paragraphs(line) for line in (*lines, f"  digest: {proposal.digest[:16]}")]
