"""``ironcurtain undo``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.diff import changes_as_json, print_patch
from ironcurtain.cli.output import as_json, home, print_json, print_lines, settings
from ironcurtain.cli.questions import confirmed
from ironcurtain.cli.undoing import compared, done_lines, left_lines
from ironcurtain.errors import UsageError
from ironcurtain.session.elsewhere import description, kept_directory
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.home.session_paths import SessionPaths
    from ironcurtain.project.snapshot import SnapshotHead
    from ironcurtain.session.model import SessionInfo
    from ironcurtain.session.snapshots import UndoReport


@click.command()
@click.argument("turn", type=click.IntRange(min=1), required=False)
@click.option("--session", default="last", shell_complete=all_sessions, help="A number, an id, or 'last'.")
@click.option("--back", is_flag=True, help="Take back the last undo.")
@click.option("--all", "everything", is_flag=True, help="Restore also what you or others changed since.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only show what would be undone.")
@as_json
def undo(
    turn: int | None, session: str, back: bool, everything: bool, yes: bool, dry_run: bool, json_output: bool
) -> None:
    """
    Restore the workspace of a session as it was before TURN, by default the last one.

    A turn is a message and what the agent did with it, or an iteration of a loop; that of later ones is undone, too.
    Shows the difference and the calls whose effects stay, such as those that left this machine, and asks. What changed
    after the agent had worked is named and kept, unless you say --all. An undo can be undone with --back, and continues
    if it was interrupted, as by Ctrl-C. Not possible while the agent works.
    """
    if back and turn is not None:
        raise UsageError("give either a turn or --back")
    where = home()
    paths = kept_directory(where, session)
    info = description(paths)
    with compared(where, info, paths, turn, back, everything) as comparing:
        head, found = comparing.head, comparing.found
        answer: dict[str, Any] = {"session": info.number, "turn": head.turn, "snapshot": head.number}
        answer |= {"changes": changes_as_json(found.shown), "cannot_be_undone": comparing.lasting}
        answer |= {"audit_intact": comparing.records.intact, "kept": changes_as_json(found.kept)}
        if not json_output:
            print_patch(found.comparison, found.shown)
            _warn(comparing.summary(settings(where).settings.undo))
        needed = comparing.needed
    if dry_run or not needed:
        if json_output:
            print_json(answer | {"done": None})
        return
    if not yes:
        if json_output or not sys.stdin.isatty():
            raise UsageError("nothing was undone: add --yes to undo without being asked, or --dry-run")
        if not confirmed(f"Undo this in {one_line(head.workspace)}?", err=True):
            print_lines("Nothing was undone.", err=True)
            raise SystemExit(1)
    report, signal = _undo(where, paths, info, head, everything)
    if json_output:
        print_json(answer | {"done": report})
    else:
        print_lines("\n".join(done_lines(report, info.number)))
        _warn(left_lines(report))
    if report.interrupted and signal:
        raise SystemExit(128 + signal)
    if report.left or report.interrupted:
        raise SystemExit(1)


def _undo(
    where: Home, paths: SessionPaths, info: SessionInfo, head: SnapshotHead, everything: bool
) -> tuple[UndoReport, int]:
    """
    Undo in the process that has the session, or here if it has ended.

    :returns: what was done, and the number of the signal that came meanwhile; 0: none.
    """
    from ironcurtain.files.locks import is_held

    if is_held(paths.lock):
        from ironcurtain.control.blocking import BlockingOwners, result

        client, number = result(BlockingOwners(where).of_session(str(info.number)))
        return result(client.undo(number, head.number, everything)), 0
    from ironcurtain.cli.run import run
    from ironcurtain.cli.undo_of_ended import UndoOfEnded

    here = UndoOfEnded(where, paths, info.number)
    report = run(lambda reactor: here.undo(reactor, head.number, everything), here.signalled)
    return report, here.signal


def _warn(lines: Sequence[str]) -> None:
    for line in lines:
        print_lines(line, err=True)
