"""An undo as a person is asked about it, and what it did: for the command and for a session's terminal."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from ironcurtain.text.display import json_line, one_line, paragraphs, readable_path
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.home.sections import UndoSettings
    from ironcurtain.home.session_paths import SessionPaths
    from ironcurtain.project.changes import Change
    from ironcurtain.project.restore import Restoration
    from ironcurtain.project.snapshot import SnapshotHead, Snapshots
    from ironcurtain.session.lasting import LastingCall
    from ironcurtain.session.model import SessionInfo
    from ironcurtain.session.snapshots import UndoReport
    from ironcurtain.session.verification import RecordsReport

SHOWN = 20
"""Maximum number of calls or paths named, since an agent decides how many there are."""

PATCH_LINES = 1000
"""Maximum number of lines of a difference that a session's terminal shows."""


class Comparing(msgspec.Struct, frozen=True):
    """
    The workspace compared with a snapshot.

    :param lasting: the calls since then that cannot be undone.
    :param records: the judgement of the audit log that has them.
    """

    session: SessionInfo
    snapshots: Snapshots
    head: SnapshotHead
    found: Restoration
    lasting: Sequence[LastingCall]
    records: RecordsReport

    @property
    def needed(self) -> bool:
        """Whether there is anything to restore, or an undo to continue."""
        return bool(self.found.changes or self.snapshots.interrupted())

    def summary(self, limits: UndoSettings) -> list[str]:
        """:returns: what the undo restores, and what cannot be undone, escaped."""
        from ironcurtain.project.snapshot import SnapshotKind

        head, found = self.head, self.found
        when = "the undo" if head.kind is SnapshotKind.UNDO else f"{turn_word(self.session)} {head.turn}"
        others = len(found.changes) - len(found.shown)
        more = f" and {counted(others, 'directory', 'directories')}" if others else ""
        lines = [f"Undo restores {counted(len(found.shown), 'file')}{more} as before {when}."]
        if not found.changes:
            but = ", but for what changed since" if found.kept else ""
            lines = [f"The workspace of session {self.session.number} is as it was before {when}{but}."]
        kept = [readable_path(change.path) for change in found.kept]
        if (restoring := self.snapshots.interrupted()) is not None and restoring.number == head.number:
            lines.insert(0, "An undo was interrupted; this continues it.")
        lines += _named("Changed after the agent's turn, and kept (--all restores it, too)", kept)
        if not found.known and found.changes:
            lines.append("How the agent left the workspace is not on record: this may undo changes of yours as well.")
        closed = [readable_path(path) for path in found.unlisted if found.snapshot.covers(f"{path}/")]
        lines += _named("Cannot be listed now, and is restored all the same", closed)
        lines += _doubts(self.session, self.records)
        calls = [f"{call.server}.{call.tool} {json_line(call.arguments, 160)}" for call in self.lasting]
        lines += _named("Cannot be undone", calls)
        if found.changes and (found.files > limits.max_files or found.size > limits.max_mb * 1_000_000):
            lines.append("This undo cannot be taken back: the workspace is too large now for a snapshot.")
        return lines


class Proposal(msgspec.Struct, frozen=True):
    """
    An undo to ask about.

    :param snapshot: number of the snapshot.
    :param needed: whether there is anything to do.
    :param lines: the difference and the summary, escaped.
    """

    snapshot: int
    workspace: str
    changes: tuple[Change, ...]
    needed: bool
    lines: tuple[str, ...]


Propose = Callable[[int | None], Awaitable[Proposal]]
"""Compares the workspace with the snapshot before a turn; ``None``: before the last one."""


def turn_word(session: SessionInfo) -> str:
    """:returns: the word for what a snapshot precedes."""
    return "iteration" if session.kind == "loop" else "turn"


