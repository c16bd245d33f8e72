"""``ironcurtain cleanup``."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.cli.questions import confirmed


@click.command()
@click.option("--older-than", "age", required=True, metavar="AGE", help="Minimum age, such as 12h, 7d or 4w.")
@click.option("--with-audit", is_flag=True, help="Remove audit logs and descriptions, too: the whole directories.")
@click.option("-y", "--yes", is_flag=True, help="Remove them without asking.")
@as_json
def cleanup(age: str, with_audit: bool, yes: bool, json_output: bool) -> None:
    """
    Remove the files of old sessions: workspaces, recordings, conversations.

    Prints what would go, and asks on a terminal; elsewhere nothing is removed without --yes. A session that runs is
    never touched, and audit logs stay unless you say --with-audit. Workspaces that you named yourself, and sessions
    with files outside the home, stay in any case.
    """
    from ironcurtain.session.cleanup import old_sessions, remove_session
    from ironcurtain.text.display import one_line
    from ironcurtain.text.quantities import counted, read_age, size_text

    where = home()
    old = old_sessions(where, time.time() - read_age(age), with_audit=with_audit)
    found = sorted(old, key=lambda session: session.number)
    total = size_text(sum(session.size for session in found))
    if not json_output:
        days = [datetime.fromtimestamp(session.ended, UTC).date().isoformat() for session in found]
        rows = [
            (str(session.number), day, size_text(session.size), one_line(session.label, 60))
            for session, day in zip(found, days, strict=True)
        ]
        if not found:
            print_lines(f"No session is older than {age}, or none has anything to remove.")
            return
        print_table(("SESSION", "ENDED", "SIZE", "LABEL"), rows)
        if not yes and sys.stdin.isatty() and sys.stdout.isatty():
            yes = confirmed(f"Remove {counted(len(found), 'session')}, {total}?")
        elif not yes:
            print_lines(f"Nothing was removed. With --yes: {counted(len(found), 'session')}, {total}.")
    failed = []
    for session in found if yes else ():
        try:
            remove_session(where, session, time.time(), with_audit=with_audit)
        except Exception as e:  # the others can go all the same
            failed.append(session.number)
            print_lines(f"session {session.number}: {e}", err=True)
    if json_output:
        removed = [session.number for session in found if yes and session.number not in failed]
        print_json({"found": found, "removed": removed})
    elif yes:
        print_lines(f"Removed {len(found) - len(failed)} of {len(found)}.")
    if failed:
        raise SystemExit(1)
