"""The sessions of one process: creates them from a table of kinds, limits their number, finds them, and ends them."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, NotFound, SessionError, Unavailable, UsageError
from ironcurtain.files.locks import FileLock, is_held, locked
from ironcurtain.home.agent_names import listed
from ironcurtain.home.layout import private_directory
from ironcurtain.home.numbers import Counter
from ironcurtain.home.settings import BUILT_IN_AGENT
from ironcurtain.session.budget import stricter
from ironcurtain.session.model import SessionInfo, SessionRequest
from ironcurtain.session.parts import Services, SessionKind
from ironcurtain.session.resume import check_repository, closed_session, continued
from ironcurtain.session.session import Session
from ironcurtain.session.spans import ExportedSession, SessionSpans


class TooMany(Unavailable):
    """The maximum number of sessions is running."""

    code = "TOO_MANY_SESSIONS"


class Slot:
    """
    One of the slots for running sessions. The kernel frees it when its process dies.

    :param directory: the directory with the lock files, one per session.
    """

    def __init__(self, directory: Path, session_id: str) -> None:
        self._directory, self._lock = directory, FileLock(directory / session_id)

    def take(self, most: int) -> None:
        """
        Take a slot.

        :param most: maximum number of running sessions; the setting ``limits.max_concurrent_sessions``.
        :raises TooMany: all slots are taken.
        """
        private_directory(self._directory)
        with locked(self._directory / "lock"):
            if (running := self._count()) >= most:
                raise TooMany(
                    f"{running} sessions with containers run, and max_concurrent_sessions in the section [limits] of "
                    f"config.toml allows {most}: end one (ironcurtain stop N), or raise it"
                )
            self._lock.acquire()

    def release(self) -> None:
        """Release the slot; can be called without one."""
        if self._lock.held:
            self._lock.path.unlink(missing_ok=True)
            self._lock.release()

    def _count(self) -> int:
        running = 0
        for path in self._directory.iterdir():
            if path.name == "lock":
                continue
            if is_held(path):
                running += 1
            else:
                path.unlink(missing_ok=True)  # its process was killed
        return running


CLOSED_KEPT = 50
"""Number of closed sessions that remain visible in this process."""


class SessionManager:
    """
    All sessions of this process.

    :param kinds: the table of kinds, by name.
    :param check_request: returns the real path of a request's directory. It raises
        :class:`~ironcurtain.errors.UsageError` if that cannot be a workspace, and
        :class:`~ironcurtain.errors.ConfigurationError` if the request's policy is wrong.
    :ivar services: for sessions that start from now on; running ones keep theirs.
    """

    log = Logger()

    def __init__(
        self,
        kinds: Mapping[str, SessionKind[Any]],
        services: Services,
        check_request: Callable[[SessionRequest], Path | None],
    ) -> None:
        self._kinds, self.services, self._check_request = kinds, services, check_request
        self._sessions: dict[int, Session] = {}
        self._stopping = False

    async def create(
        self,
        request: SessionRequest,
        attended: Callable[[], bool] = lambda: True,
        made: Callable[[Session], None] = lambda session: None,
        *,
        remote: bool = False,
    ) -> Session:
        """
        Create and start a session.

        :param attended: whether anybody could answer its escalations.
        :param made: called with the session before it starts, so that its events can be watched.
        :param remote: whether another process requests it, which does not own this process's terminal and standard
            streams.
        :raises UsageError: the kind does not exist or cannot be started remotely, or the workspace is unusable.
        :raises ConfigurationError: the policy is wrong.
        :raises SessionError: ``SESSION_INIT_FAILED``.
        """
        self._require_running()
        earlier = closed_session(self.services.home, request.resume) if request.resume else None
        if earlier is not None:
            request = continued(request, earlier, self.services.home)
        if not request.kind:
            request = replace(request, kind=self.services.settings.default_agent or BUILT_IN_AGENT)
        if (kind := self._kinds.get(request.kind)) is None:
            raise UsageError(f"there is no agent {request.kind!r}: choose one of {listed(sorted(self._kinds))}")
        if remote:
            kind.check_remote(request)
        if request.terminal is not None and kind.no_terminal:
            raise UsageError(f"{request.kind} cannot run in a terminal: {kind.no_terminal}")
        workspace = self._check_request(request)
        if request.workspace is not None:
            request = replace(request, workspace=workspace)
        check_repository(request, kind)
        request = await kind.check(request)
        self._require_running()
        slot = self._slot(kind)
        try:
            session = Session(kind, request, self._number(earlier), self._services(request), attended, earlier)
            await self._start_exported(session, made, kind)
        except BaseException:
            slot.release()
            raise
        session.ended().addCallback(lambda _: slot.release())
        return session

    async def require_room(self, request: SessionRequest) -> None:
        """
        Check whether a session could be started now, and begin nothing.

        :param request: its kind and options.
        :raises IronCurtainError: it could not, or the account that would pay has reached a limit.
        """
        self._require_running()
        name = request.kind or self.services.settings.default_agent or BUILT_IN_AGENT
        if (kind := self._kinds.get(name)) is None:
            raise UsageError(f"there is no agent {name!r}")
        await kind.check(request)
        self._slot(kind).release()
        if (left := kind.limited(request)) > 0:
            raise Unavailable(f"the account for {name} has reached a limit, which ends in {left:.0f} s")

    async def _start_exported(self, session: Session, made: Callable[[Session], None], kind: SessionKind[Any]) -> None:
        export = (
            None if kind.own_spans else self.services.export(self.services.settings.telemetry, self.services.proxies)
        )
        if export is None:
            return await self._start(session, made)
        spans = SessionSpans(session.number, session.identity.request.kind, secrets.token_hex)
        exported = ExportedSession(session.events, spans, export, self.services.now)
        try:
            await self._start(session, made)
        except BaseException:
            exported.stop()
            raise
        session.ended().addCallback(lambda _: exported.stop())

    async def _start(self, session: Session, made: Callable[[Session], None]) -> None:
        before = self._sessions.get(session.number)  # the file exists only if the session is resumed
        self._sessions[session.number] = session
        try:
            made(session)
            await session.start()
        except BaseException:
            del self._sessions[session.number]
            if before is not None:
                self._sessions[session.number] = before
            raise

    def _require_running(self) -> None:
        if self._stopping:
            raise SessionError("SESSION_INIT_FAILED", "the service is stopping")

    def _services(self, request: SessionRequest) -> Services:
        services = self.services.for_session()
        if request.budget is None:
            return services
        budget = stricter(services.settings.budget, request.budget)
        return replace(services, settings=msgspec.structs.replace(services.settings, budget=budget))

    def _slot(self, kind: SessionKind[Any]) -> Slot:
        slot = Slot(self.services.home.slots, uuid.uuid4().hex)
        if kind.in_container:
            self._prepare_home()
            slot.take(self.services.settings.limits.max_concurrent_sessions)
        return slot

    def _number(self, earlier: SessionInfo | None) -> int:
        self._prepare_home()
        if earlier is not None:
            return earlier.number
        try:
            return Counter(self.services.home.numbers("session")).next()
        except OSError as e:
            raise self._unusable(e) from None

    def _prepare_home(self) -> None:
        try:
            self.services.home.prepare()
        except OSError as e:
            raise self._unusable(e) from None

    def _unusable(self, error: OSError) -> SessionError:
        return SessionError(
            "SESSION_INIT_FAILED", f"the home {self.services.home.path} cannot be used: {error.strerror}"
        )

    def get(self, name: int | str) -> Session:
        """
        :param name: a session's number or id.
        :raises NotFound: this process has no such session.
        """
        for session in self._sessions.values():
            if name in (session.number, str(session.number), session.id):
                return session
        raise NotFound(f"there is no session {name} here: see 'ironcurtain sessions'")

    def all(self) -> list[Session]:
        """:returns: the sessions of this process by number, including recently closed ones."""
        return list(self._sessions.values())

    async def close(self, session: Session, reason: str) -> None:
        """End a session. It remains visible for a while."""
        await session.close(reason)
        closed = [other for other in self._sessions.values() if other.state == "closed"]
        for old in closed[:-CLOSED_KEPT]:
            del self._sessions[old.number]

    async def stop(self, reason: str) -> None:
        """End all sessions concurrently, and refuse new ones."""
        self._stopping = True
        await gatherResults([Deferred.fromCoroutine(self._stop_one(session, reason)) for session in self.all()])

    async def _stop_one(self, session: Session, reason: str) -> None:
        try:
            await session.close(reason)
        except IronCurtainError:
            self.log.failure("session {number} did not end cleanly", number=session.number)
