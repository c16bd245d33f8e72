"""Ask whether containers are built as a project says, and whether its commands are run in agents' sandboxes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ironcurtain.cli.output import home, print_lines, settings
from ironcurtain.cli.questions import confirmed
from ironcurtain.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from ironcurtain.container.project_choices import ProjectChoices
    from ironcurtain.container.project_commands import ProjectCommands


class Asked(NamedTuple):
    """What is known of a project, by its real path."""

    path: str
    choices: ProjectChoices
    commands: ProjectCommands


def find(directory: Path) -> Asked:
    """:returns: what decides for a project."""
    from ironcurtain.container.image_choices import find_choices
    from ironcurtain.container.project_choices import ProjectChoices
    from ironcurtain.container.project_commands import ProjectCommands

    where = home()
    container = settings(where).settings.container
    choices = ProjectChoices(where, container, find_choices(os.environ, container), os.environ)
    return Asked(str(directory.resolve()), choices, ProjectCommands(where, choices))


def ask_first(directory: Path, sandbox: str, *, commands: bool) -> None:
    """
    Ask at the terminal whether a project's own words are used, if nobody has decided about them.

    :param sandbox: where the agent is to run; empty: in a container if there is an Engine.
    :param commands: whether the session would run the project's commands.
    """
    from ironcurtain.container.engine_socket import engine_socket, is_usable

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    chosen = sandbox or settings(home()).settings.agents.sandbox
    in_container = chosen == "container" or (not chosen and is_usable(engine_socket(os.environ)))
    asked = find(directory)
    with suppress(ConfigurationError):  # the session says it
        if in_container and (proposal := asked.choices.propose(asked.path)) is not None and proposal.open:
            decide_image(asked, None)
        if commands and (wanted := asked.commands.propose(asked.path)) is not None and wanted.known is None:
            decide_commands(asked, None)


def decide_image(asked: Asked, answer: bool | None) -> bool:
    """
    Show whole what a project says about containers, and keep what the person says.

    :param answer: of the person; ``None``: ask, unless this was decided.
    :returns: whether it says anything.
    :raises ConfigurationError: it cannot be used.
    """
    from ironcurtain.container.project_choices import shown

    if (proposal := asked.choices.propose(asked.path)) is None:
        return False
    known = None if proposal.open else proposal.agreed
    if (agreed := _answer(shown(proposal), "Build the agents' containers of this project so?", known, answer)) is None:
        return True
    asked.choices.answer(asked.path, proposal, agreed=agreed)
    return True


def decide_commands(asked: Asked, answer: bool | None) -> bool:
    """As :func:`decide_image`, for the commands that a project wants to be run."""
    from ironcurtain.container.project_commands import shown_commands

    if (proposal := asked.commands.propose(asked.path)) is None:
        return False
    question = "Run them in the sandboxes of this project's agents?"
    if (agreed := _answer(shown_commands(proposal), question, proposal.known, answer)) is not None:
        asked.commands.answer(proposal, agreed=agreed)
    return True


def _answer(lines: Sequence[str], question: str, known: bool | None, answer: bool | None) -> bool | None:
    """
    :returns: what is to be kept; ``None``: it was decided before, which is said.
    :raises UsageError: nobody can be asked.
    """
    for line in lines:
        print_lines(line, err=True)
    if answer is None and known is not None:
        click.echo("Used." if known else "Not used.", err=True)
        return None
    if answer is not None:
        return answer
    try:
        return confirmed(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise UsageError("nobody answered: decide with --agree or --refuse") from None
