"""
Undo in a session that has ended: this process takes its lock, and continues its audit log, as a resumed session does.

Whatever ends the undo but a kill, its end is recorded. Meanwhile the session is described as one that has not ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.internet.threads import deferToThreadPool

from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.signing import SigningKey
from ironcurtain.cli.output import print_lines, settings
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import FileLock
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.operations.principal import owner
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session.elsewhere import description
from ironcurtain.session.model import SessionInfo, State
from ironcurtain.session.records import newest_head
from ironcurtain.session.resume import take_lock
from ironcurtain.session.snapshots import UndoReport, WorkspaceSnapshots
from ironcurtain.session.witnesses import open_witnesses


class UndoOfEnded:
    """
    :param number: of the session.
    :ivar signal: number of the last signal that came during the undo; 0: none.
    """

    def __init__(self, where: Home, paths: SessionPaths, number: int) -> None:
        self._where, self._paths, self._number = where, paths, number
        self._interrupt: Callable[[], None] | None = None
        self.signal = 0

    def signalled(self, number: int) -> bool:
        """
        Stop the undo before its next path.

        :returns: whether there is one, which then ends by itself.
        """
        if self._interrupt is None:
            return False
        self.signal = number
        self._interrupt()
        return True

    async def undo(self, reactor: Any, snapshot: int, everything: bool) -> UndoReport:
        """
        Restore a snapshot.

        :param everything: whether to restore also what others than the agent have changed since.
        :returns: what was done, maybe only in part, if a signal came.
        :raises Unavailable: the session runs.
        """
        lock = FileLock(self._paths.lock)
        take_lock(lock, self._number)
        try:
            return await self._recorded(reactor, snapshot, everything)
        finally:
            lock.release()

    async def _recorded(self, reactor: Any, snapshot: int, everything: bool) -> UndoReport:
        def in_thread(work: Any) -> Any:
            return deferToThreadPool(reactor, reactor.getThreadPool(), work)

        by, known = owner().name, settings(self._where).settings
        proxies = UpstreamProxies(reactor, known.network, os.environ)
        witnesses = open_witnesses(
            reactor, self._where, known.audit, proxies, in_thread, lambda text: print_lines(text, err=True)
        )
        key = SigningKey.load_or_make(self._where.records)
        before = description(self._paths)
        info = replace(before, state=State.PROCESSING)  # a crash from here on leaves a log without an end
        self._describe(info)
        try:
            audit = AuditLog(
                *(self._paths.audit, before.id, Redactor(), reactor, time.time, in_thread, key, witnesses.send),
                witnesses=witnesses.names,
            )
        except BaseException:
            self._describe(before)
            raise
        snapshots = WorkspaceSnapshots(
            self._paths.snapshots, known.undo, audit, reactor, time.time, in_thread, lambda event: None
        )
        self._interrupt = snapshots.interrupt
        try:
            try:
                return await snapshots.undo(snapshot, by, everything)
            finally:
                audit.append("end", reason=f"undone by {by}")
                info = replace(info, state=State.CLOSED)
        finally:
            self._interrupt = None
            try:
                await audit.close()
            finally:
                self._describe(replace(info, head=newest_head(audit)))
                await witnesses.finish()

    def _describe(self, info: SessionInfo) -> None:
        write_atomically(self._paths.snapshot, msgspec.json.encode(info) + b"\n")
