"""``ironcurtain report``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import home, print_json, print_lines, settings
from ironcurtain.home.host_numbers import HostNumber, read_number
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.session.summary import SessionSummary
    from ironcurtain.session.verification import SessionRecords


@click.command()
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=all_sessions)
@click.option("--since", metavar="AGE", help="Only sessions used within this time, such as 12h, 7d or 4w.")
@click.option("--all", "everywhere", is_flag=True, help="All sessions of all machines of the fleet.")
@click.option(
    "--format", "form", type=click.Choice(("text", "json", "html")), default="text", help="The default is text."
)
def report(sessions: tuple[str, ...], since: str | None, everywhere: bool, form: str) -> None:
    """
    Report on sessions: requests, decisions, calls, refusals, cost, state of the audit log.

    Without SESSION, all sessions of the home are reported; build-3/12 is one of another machine of the fleet. HTML is
    one page without scripts: send it to a file. Exits with status 1 where 'audit verify' does.
    """
    from ironcurtain.cli.report_page import as_html
    from ironcurtain.session.elsewhere import session_directory
    from ironcurtain.session.recorded_summary import summary_of
    from ironcurtain.session.verification import RecordsReport, verify_records
    from ironcurtain.text.quantities import read_age
    from ironcurtain.view.session_report import as_text

    if sessions and everywhere:
        raise click.UsageError("--all reports all sessions: omit SESSION")
    where, names = home(), list(dict.fromkeys(sessions))
    numbers = [number for name in names if isinstance(number := read_number(name), HostNumber)]
    ours = [name for name in names if not isinstance(read_number(name), HostNumber)]
    verified = RecordsReport((), ())
    if ours or not names:
        chosen = [session_directory(where, name) for name in ours] if names else None
        verified = verify_records(where, settings(where).settings.audit.witness, chosen=chosen)
    if numbers or everywhere:
        from ironcurtain.cli.other_hosts import records_of_others

        others = records_of_others(where, None if everywhere else numbers)
        verified = RecordsReport(verified.sessions + others, verified.problems)
    oldest = time.time() - read_age(since) if since is not None else 0.0
    every = [(each, summary_of(each)) for each in verified.sessions]
    found = [summary for each, summary in every if _used(each, summary) >= oldest]
    if form == "json":
        print_json(found)
    elif form == "html":
        click.echo("".join(as_html(found)), nl=False)
    else:
        for line in as_text(found):
            print_lines(line)
    for problem in verified.problems:
        print_lines(f"NOT intact: {one_line(problem, 400)}", err=True)
    if verified.problems or not all(session.intact for session in found):
        raise SystemExit(1)


def _used(session: SessionRecords, summary: SessionSummary) -> float:
    """:returns: when a session was used last, in seconds since the epoch."""
    if isinstance(session.number, HostNumber):  # its files here are as old as the copy
        return summary.used
    try:
        return session.paths.snapshot.stat().st_mtime
    except OSError:
        return 0.0
