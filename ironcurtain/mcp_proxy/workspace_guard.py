"""End a session as soon as a protected path appears in its workspace, where its sandboxes could read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from ironcurtain.errors import UsageError
from ironcurtain.sandbox.pieces import all_names, existing, names_in

LOOK_SECONDS = 0.2
"""Seconds between looks. Each call, and each request to a model, looks as well."""

ADVICE = (
    "move it out of the workspace, or let the agent work in a clone (--repo) or another worktree of the repository, "
    "which has only what git tracks"
)
"""What to do about a protected path in a workspace."""


class WorkspaceGuard:
    """
    A session does not start if its workspace contains a protected path. One that appears later is visible in its
    sandboxes at once. So from then on no result and no request to a model is passed on, and the session ends.

    :param workspace: a real path.
    :param protected: absolute paths that no agent may touch.
    :param appeared: called once with the path and the reason why nothing is passed on any more.
    """

    def __init__(
        self, workspace: str, protected: Iterable[str], clock: IReactorTime, appeared: Callable[[str, str], None]
    ) -> None:
        self._workspace, self._names = PurePath(workspace), names_in(workspace, all_names(protected))
        self._appeared, self._why = appeared, ""
        self._looking = LoopingCall(self.look)
        self._looking.clock = clock

    def start(self) -> None:
        """:raises UsageError: a protected path is there now."""
        if found := existing(self._workspace, self._names):
            raise UsageError(f"the workspace contains the protected path {found[0]}: {ADVICE}")
        if self._names:
            self._looking.start(LOOK_SECONDS, now=False)

    def stop(self) -> None:
        """Do not look any more."""
        if self._looking.running:
            self._looking.stop()

    def look(self) -> str:
        """:returns: why nothing may be passed on any more; empty if nothing has appeared."""
        if not self._why and (found := existing(self._workspace, self._names)):
            name = PurePath(found[0]).relative_to(self._workspace)
            self._why = f"the protected path {name} has appeared in the workspace, so the session ends: {ADVICE}"
            self.stop()
            self._appeared(found[0], self._why)
        return self._why
