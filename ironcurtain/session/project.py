"""
Prepare a session's workspace before its agent starts and before each turn, and report files to review at the end.

A repository is cloned. Then all files in the workspace are listed in a thread while other parts start, except an agent
that works immediately. At the end, the workspace is compared with that list, and files that programs run or obey on
their own are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, Unavailable, UsageError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.project.changes import Comparison
from ironcurtain.project.clone import clone
from ironcurtain.project.elsewhere import open_repository, repository_findings
from ironcurtain.project.manifest import read_manifest, take
from ironcurtain.project.planted import findings
from ironcurtain.project.tree import close, open_tree
from ironcurtain.sandbox.held_settings import HeldSettings
from ironcurtain.sandbox.linked_repository import LinkedRepository, linked_repository
from ironcurtain.session import events
from ironcurtain.session.findings import Findings
from ironcurtain.session.parts import Core
from ironcurtain.session.tools import session_protected
from ironcurtain.text.display import one_line

LOOK_SECONDS = 8.0
"""Time limit in seconds of the final comparison; parts of a session have 10 s to stop."""


FINDINGS_LIMIT = 200
"""Maximum number of findings kept per session; 'ironcurtain diff' shows all."""


def look_at(comparison: Comparison, late: Callable[[], bool]) -> Findings:
    """
    :param late: whether the time limit ended the comparison.
    :returns: the files that a person should review.
    """
    files = findings(comparison.changes(), comparison.before, comparison.after)
    complete = not late() and not comparison.unseen and len(files) <= FINDINGS_LIMIT
    return Findings(complete=complete, files=files[:FINDINGS_LIMIT])


class ProjectPart:
    """
    :param reactor: for the clone.
    :param environ: the environment of this process, of which git inherits a little.
    """

    log = Logger()

    def __init__(self, core: Core, reactor: Any, environ: Mapping[str, str]) -> None:
        self._core, self._reactor, self._environ = core, reactor, environ
        self._stopped, self._protected = False, session_protected(core, environ)
        self._taking: Deferred[None] | None = None
        self._repository: LinkedRepository | None = None
        self._held: HeldSettings | None = None
        with suppress(UsageError, OSError):  # people are told with the tools
            self._repository = linked_repository(str(core.workspace.resolve()), self._protected)

    async def start(self) -> None:
        """Clone the repository if there is one, and begin to list files; hold the settings of one that is elsewhere."""
        try:
            self._hold()
            await self._begin()
        except BaseException:
            self._release()
            raise

    async def _begin(self) -> None:
        core, address = self._core, self._core.request.options.get("repo")
        core.paths.findings.unlink(missing_ok=True)  # of the previous run, if this session is resumed
        if address and not core.paths.manifest.exists():
            core.audit.append("clone", address=address)
            core.emit(events.Progress(text=f"cloning {address}"))
            await clone(self._reactor, address, core.workspace, core.account, self._environ, self._cloning)
        if not core.paths.manifest.exists():
            self._taking = core.services.in_thread(self._take)

    async def settled(self) -> None:
        """Wait until all files are listed."""
        if self._taking is not None:
            taking, self._taking = self._taking, None
            await taking

    async def before_turn(self, turn: int | None) -> None:
        """Take a snapshot."""
        await self._core.snapshots.take(self._core.workspace, self._protected, turn)

    async def stop(self) -> None:
        """Compare the workspace with the list."""
        try:
            await self._compare()
        finally:
            self._release()

    def _hold(self) -> None:
        if (repository := self._repository) is None:
            return
        try:
            self._held = repository.hold()
        except (Unavailable, OSError) as e:
            text = f"git's settings cannot be held in {one_line(repository.directory)}: {one_line(str(e))}"
            self._core.emit(events.Notice(text=text))
        else:
            self._core.held.append(repository.directory)

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            try:
                held.release()
            except OSError as e:  # the agent can close the directory, or put something else in its place
                self._core.emit(events.Notice(text=f"git's settings stay held: {one_line(str(e))}"))

    async def _compare(self) -> None:
        clock, begun = self._core.services.clock, self._core.services.clock.seconds()
        if self._taking is not None:
            self._stopped = True
            with suppress(Exception):
                await self._taking
            return
        found: list[Findings] = []
        self._until = begun + LOOK_SECONDS
        try:
            await self._core.services.in_thread(lambda: found.append(self._look(lambda: clock.seconds() > self._until)))
        except (IronCurtainError, OSError, CancelledError) as e:
            self._core.log_line("session", f"the workspace could not be checked: {e}")
            self._tell(Findings(complete=False, files=[]))
        else:
            self._tell(found[0])

    def _cloning(self, line: str) -> None:
        self._core.log_line("git", line)

    def _take(self) -> None:
        tree = open_tree(str(self._core.workspace), lambda: self._stopped)
        try:
            take(tree, self._core.paths.manifest, self._core.paths.originals)
        finally:
            close(tree)
        if self._repository is not None:
            tree = open_repository(self._repository, lambda: self._stopped)
            try:
                take(tree, self._core.paths.repository_manifest, self._core.paths.repository_originals)
            finally:
                close(tree)

    def _look(self, late: Callable[[], bool]) -> Findings:
        found = self._look_at_workspace(late)
        if self._repository is None or not self._core.paths.repository_manifest.exists():
            return found
        elsewhere = self._look_at_repository(self._repository, late)
        files = [*elsewhere.files, *found.files]
        complete = found.complete and elsewhere.complete and len(files) <= FINDINGS_LIMIT
        return Findings(complete=complete, files=files[:FINDINGS_LIMIT])

    def _look_at_repository(self, repository: LinkedRepository, late: Callable[[], bool]) -> Findings:
        paths = self._core.paths
        tree = open_repository(repository, late)
        try:
            comparison = Comparison(read_manifest(paths.repository_manifest, paths.repository_originals), tree)
            files = repository_findings(comparison, repository.directory)
            return Findings(complete=not late() and not comparison.unseen, files=files)
        finally:
            close(tree)

    def _look_at_workspace(self, late: Callable[[], bool]) -> Findings:
        paths = self._core.paths
        tree = open_tree(str(self._core.workspace), late)
        try:
            return look_at(Comparison(read_manifest(paths.manifest, paths.originals), tree), late)
        finally:
            close(tree)

    def _tell(self, found: Findings) -> None:
        write_atomically(self._core.paths.findings, msgspec.json.encode(found) + b"\n")
        listed = [{"path": file.path, "what": file.what, "reason": file.reason} for file in found.files]
        self._core.audit.append("review", complete=found.complete, files=listed)
        for file in found.files:
            self._core.emit(
                events.FileToReview(path=file.path, what=file.what, reason=file.reason, building=file.building)
            )