@contextmanager
def compared(
    where: Home,
    session: SessionInfo,
    paths: SessionPaths,
    turn: int | None,
    back: bool = False,
    everything: bool = False,
) -> Iterator[Comparing]:
    """
    :param session: the session with these paths.
    :param turn: ``None``: the undo that was interrupted, else the last turn.
    :param back: compare with the snapshot from before the last undo.
    :param everything: restore also what others than the agent have changed since.
    :raises NotFound: there is no such snapshot, or it is damaged.
    :raises UsageError: the workspace cannot be read.
    """
    from ironcurtain.cli.output import settings
    from ironcurtain.project.snapshot import Snapshots
    from ironcurtain.project.undo import choose, restoration
    from ironcurtain.session.lasting import lasting_calls
    from ironcurtain.session.verification import verify_records

    snapshots = Snapshots(paths.snapshots)
    head = choose(snapshots, turn, back, turn_word(session))
    records = verify_records(where, settings(where).settings.audit.witness, chosen=[paths])
    lasting = []
    if not back and not paths.audit.is_symlink() and paths.audit.is_file():
        with paths.audit.open("rb") as lines:
            lasting = lasting_calls(lines, head.number)
    with restoration(snapshots, head, everything) as found:
        yield Comparing(session, snapshots, head, found, lasting, records)


def _doubts(session: SessionInfo, records: RecordsReport) -> list[str]:
    """:returns: a line, escaped, if the records do not show which calls were made."""
    if records.intact:
        return []
    found = [*records.problems, *(f"line {p.line} {p.what}" for each in records.sessions for p in each.log.problems)]
    what = f"The audit log of session {session.number} is NOT intact ({found[0]})"
    return [one_line(f"{what}: other calls may have been made that cannot be undone.", 600)]


def proposer(reactor: Any, where: Home, info: SessionInfo) -> Propose:
    """:returns: a function that compares the workspace of a session, in a thread."""
    from twisted.internet.threads import deferToThreadPool

    async def propose(turn: int | None) -> Proposal:
        return await deferToThreadPool(reactor, reactor.getThreadPool(), _proposal, where, info, turn)

    return propose


def _proposal(where: Home, info: SessionInfo, turn: int | None) -> Proposal:
    from ironcurtain.cli.output import settings

    with compared(where, info, where.session(info.id), turn) as comparing:
        head, found = comparing.head, comparing.found
        lines = list(islice(_patch_lines(found), PATCH_LINES + 1))
        if len(lines) > PATCH_LINES:
            lines[PATCH_LINES:] = [f"and more: 'ironcurtain undo --dry-run --session {info.number}' shows it"]
        lines += comparing.summary(settings(where).settings.undo)
        return Proposal(head.number, head.workspace, tuple(found.changes), comparing.needed, tuple(lines))


def _patch_lines(found: Restoration) -> Iterator[str]:
    from ironcurtain.project.patch import patch

    for change in found.shown:
        yield from readable(patch(change, found.comparison.before, found.comparison.after)).splitlines()


def readable(patch: str) -> str:
    """:returns: a patch for people, escaped."""
    return paragraphs(os.fsencode(patch).decode("utf-8", "replace"))


def done_lines(report: UndoReport, number: int) -> list[str]:
    """
    :param number: of the session.
    :returns: what an undo did, escaped, without what it left.
    """
    back = f"To take this back: ironcurtain undo --back --session {number}"
    if report.interrupted:
        so_far = f"The undo was interrupted. Restored {report.changed}, removed {report.removed}."
        return [so_far, f"To continue it: ironcurtain undo --session {number}", *([back] if report.kept else [])]
    if not report.kept:
        back = f"This cannot be taken back: {one_line(report.not_kept)}"
    kept = f" Kept {len(report.since)} that changed since." if report.since else ""
    return [f"Restored {report.changed}, removed {report.removed}.{kept}", back]


def left_lines(report: UndoReport) -> list[str]:
    """:returns: what an undo could not restore, escaped."""
    return _named("Could not be restored", [f"{each.path}: {each.reason}" for each in report.left])


def _named(what: str, lines: Sequence[str]) -> list[str]:
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [*(f"{what}: {one_line(line, 300)}" for line in lines[:SHOWN]), *more]
