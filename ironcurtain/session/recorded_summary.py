"""The summary of a session whose log was judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ironcurtain.audit.chain import read_record
from ironcurtain.session.history import read_turns
from ironcurtain.session.summary import SessionSummary, summarize
from ironcurtain.session.verification import SessionRecords


def summary_of(session: SessionRecords) -> SessionSummary:
    """:returns: the session in numbers, as its files have it."""
    records, turns = _records(session.paths.audit), read_turns(session.paths.history)
    return summarize({**session.description, "id": session.id}, records, turns, session.log.intact, session.proved)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_symlink() or not path.is_file():
        return
    with path.open("rb") as lines:
        for line in lines:
            if (record := read_record(line.removesuffix(b"\n"))) is not None:
                yield record
