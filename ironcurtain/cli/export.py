"""``ironcurtain export``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.diff import comparison_of
from ironcurtain.cli.output import print_lines
from ironcurtain.cli.paths import UserPath
from ironcurtain.text.display import one_line

SHOWN = 20
"""Maximum number of paths named of each sort, since an agent decides how many there are."""


@click.command()
@click.argument("session", shell_complete=all_sessions)
@click.argument("destination", type=UserPath())
def export(session: str, destination: Path) -> None:
    """
    Copy the workspace of SESSION to DESTINATION, a new or empty directory.

    Links that point inside are copied, and no link is followed; devices, pipes and set-user-id bits are not copied.
    Files that make git run programs (settings, hooks, links in a repository) are copied as they were before the
    session, or left out. SESSION is a number, an id, or 'last', running or ended.
    """
    from ironcurtain.project.export import destination as made
    from ironcurtain.project.export import export as copy

    with comparison_of(session) as comparison:
        to = made(destination, comparison.tree.root.path)
        done = copy(comparison, to)
    click.echo(f"{done.files} files ({done.bytes:,} bytes) copied to {to}")
    _tell("left out", done.left_out)
    _tell("as before the session", [(path, "git would run what is in it now") for path in done.restored])


def _tell(what: str, paths: Sequence[tuple[str, str]]) -> None:
    for path, why in paths[:SHOWN]:
        print_lines(f"{what}: {one_line(path, 200)}: {one_line(why, 200)}", err=True)
    if len(paths) > SHOWN:
        print_lines(f"and {len(paths) - SHOWN} more {what}", err=True)
