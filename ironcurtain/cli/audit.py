"""``ironcurtain audit``."""

from __future__ import annotations

import sys

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.files import follow
from ironcurtain.cli.output import as_json, home, print_json, print_text
from ironcurtain.session.elsewhere import session_directory

session_argument = click.argument("session", default="last", shell_complete=all_sessions)


@click.group()
def audit() -> None:
    """
    Verify, show or follow the audit log of a session.

    SESSION is a number, an id, or 'last' for the newest one. It may be running or ended.
    """


@audit.command()
@session_argument
@as_json
def verify(session: str, json_output: bool) -> None:
    """
    Check that no record was changed, removed or inserted.

    Exits with status 1 if one was. Keep the head digest elsewhere to detect later that the end was removed.
    """
    from ironcurtain.audit.chain import verify as check

    path = session_directory(home(), session).audit
    with path.open("rb") as lines:
        report = check(lines)
    if json_output:
        print_json({"file": str(path), "intact": report.intact, **_fields(report)})
    else:
        click.echo(f"{path}")
        for problem in report.problems:
            click.echo(f"  line {problem.line} {problem.what}")
        end = "ended" if report.ended else "not ended: the session is running, or was interrupted"
        click.echo(f"  {report.records} records, {end}{f', {report.recovered} torn lines' if report.recovered else ''}")
        click.echo(f"  head {report.head}")
        click.echo("Intact." if report.intact else "NOT intact.")
    if not report.intact:
        raise SystemExit(1)


@audit.command()
@session_argument
@as_json
def show(session: str, json_output: bool) -> None:
    """Show all records, one per line, wrapped to the terminal's width; with --json exactly as written."""
    _print(session, False, json_output)


@audit.command()
@session_argument
@as_json
def tail(session: str, json_output: bool) -> None:
    """Show all records, and new ones as they are written, until Ctrl-C."""
    _print(session, True, json_output)


def _print(session: str, following: bool, json_output: bool) -> None:
    from ironcurtain.audit.chain import read_record
    from ironcurtain.audit.view import render

    for line in follow(session_directory(home(), session).audit, following):
        record = read_record(line.removesuffix(b"\n"))
        if json_output:
            click.echo(line.decode(errors="backslashreplace").rstrip("\n"))
        else:
            text = render(record) if record is not None else "       (no record)"
            if sys.stdout.isatty():
                print_text(text)
            else:
                click.echo(text)


def _fields(report: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(report)  # type: ignore[call-overload, no-any-return]
