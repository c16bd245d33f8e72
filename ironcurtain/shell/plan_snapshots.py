"""Snapshots of a shell's directory before its plans, as long as they can be taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ironcurtain.session.snapshots import WorkspaceSnapshots
from ironcurtain.shell.messages import Message, Notice
from ironcurtain.shell.surroundings import ShellSurroundings

FILES, SIZE = 20_000, 200_000_000
"""Most files and bytes of a snapshot: a shell's directory can be anything, and nobody waits long for one."""


class PlanSnapshots:
    """
    :param directory: where the shell starts.
    :param protected: absolute paths that are in no snapshot.
    :param tell: gets messages for front ends.
    :ivar possible: whether the next plan can have one: the settings want it, and none has failed.
    """

    def __init__(
        self,
        snapshots: WorkspaceSnapshots,
        directory: Path,
        protected: Sequence[str],
        wanted: bool,
        tell: Callable[[Message], None],
    ) -> None:
        snapshots.bound(FILES, SIZE)
        self._snapshots, self._directory, self._protected = snapshots, directory, protected
        self.possible, self._tell = wanted, tell

    @classmethod
    def of(cls, around: ShellSurroundings, tell: Callable[[Message], None]) -> PlanSnapshots:
        """:returns: those of one session."""
        undo, directory = around.settings.undo, Path(around.options.directory)
        return cls(around.core.snapshots, directory, around.protected, undo.shell and undo.turns > 0, tell)

    async def prepare(self) -> bool:
        """
        Take a snapshot before a plan.

        :returns: whether there is one.
        """
        if self.possible:
            await self._snapshots.take(self._directory, self._protected, None)
            self.possible = self._snapshots.ready
            if not self.possible:
                self._tell(Notice(text=f"{self._snapshots.problem}, nor what later plans of this shell change"))
        return self._snapshots.ready

    async def end(self) -> None:
        """The plan is over."""
        await self._snapshots.end()
