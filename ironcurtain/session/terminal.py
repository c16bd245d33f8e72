"""A session's terminal for viewers in this and other processes. Output and input are recorded."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from ironcurtain.errors import NotAllowed, NotFound
from ironcurtain.home.layout import private_directory
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.model import Ticket
from ironcurtain.session.parts import Core, EventWords, Services, SessionListener
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.recording import Recording
from ironcurtain.terminal.remote import AttachFactory
from ironcurtain.terminal.wire import Hello

TICKET_SECONDS = 10.0
"""Lifetime of a token in seconds (clients attach at once)."""

MOST = 100
"""Maximum number of unused tokens; beyond it, the oldest is dropped."""


class _Issued(msgspec.Struct, frozen=True):
    by: str
    mode: Mode
    until: float


class Tickets:
    """
    The tokens of one session.

    :param seconds: a monotonic clock.
    :param new_token: returns an unguessable string.
    """

    def __init__(
        self, seconds: Callable[[], float], new_token: Callable[[], str] = lambda: secrets.token_urlsafe(32)
    ) -> None:
        self._seconds, self._new_token = seconds, new_token
        self._issued: dict[str, _Issued] = {}

    def issue(self, by: str, mode: Mode) -> str:
        """
        :param by: the viewer.
        :param mode: the mode to attach in.
        :returns: the token.
        """
        if len(self._issued) >= MOST:
            del self._issued[next(iter(self._issued))]
        token = self._new_token()
        self._issued[token] = _Issued(by, mode, self._seconds() + TICKET_SECONDS)
        return token

    def spend(self, token: str, mode: Mode) -> str:
        """
        Use up a token.

        :returns: the viewer.
        :raises NotAllowed: the token is unknown or expired, or is for another mode.
        """
        issued = self._issued.pop(token, None)
        if issued is None or issued.until < self._seconds() or issued.mode is not mode:
            raise NotAllowed("the token to attach is used, expired, or for another mode: request a new one")
        return issued.by


class SharedTerminal:
    """:param hub: hub of the agent's program."""

    def __init__(self, core: Core, hub: Hub) -> None:
        self._core, self._hub = core, hub
        self._tickets = Tickets(core.services.clock.seconds)
        self._run = core.services.home.session_run(core.id)
        self._listener: SessionListener | None = None

    async def start(self) -> None:
        """Accept viewers of other processes."""
        private_directory(self._run.directory)
        private_directory(self._run.host)
        factory = AttachFactory(self._check, self._core.services.clock)
        self._listener = await self._core.services.listen(self._run.stream_socket, factory)

    async def stop(self) -> None:
        """Accept no more viewers. Attached ones stay until the program ends."""
        if self._listener is not None:
            await self._listener.stop()

    def attach(self, by: str, mode: Mode) -> Hub:
        """
        Attach a viewer.

        :param by: its name, for the audit log.
        :raises AuditUnavailable: it cannot be recorded.
        """
        self._core.audit.append("attach", by=by, mode=mode)
        return self._hub

    def ticket(self, by: str, mode: Mode) -> Ticket:
        """:returns: a ticket for attaching from another process."""
        return Ticket(session=self._core.id, socket=str(self._run.stream_socket), token=self._tickets.issue(by, mode))

    def tell(self, words: EventWords) -> None:
        """Process an event of the session: mark it in the recording, and ring the viewers' bells if needed."""
        if self._hub.over is not None:
            return
        if words.rings:
            self._hub.bell(words.logged)
        elif words.marked:
            self._hub.mark(words.logged)

    def _check(self, hello: Hello) -> Hub:
        if hello.session != self._core.id:
            raise NotFound(f"session {hello.session} is not served here")
        return self.attach(self._tickets.spend(hello.token, hello.mode), hello.mode)


class RecordingFile:
    """
    A new file with mode 0600.

    :raises FileExistsError: it exists.
    :raises OSError: it cannot be created.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)

    def write(self, data: bytes) -> None:
        """:raises OSError: the data cannot be written completely."""
        if self._file.write(data) != len(data):
            raise OSError("the disk is full")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


MB = 1_000_000


def open_recording(
    paths: SessionPaths,
    services: Services,
    size: tuple[int, int],
    title: str,
    echoes: Callable[[], bool] = lambda: False,
) -> Recording | None:
    """
    Begin the recording of a session's terminal. An earlier one, from before a resume, is renamed: ``recording.1.cast``
    is the first, ``recording.cast`` always the last.

    :param size: columns and rows of the terminal.
    :param title: for players.
    :param echoes: returns whether the terminal echoes input now.
    :returns: ``None`` if recording is disabled.
    :raises OSError: the file cannot be created.
    """
    chosen = services.settings.terminal
    if not chosen.record:
        return None
    if paths.recording.exists():
        paths.recording.rename(_next_name(paths.recording))
    return Recording(
        RecordingFile(paths.recording),
        services.clock.seconds(),
        *size,
        timestamp=services.now(),
        title=title,
        echoes=echoes,
        limit=int(chosen.recording_mb * MB),
    )


def _next_name(path: Path) -> Path:
    number = 1
    while (free := path.with_suffix(f".{number}{path.suffix}")).exists():
        number += 1
    return free
