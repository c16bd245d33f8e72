"""
Whose container is it? The labels that say so.

They name the session, the home, and the process that owns it, so precisely that no later process is taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ironcurtain.process.identity import ProcessIdentity

SESSION, HOME = "ironcurtain.session", "ironcurtain.home"
PID, PID_START, BOOT_ID = "ironcurtain.pid", "ironcurtain.pid-start", "ironcurtain.boot-id"


def owner_labels(session_id: str, home: str, owner: ProcessIdentity) -> dict[str, str]:
    """:returns: the labels of a container of a session."""
    return {
        SESSION: session_id,
        HOME: home,
        PID: str(owner.pid),
        PID_START: str(owner.start_time),
        BOOT_ID: owner.boot_id,
    }


def owner_of(labels: Mapping[str, str]) -> ProcessIdentity | None:
    """:returns: the process that owns a container; ``None`` if the labels do not say."""
    pid, start = labels.get(PID, ""), labels.get(PID_START, "")
    if not (pid.isascii() and pid.isdigit() and start.isascii() and start.isdigit() and BOOT_ID in labels):
        return None
    return ProcessIdentity(int(pid), int(start), labels[BOOT_ID])
