"""What ``ironcurtain doctor`` says of watchers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ironcurtain.cli.findings import HINT, OK, WRONG, Finding
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home

INOTIFY = Path("/proc/sys/fs/inotify")
"""Where Linux has the limits of inotify(7)."""


def watchers(where: Home) -> Iterator[Finding]:
    """Check each watcher, and how many directories the kernel can report changes of."""
    from ironcurtain.cli.watchers import problem_of
    from ironcurtain.operations.watchers import watchers_of
    from ironcurtain.watchers.model import Kind
    from ironcurtain.watchers.record import Records

    records, found = Records(where.watcher_records), watchers_of(where, os.environ)
    for watcher in found:
        record, what = records.read(watcher.name), f"watcher {watcher.name}"
        if problem := problem_of(watcher, where):
            yield Finding(what, WRONG, problem, f"Correct {where.watchers}")
        elif record.paused:
            mend = f"When that is mended: ironcurtain watchers resume {watcher.name}"
            yield Finding(what, HINT, f"paused: {one_line(record.paused)}", mend)
        elif record.trouble:
            yield Finding(what, HINT, one_line(record.trouble))
        else:
            yield Finding(what, OK, f"{watcher.trigger}, for {watcher.agent}")
    if any(watcher.trigger is Kind.FILE_CHANGE for watcher in found):
        yield _limits(INOTIFY)


def _limits(directory: Path) -> Finding:
    from ironcurtain.watchers.tree import MOST_DIRECTORIES

    what, mend = "watches of files", "Where watches are used up, files are looked at every few seconds instead."
    try:
        most, instances = (int((directory / f"max_user_{name}").read_text()) for name in ("watches", "instances"))
    except (OSError, ValueError):
        return Finding(what, HINT, "this system has no inotify: files are looked at every few seconds")
    detail = f"{most:,} directories and {instances:,} instances for all your programs"
    if most < MOST_DIRECTORIES:
        mend = f"{mend} Raise the limit: sysctl fs.inotify.max_user_watches={8 * MOST_DIRECTORIES}"
        return Finding(what, HINT, detail, mend)
    return Finding(what, OK, detail)
