"""A session's files: directories, snapshots, the log for people, the audit log, and the entry in the registry."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ironcurtain.approver.trusted_input import TrustedInput
from ironcurtain.audit.chain import timestamp
from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import AuditUnavailable, IronCurtainError
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.escalation.rendezvous import Rendezvous
from ironcurtain.files.locks import FileLock
from ironcurtain.home.layout import Home, account_directory, private_directory
from ironcurtain.home.numbers import Counter
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.process.accounts import Account
from ironcurtain.process.identity import identify
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session import events
from ironcurtain.session.elsewhere import Elsewhere, remember
from ironcurtain.session.escalation_events import escalation_event
from ironcurtain.session.model import AuditHead, SessionInfo, SessionRequest
from ironcurtain.session.parts import Services
from ironcurtain.session.resume import take_lock
from ironcurtain.session.snapshots import WorkspaceSnapshots
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.audit.witness import Witnesses

_log = Logger()


def make_directories(
    session_id: str, number: int, request: SessionRequest, paths: SessionPaths, services: Services, lock: FileLock
) -> Account:
    """
    Create a session's directories.

    :param lock: taken, and released if this fails.
    :returns: the account of the session.
    :raises Unavailable: the session is running.
    """
    account = services.choose_account(request.workspace)
    private_directory(paths.directory)
    take_lock(lock, number)
    try:
        private_directory(paths.escalations)
        if request.directory is not None:
            remember(services.home, Elsewhere(id=session_id, number=number, directory=str(paths.directory)))
        if request.workspace is None:
            account_directory(paths.sandbox, account.uid, account.gid)
    except BaseException:
        lock.release()
        raise
    return account


def make_snapshots(
    paths: SessionPaths, services: Services, audit: AuditLog, emit: Callable[[events.SessionEvent], None]
) -> WorkspaceSnapshots:
    """:returns: the snapshots of a session's workspace, not started."""
    settings, clock = services.settings.undo, services.clock
    return WorkspaceSnapshots(paths.snapshots, settings, audit, clock, services.now, services.in_thread, emit)


def make_queue(services: Services, attended: Callable[[], bool]) -> EscalationQueue:
    """
    :param attended: returns whether anybody could answer.
    :returns: the queue of a session's escalations, with numbers of the home.
    """

    def next_number() -> Deferred[int]:
        counter, got = Counter(services.home.numbers("escalation")), list[int]()
        return services.in_thread(lambda: got.append(counter.next())).addCallback(lambda _: got[0])

    return EscalationQueue(
        next_number=next_number,
        new_id=lambda: uuid.uuid4().hex,
        clock=services.clock,
        now=services.now,
        next_closing=services.next_closing,
        timeout=services.settings.escalation.timeout_seconds,
        attended=attended,
        limit=services.settings.escalation.max_waiting,
    )


def make_trusted_input(paths: SessionPaths, services: Services) -> TrustedInput:
    """:returns: what the user of a session types."""
    return TrustedInput(paths.trusted_input, paths.user_context, services.redactor.text, services.now)


async def publish_escalations(
    paths: SessionPaths, queue: EscalationQueue, services: Services, emit: Callable[[events.SessionEvent], None]
) -> Rendezvous:
    """
    Publish a session's escalations as files and events.

    :returns: the files' part, started.
    """
    rendezvous = Rendezvous(paths.escalations, queue, services.watcher, services.now)
    rendezvous.start()
    queue.subscribe(lambda change: emit(escalation_event(change)))
    return rendezvous


