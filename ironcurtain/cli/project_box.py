"""Ask whether containers are built as a project says."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.output import home, print_lines, settings
from ironcurtain.cli.questions import confirmed
from ironcurtain.errors import ConfigurationError

if TYPE_CHECKING:
    from ironcurtain.container.project_box import ProjectBoxes, Proposal


def find(directory: Path) -> tuple[ProjectBoxes, str]:
    """:returns: what decides for projects, and the real path of one."""
    from ironcurtain.container.image_choices import find_choices
    from ironcurtain.container.project_box import ProjectBoxes

    where = home()
    container = settings(where).settings.container
    choices = find_choices(os.environ, container)
    return ProjectBoxes(where, container, choices, os.environ), str(directory.resolve())


def ask_first(directory: Path, sandbox: str) -> None:
    """
    Ask at the terminal whether a project's own words are used, if nobody has decided about them.

    :param sandbox: where the agent is to run; empty: in a container if there is an Engine.
    """
    from ironcurtain.container.engine import Engine

    chosen = sandbox or settings(home()).settings.agents.sandbox
    if chosen == "bubblewrap" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if not chosen and not Engine.find(None, os.environ).has_socket:
        return
    boxes, path = find(directory)
    try:
        proposal = boxes.propose(path)
    except ConfigurationError:
        return  # the session says it
    if proposal is not None and proposal.open:
        decide(boxes, path, proposal, None)


def decide(boxes: ProjectBoxes, path: str, proposal: Proposal, answer: bool | None) -> None:
    """
    Show a proposal whole, and keep what the person says.

    :param path: of the project.
    :param answer: of the person; ``None``: ask.
    """
    from ironcurtain.container.project_box import shown

    for line in shown(proposal):
        print_lines(line, err=True)
    if answer is None and not proposal.open:
        click.echo("Used." if proposal.agreed else "Not used.", err=True)
        return
    agreed = confirmed("Build the agents' containers of this project so?", err=True) if answer is None else answer
    boxes.answer(path, proposal, agreed=agreed)
