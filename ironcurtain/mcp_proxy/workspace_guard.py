"""End a session as soon as a protected path appears in its workspace, where its sandboxes could read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall

from ironcurtain.errors import UsageError
from ironcurtain.sandbox.pieces import all_names, existing, names_in

LOOK_SECONDS = 0.2
"""Seconds between looks. Each call, and each request to a model, looks as well."""

END_SECONDS = 0.2
"""Seconds until the session ends, in which answers that say why get out."""

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
    :param appeared: called at once with the path and the reason why nothing is passed on any more.
    :param end: called a moment later with the reason; ends the session.
    """

    def __init__(
        self,
        workspace: str,
        protected: Iterable[str],
        clock: IReactorTime,
        appeared: Callable[[str, str], None],
        end: Callable[[str], None],
    ) -> None:
        self._workspace, self._names = PurePath(workspace), names_in(workspace, all_names(protected))
        self._clock, self._appeared, self._end, self._why = clock, appeared, end, ""
        self._ending: IDelayedCall | None = None
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
        if self._ending is not None and self._ending.active():
            self._ending.cancel()

    def look(self) -> str:
        """:returns: why nothing may be passed on any more; empty if nothing has appeared."""
        if not self._why and (found := existing(self._workspace, self._names)):
            name = PurePath(found[0]).relative_to(self._workspace)
            self._why = f"the protected path {name} has appeared in the workspace, so the session ends: {ADVICE}"
            self.stop()
            self._ending = self._clock.callLater(END_SECONDS, self._end, self._why)
            self._appeared(found[0], self._why)
        return self._why
