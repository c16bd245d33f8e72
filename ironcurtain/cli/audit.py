"""``ironcurtain audit``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_text, settings
from ironcurtain.cli.paths import UserPath
from ironcurtain.cli.session_files import session_files, show_file
from ironcurtain.errors import NotFound
from ironcurtain.home.host_numbers import HostNumber, read_number
from ironcurtain.text.display import one_line, paragraphs
from ironcurtain.text.quantities import counted, noun

if TYPE_CHECKING:
    from ironcurtain.session.verification import RecordsReport, SessionRecords

PROBLEMS_SHOWN = 10
"""Maximum number of problems that are printed: one bad record makes all later signatures wrong."""

session_argument = click.argument("session", default="last", shell_complete=all_sessions)


@click.group()
def audit() -> None:
    """
    Verify, show or follow the audit log of a session.

    SESSION is a number, an id, or 'last' for the newest one. It may be running or ended.
    """


@audit.command()
@click.argument("session", required=False, shell_complete=all_sessions)
@as_json
@click.option("--key", type=UserPath(), help="The public key to check with (default: the home's).")
@click.option("--witness", type=UserPath(), help="Compare with heads in this file (default: those set).")
def verify(session: str | None, json_output: bool, key: Path | None, witness: Path | None) -> None:
    """
    Check that no record of SESSION, or of any, was changed or removed.

    Inserted records are found, too. Prints the first bad records, and what is proved. Exits with status 1 if a record
    is bad or lacks its signature, if a session has gone that a witness knows, or if a witness cannot be read. Removing
    the last records of a session that has not ended shows only if a witness has a later head: name a file of heads with
    --witness, such as the output of 'audit heads' or of 'journalctl -t ironcurtain', or what an https:// witness got,
    one head a line; or set witnesses in the section [audit] of config.toml.
    """
    from ironcurtain.session.verification import verify_records

    where = home()
    chosen = [session_files(where, session)] if session is not None else None
    configured, fleet = settings(where).settings.audit.witness, None
    if isinstance(number := read_number(session or ""), HostNumber):
        from ironcurtain.fleet.copies import key_of
        from ironcurtain.fleet.heads import heads_file

        key, fleet, configured = key or key_of(where, number), heads_file(where, number.host), ()
    report = verify_records(where, configured, chosen=chosen, key=key, witness=witness, fleet=fleet)
    if not report.sessions and not report.problems:
        raise NotFound(f"there is no session yet in {where.sessions}")
    if json_output:
        print_json(_as_json(report, alone=chosen is not None))
    else:
        for each in report.sessions:
            _print_log(each)
        for problem in report.problems:
            print_lines(one_line(problem, 400))
        click.echo(_verdict(report))
    if not report.intact:
        raise SystemExit(1)


def _as_json(report: RecordsReport, *, alone: bool) -> dict[str, object]:
    """:param alone: whether one session was named, which then is described at the top."""
    sessions: list[dict[str, object]] = [
        {"file": str(each.paths.audit), "session": each.id, "number": each.number}
        | {
            "intact": each.log.intact,
            "proved": each.proved,
            **msgspec.to_builtins(each.log),
            "witnesses": sorted(each.log.witnesses),
        }
        for each in report.sessions
    ]
    top = sessions[0] if alone else {"sessions": sessions}
    return {**top, "intact": report.intact, "problems": report.problems}


def _print_log(session: SessionRecords) -> None:
    report = session.log
    found, chain = report.problems, report.chain
    click.echo(f"{session.paths.audit}")
    for problem in found[:PROBLEMS_SHOWN]:
        print_lines(f"  line {problem.line} {one_line(problem.what, 400)}")
    if (more := len(found) - PROBLEMS_SHOWN) > 0:
        click.echo(f"  and {more} more {noun(more, 'problem')}")
    end = "ended" if chain.ended else "not ended: the session is running, or was interrupted"
    torn = f", {counted(chain.recovered, 'torn line')}" if chain.recovered else ""
    click.echo(f"  {counted(chain.records, 'record')}, {end}{torn}")
    click.echo(f"  head {chain.head}")
    for sentence in session.proved:
        print_lines(f"  {one_line(sentence, 400)}")


def _verdict(report: RecordsReport) -> str:
    if report.intact:
        unproved = sum(session.log.unproved for session in report.sessions)
        have = counted(unproved, "record has", "records have")
        return f"Intact. {have} no signature: see above." if unproved else "Intact."
    bad = [str(session.number) for session in report.sessions if not session.log.intact]
    several = bad and len(report.sessions) > 1
    return f"NOT intact: {noun(len(bad), 'session')} {', '.join(bad)}." if several else "NOT intact."


@audit.command()
@click.option("--id", "id_only", is_flag=True, help="Print only the id that records have.")
def key(id_only: bool) -> None:
    """
    Print the public key that verifies this home's signatures, in PEM.

    Keep it on another machine: whoever has it and a copy of a log can verify it with 'audit verify --key'.
    """
    from ironcurtain.audit.signing import SigningKey

    where = home()
    where.prepare()
    public = SigningKey.load_or_make(where.records).public
    click.echo(public.id if id_only else public.pem, nl=id_only)


@audit.command()
@session_argument
@click.option("--all", "everything", is_flag=True, help="Print all heads, not only the newest.")
def heads(session: str, everything: bool) -> None:
    """
    Print the newest signed head of a session's log, as a JSON line.

    Kept on another machine, it shows later whether the log was cut or replaced: 'audit verify --witness FILE'.
    """
    from ironcurtain.audit.signing import SignedHead
    from ironcurtain.audit.witness_lines import head_line
    from ironcurtain.session.verification import signed_heads

    found: list[SignedHead] = list(signed_heads(session_files(home(), session).audit))
    for head in found if everything else found[-1:]:
        click.echo(head_line(head).decode(), nl=False)


@audit.command()
@session_argument
@as_json
def show(session: str, json_output: bool) -> None:
    """
    Show all records, one per line.

    They are wrapped to the terminal's width. With --json they are printed exactly as written.
    """
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

    def show(line: bytes) -> None:
        if json_output:
            written = line.decode(errors="backslashreplace").rstrip("\n")
            click.echo(paragraphs(written) if sys.stdout.isatty() else written)  # another host writes what it likes
            return
        record = read_record(line.removesuffix(b"\n"))
        text = render(record) if record is not None else "       (no record)"
        if sys.stdout.isatty():
            print_text(text)
        else:
            click.echo(text)

    show_file(home(), session, "audit", following, show)
