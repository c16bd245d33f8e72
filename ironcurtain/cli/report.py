"""``ironcurtain report``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import home, print_json, print_lines, settings

if TYPE_CHECKING:
    from pathlib import Path

    from ironcurtain.home.session_paths import SessionPaths
    from ironcurtain.view.report import SessionSummary


@click.command()
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=all_sessions)
@click.option("--since", metavar="AGE", help="Only sessions used within this time, such as 12h, 7d or 4w.")
@click.option(
    "--format", "form", type=click.Choice(("text", "json", "html")), default="text", help="The default is text."
)
def report(sessions: tuple[str, ...], since: str | None, form: str) -> None:
    """
    Report on sessions: requests, decisions, calls, refusals, cost, state of the audit log.

    Without SESSION, all sessions of the home are reported. HTML is one page without scripts: send it to a file.
    """
    from ironcurtain.session.elsewhere import elsewhere, session_directory, snapshots
    from ironcurtain.text.quantities import read_age
    from ironcurtain.view.report import as_html, as_text

    where = home()
    if sessions:
        chosen = [session_directory(where, name) for name in sessions]
    else:
        chosen = [where.session(str(info["id"])) for info in snapshots(where)]
        chosen += [other.paths for other in elsewhere(where)]
    oldest = time.time() - read_age(since) if since is not None else 0.0
    found = [_summary(paths) for paths in dict.fromkeys(chosen) if _used(paths.snapshot) >= oldest]
    found.sort(key=lambda session: session.number)
    if form == "json":
        print_json(found)
    elif form == "html":
        click.echo("".join(as_html(found)), nl=False)
    else:
        for line in as_text(found):
            print_lines(line)


def _used(snapshot: Path) -> float:
    try:
        return snapshot.stat().st_mtime
    except OSError:
        return 0.0


def _summary(paths: SessionPaths) -> SessionSummary:
    from ironcurtain.session.history import read_turns
    from ironcurtain.session.verification import check_session, description, public_key
    from ironcurtain.view.report import summarize

    where = home()
    checked = check_session(where, paths, public_key(where), None, settings(where).settings.audit.witness)
    said = description(paths.snapshot)
    return summarize(said, _records(paths.audit), read_turns(paths.history), checked.intact, checked.proofs())


def _records(path: Path) -> Iterator[dict[str, Any]]:
    from ironcurtain.audit.chain import read_record

    if path.is_symlink() or not path.is_file():
        return
    with path.open("rb") as lines:
        for line in lines:
            if (record := read_record(line.removesuffix(b"\n"))) is not None:
                yield record
