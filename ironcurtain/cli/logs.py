"""``ironcurtain logs``."""

from __future__ import annotations

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.files import follow
from ironcurtain.cli.output import home
from ironcurtain.cli.session_files import session_files


@click.command()
@click.argument("session", default="last", shell_complete=all_sessions)
@click.option("-f", "--follow", "following", is_flag=True, help="Continue with new lines as they are written.")
def logs(session: str, following: bool) -> None:
    """
    Show the log of SESSION: a number, an id, or 'last' for the newest one.
    """
    path = session_files(home(), session).log
    for line in follow(path, following):
        click.echo(line.decode(errors="backslashreplace"), nl=False)
