"""What the Engine says about a container's life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KILLED = 137
"""The exit status of what was ended by SIGKILL: also of everything in a container that ends."""


@dataclass(frozen=True, slots=True)
class State:
    """
    One look at a container.

    :param pid: of its first process, as this machine numbers it, where the Engine runs on this machine; 0 if none runs.
    :param exit_status: of the main program; 0 while it runs.
    :param out_of_memory: whether something inside was ended because the memory was used up.
    :param error: why it did not start, in the Engine's words.
    """

    running: bool
    pid: int
    exit_status: int
    out_of_memory: bool
    error: str

    @classmethod
    def of(cls, inspected: Mapping[str, Any]) -> State:
        """:param inspected: what :meth:`Engine.inspect` returned."""
        state = inspected["State"]
        return cls(
            bool(state["Running"]),
            int(state.get("Pid") or 0),
            int(state.get("ExitCode") or 0),
            bool(state.get("OOMKilled")),
            str(state.get("Error") or ""),
        )

    @property
    def reason(self) -> str:
        """Why it does not run, for people."""
        if self.out_of_memory:
            return f"it used up its memory (resources.memory_mb), exit status {self.exit_status}"
        if self.error:
            return self.error
        return (
            f"it was killed, exit status {KILLED}" if self.exit_status == KILLED else f"exit status {self.exit_status}"
        )
