"""``ironcurtain logs``."""

from __future__ import annotations

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import home
from ironcurtain.cli.session_files import show_file
from ironcurtain.text.display import paragraphs


@click.command()
@click.argument("session", default="last", shell_complete=all_sessions)
@click.option("-f", "--follow", "following", is_flag=True, help="Continue with new lines as they are written.")
def logs(session: str, following: bool) -> None:
    """
    Show the log of SESSION: a number, an id, or 'last' for the newest one.
    """
    show_file(home(), session, "log", following, _show)


def _show(line: bytes) -> None:
    """:param line: what another host says is one of its log can have anything in it."""
    click.echo(paragraphs(line.decode(errors="backslashreplace")), nl=False)
