"""Read what happened in a session from its audit log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ironcurtain.audit.chain import read_record
from ironcurtain.errors import NotFound
from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.recorded import SessionRecords


def audit_records(path: Path) -> Iterator[dict[str, Any]]:
    """
    :returns: the records of an audit log, without lines that are none.
    :raises NotFound: there is no such file.
    """
    if not path.exists():
        raise NotFound(f"there is no {path}")
    with path.open("rb") as lines:
        for line in lines:
            if (record := read_record(line.removesuffix(b"\n"))) is not None:
                yield record


def past_calls(path: Path, annotations: Annotations) -> SessionRecords:
    """
    :param annotations: the annotations in force.
    :returns: what happened up to the last record of an audit log.
    :raises NotFound: there is no such file.
    """
    records = SessionRecords(annotations)
    for _ in records.calls(audit_records(path)):
        pass
    return records