async def open_audit(
    info: SessionInfo,
    paths: SessionPaths,
    services: Services,
    witnesses: Witnesses,
    emit: Callable[[events.SessionEvent], None],
) -> AuditLog:
    """
    Open a session's audit log and record the session's start.

    :param witnesses: get its signed heads.
    :param emit: gets a notice if nothing more can be recorded.
    :returns: the log.
    :raises AuditUnavailable: it cannot be written.
    :raises ConfigurationError: the key that signs it is damaged, or others can read it.
    """
    from ironcurtain.audit.signing import SigningKey

    audit = AuditLog(
        paths.audit,
        info.id,
        services.redactor,
        services.clock,
        services.now,
        services.in_thread,
        SigningKey.load_or_make(services.home.records),
        witnesses.send,
        _notices(emit),
        witnesses.names,
    )
    try:
        by = {"by": info.by} if info.by else {}
        audit.append("session", number=info.number, kindOfSession=info.kind, workspace=info.workspace, **by)
    except AuditUnavailable:
        await audit.close()
        raise
    return audit


def newest_head(audit: AuditLog | None) -> AuditHead | None:
    """:returns: what is told of a log's newest signed head; ``None``: there is none."""
    if audit is None or (head := audit.signed_head) is None:
        return None
    return AuditHead(sequence=head.sequence, digest=head.head, final=audit.closed)


async def make_witnesses(services: Services, emit: Callable[[events.SessionEvent], None]) -> Witnesses:
    """
    :param emit: gets a notice if a witness cannot be reached.
    :returns: the witnesses of a session's audit log, which the settings name.
    :raises ConfigurationError: one is in the home, or a file for it cannot be used.
    """
    from ironcurtain.session.witnesses import open_witnesses

    audit, proxies = services.settings.audit, services.proxies
    return open_witnesses(services.clock, services.home, audit, proxies, services.in_thread, _notices(emit))


def _notices(emit: Callable[[events.SessionEvent], None]) -> Callable[[str], None]:
    return lambda text: emit(events.Notice(text=text))


async def close_audit(audit: AuditLog, number: int, reason: str) -> None:
    """Record why the session ended, if possible."""
    try:
        audit.append("end", reason=reason)
    except IronCurtainError as e:
        _log.error("the end of session {number} could not be recorded: {error}", number=number, error=e)
    await audit.close()


def entry(info: SessionInfo, paths: SessionPaths, control_socket: str) -> SessionEntry:
    """
    :param control_socket: control socket of this process; empty if it has none.
    :returns: the registry entry of a session of this process.
    """
    owner = identify()
    return SessionEntry(
        session_id=info.id,
        escalation_dir=str(paths.escalations),
        label=info.label,
        started_at=info.started_at,
        pid=owner.pid,
        pid_start_time=owner.start_time,
        boot_id=owner.boot_id,
        number=info.number,
        kind=info.kind,
        control_socket=control_socket,
    )


class Registration:
    """A session's registry entry, present from the session's start to its stop."""

    def __init__(self, home: Home, entry: SessionEntry) -> None:
        self._registry, self._entry = SessionRegistry(home.registry), entry

    async def start(self) -> None:
        """Add the entry."""
        self._registry.add(self._entry)

    async def stop(self) -> None:
        """Remove the entry."""
        self._registry.remove(self._entry.session_id)


TEXT_LIMIT = 2000
"""Maximum length in characters of one line's text."""


class SessionLog:
    """
    Writes lines to a session's log. A line that cannot be written is dropped; the first failure is logged by this
    process.

    :param now: returns seconds since the epoch.
    :param redactor: redacts every line.
    """

    log = Logger()

    def __init__(self, path: Path, now: Callable[[], float], redactor: Redactor) -> None:
        self._path, self._now, self._redactor = path, now, redactor
        self._fd = -1
        self._failed = False

    def open(self) -> None:
        """Create the file, or continue it."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags, 0o600)

    def close(self) -> None:
        """Close the file. Later lines are dropped."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def write(self, source: str, text: str) -> None:
        """
        Write one line.

        :param source: the source in a word.
        :param text: any text; it becomes one line that is safe to show.
        """
        if self._fd < 0:
            return
        clean = one_line(self._redactor.value(text, TEXT_LIMIT), TEXT_LIMIT)
        try:
            os.write(self._fd, f"{timestamp(self._now())} {source}: {clean}\n".encode())
        except OSError as e:
            if not self._failed:
                self.log.error("{path} cannot be written: {error}", path=self._path, error=e)
            self._failed = True
