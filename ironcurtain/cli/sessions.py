"""``ironcurtain sessions`` and ``stop``."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.completion import running_sessions
from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.text.display import ago, one_line

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.session.model import SessionInfo

KILLED = "its process was ended"
"""Why a session is closed that could not say it itself."""


@click.command(short_help="List sessions.")
@click.option("--all", "-a", "ended", is_flag=True, help="Also list sessions that have ended, which can be resumed.")
@click.option("--filter", "-f", "words", metavar="TEXT", help="Only sessions whose task, agent or workspace has TEXT.")
@as_json
def sessions(ended: bool, words: str | None, json_output: bool) -> None:
    """
    List the running sessions, those of the daemon and those of other terminals, and with --all those that have ended.

    'ironcurtain start --resume N' resumes one that has ended.
    """
    from ironcurtain.cli.fleet import say_what_lists_lack
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.session.elsewhere import damaged, described
    from ironcurtain.view.sessions import remarks, sandbox

    where = home()
    owners = BlockingOwners(where)
    running = result(owners.sessions())
    known = {info.id for info in running}
    over = [_ended(where, info) for info in described(where) if info.id not in known] if ended else []
    found = sorted((*running, *over), key=lambda info: info.number)
    if words:
        found = [s for s in found if words.casefold() in f"{s.label}\n{s.kind}\n{s.workspace}".casefold()]
    say_what_lists_lack(where, owners.lacking())
    for path in damaged(where) if ended else ():
        lost = f"A session is not listed, since {one_line(str(path))} is damaged"
        print_lines(f"{lost}: see 'ironcurtain audit verify {one_line(path.parent.name)}'", err=True)
    if json_output:
        print_json(found)
        return
    if not found:
        print_lines("No session matches." if words else "No sessions. Start one with: ironcurtain start")
        return
    now = time.time()
    rows = [
        (
            str(s.number),
            s.state if s.id in known else "ended",
            ago(now - datetime.fromisoformat(s.started_at).timestamp()),
            str(s.turns) if ended else str(s.pending),
            sandbox(s) or "-",
            s.label,
        )
        for s in found
    ]
    print_table(("N", "STATE", "AGE", "MESSAGES" if ended else "WAITING", "SANDBOX", "SESSION"), rows)
    for line in remarks([info for info in found if info.id in known], now):
        print_lines(line)


def _ended(where: Home, info: SessionInfo) -> SessionInfo:
    """
    :param info: as its owner wrote it last, which may not have been the end if the owner was killed.
    :returns: an ended session.
    """
    from msgspec.structs import replace

    from ironcurtain.home.registry import label_by_message
    from ironcurtain.session.history import read_turns

    try:
        turns = read_turns(where.session(info.id).history)
    except OSError:
        turns = []
    known = replace(info, turns=max(info.turns, len(turns)), pending=0)
    if turns:
        known = replace(known, label=label_by_message(info.label, turns[0].message))
    return known if info.state == "closed" else replace(known, state="closed", reason=KILLED)


@click.command()
@click.argument("session", shell_complete=running_sessions)
def stop(session: str) -> None:
    """
    End SESSION, given by its number, its id, or 'last' for the newest one.

    Its current work is cancelled, its waiting calls are withdrawn, and its files are kept.
    """
    from ironcurtain.control.blocking import BlockingOwners, result

    client, number = result(BlockingOwners(home()).of_session(session))
    result(client.stop(number))
    print_lines(f"Session {number} has ended.")
