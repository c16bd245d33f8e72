"""A session channel: a terminal or pipes at the person's end, a program at this one."""

from __future__ import annotations

import re
import struct
from collections import deque
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from twisted.conch.ssh.channel import SSHChannel
from twisted.conch.ssh.common import getNS
from twisted.conch.ssh.session import parseRequest_pty_req, parseRequest_window_change
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import IronCurtainError
from ironcurtain.operations import Principal
from ironcurtain.terminal.model import sane_size
from ironcurtain.terminal.sequences import RESTORE

WINDOW = 65536
"""
Window size: bytes that the peer may send before the program has taken them; also the queue for a program that starts.
"""

PIECE = 32768
"""Maximum bytes of one packet; supported by every client (RFC 4253, section 6.1)."""

PIECES = 4
"""Maximum number of packets sent together, before checking the TCP buffer again."""

QUEUE_LIMIT = 4 * 1024 * 1024
"""Maximum bytes queued for the peer. A well-behaved program stops long before, when the channel is blocked."""

SOFTWARE_FAILED = 70
"""Exit status of a program that failed internally (sysexits.h, EX_SOFTWARE)."""

HUNG_UP = 69
"""Exit status if the service ends the channel (sysexits.h, EX_UNAVAILABLE)."""

_TERMINAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class ChannelProgram(Protocol):
    """The program on a channel. It writes to the channel and closes it when it is done."""

    def received(self, data: bytes) -> None:
        """Input arrived."""

    def resized(self, columns: int, rows: int) -> None:
        """The person's terminal has a new size."""

    def drained(self) -> None:
        """The channel accepts more output. Called more often than necessary."""

    def lost(self) -> None:
        """The person disconnected; nothing can be written."""


class Programs(Protocol):
    """Starts programs."""

    def open(self, who: Principal, command: bytes | None, channel: SessionChannel) -> Awaitable[ChannelProgram]:
        """
        Start a program.

        :param command: the client's command; ``None``: none.
        :raises IronCurtainError: the message is printed, and the channel ends with its exit status.
        """


class SessionChannel(SSHChannel):
    """
    One channel (RFC 4254, section 6), with its own size and program.

    :ivar held: whether the program accepts no input now; then the peer's window is not enlarged.
    """

    log = Logger()
    name = b"session"
    conn: Any

    def __init__(self, **given: Any) -> None:
        super().__init__(localWindow=WINDOW, localMaxPacket=PIECE, **given)
        self.held = True
        self._environ: dict[str, str] = {}
        self._size: tuple[int, int] | None = None
        self._early: list[bytes] = []
        self._queue: deque[tuple[bool, memoryview]] = deque()
        self._queued = 0
        self._program: ChannelProgram | None = None
        self._starting: Deferred[ChannelProgram] | None = None
        self._status: int | None = None
        self._over = False

    def begin(self, programs: Programs, who: Principal) -> None:
        """Set what may run here, and for whom."""
        self._programs, self._who = programs, who

    @property
    def environ(self) -> Mapping[str, str]:
        """``TERM``, and ``COLORTERM`` if the client sent it."""
        return self._environ

    @property
    def has_terminal(self) -> bool:
        """Whether the person has a terminal."""
        return self._size is not None

    @property
    def blocked(self) -> bool:
        """Whether output is queued."""
        return bool(self._queue) or self._over or self._room() <= 0

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows of the person's terminal."""
        return self._size or sane_size(0, 0)

    def write(self, data: bytes) -> None:
        """Write output; ignored once the channel is closed."""
        self._put(False, data)

    def error(self, data: bytes) -> None:
        """Write to the person's standard error."""
        self._put(True, data)

    def hold(self, full: bool) -> None:
        """:param full: whether the program accepts no more input for now."""
        self.held = full
        due = self.localWindowSize - self.localWindowLeft
        if not full and due and not self.localClosed:
            self.conn.adjustWindow(self, due)

    def close(self, status: int | None) -> None:
        """Send queued output, then the exit status, then close. An unknown status counts as a failure."""
        if self._status is None:
            self._status = 1 if status is None else status & 0xFF
            self.pump()

    def hang_up(self, why: str) -> None:
        """End the program, restore the person's terminal, and print the reason."""
        if self._over or self._status is not None:
            return
        self._lose()
        self._clear()
        line = f"ironcurtain: {why}\r\n".encode()
        if self.has_terminal:
            self.write(RESTORE + b"\r\n" + line)
        else:
            self.error(line)
        self.close(HUNG_UP)

    def pump(self) -> None:
        """Send what can be sent now; then the program may continue."""
        self._send()
        if self._queue or self._over:
            return
        if self._status is not None:
            self._finish(self._status)
        elif not self.blocked and self._program is not None:
            self._guarded(self._program.drained)

    def addWindowBytes(self, data: int) -> None:
        """
        The peer enlarged the window. The program is notified in any case, since it may have seen the full window first.
        """
        self.remoteWindowLeft += data
        self.pump()

    def requestReceived(self, requestType: bytes, data: bytes) -> Any:
        """:returns: whether a request is granted; a malformed one is not."""
        try:
            return super().requestReceived(requestType, data)
        except (struct.error, ValueError, IndexError) as e:
            self.log.info("a request could not be read: {error}", error=type(e).__name__)
            return 0

    def request_pty_req(self, data: bytes) -> int:
        """The client requests a terminal."""
        if self._starting is not None or self._program is not None:
            return 0
        term, (rows, columns, _, _), _ = parseRequest_pty_req(data)
        self._size = sane_size(columns, rows)
        name = term.decode("ascii", "replace")
        self._environ["TERM"] = name if _TERMINAL.fullmatch(name) else "dumb"
        return 1

    def request_env(self, data: bytes) -> int:
        """Of the client's environment, only the terminal's colour variables are used."""
        name, value = getNS(data, 2)[:2]
        if name != b"COLORTERM" or value not in (b"truecolor", b"24bit"):
            return 0
        self._environ["COLORTERM"] = value.decode()
        return 1

    def request_window_change(self, data: bytes) -> int:
        """The person's terminal has a new size."""
        rows, columns, _, _ = parseRequest_window_change(data)
        if self._size is None:
            return 0
        self._size = sane_size(columns, rows)
        if self._program is not None:
            self._guarded(self._program.resized, *self._size)
        return 1

    def request_shell(self, data: bytes) -> int:
        """No command: the console."""
        return self._start(None)

    def request_exec(self, data: bytes) -> int:
        """A command. An invalid one is accepted, too, since only then can its error be printed."""
        return self._start(getNS(data)[0])

    def dataReceived(self, data: bytes) -> None:
        """Input arrived."""
        if self._program is not None:
            self._guarded(self._program.received, data)
        elif not self._over and self._status is None:
            self._early.append(data)  # the window bounds it

    def extReceived(self, dataType: int, data: bytes) -> None:
        """Ignored: clients have no standard error to send."""

    def eofReceived(self) -> None:
        """The person's input ended. This ends nothing, since ``ssh -n`` and ``ssh < file`` still show output."""

    def closeReceived(self) -> None:
        """The person's end is closed."""
        self._over = True
        self._lose()
        self._clear()
        self.loseConnection()

    def closed(self) -> None:
        """The channel is closed on both sides."""
        self._over = True
        self._lose()
        self._clear()

    def openFailed(self, reason: Any) -> None:
        """Never called: the server opens no channels."""

    def _start(self, command: bytes | None) -> int:
        if self._starting is not None or self._program is not None or self._status is not None:
            return 0
        self._starting = starting = Deferred.fromCoroutine(self._opened(command))
        starting.addCallbacks(self._running, self._failed)
        return 1

    async def _opened(self, command: bytes | None) -> ChannelProgram:
        return await self._programs.open(self._who, command, self)

    def _running(self, program: ChannelProgram) -> None:
        self._starting = None
        if self._over or self._status is not None:
            self._guarded(program.lost)
            return
        self._program = program
        early, self._early = self._early, []
        for data in early:
            self._guarded(program.received, data)
        if self._program is program:
            self.hold(False)
            self.pump()

    def _failed(self, failure: Failure) -> None:
        self._starting = None
        error = failure.value
        if isinstance(error, IronCurtainError):
            self._tell(str(error), error.exit_status)
        elif not isinstance(error, CancelledError):
            self.log.failure("a command over SSH failed", failure)
            self._tell("internal error: see the log", SOFTWARE_FAILED)

    def _tell(self, what: str, status: int) -> None:
        self.error(f"ironcurtain: {what}{chr(13) if self.has_terminal else ''}\n".encode())
        self.close(status)

    def _guarded(self, call: Any, *arguments: Any) -> None:
        """A failure in a program ends its channel, not the connection."""
        try:
            call(*arguments)
        except Exception:
            self.log.failure("a program over SSH failed")
            self.hang_up("internal error: see the log")

    def _put(self, to_error: bool, data: bytes) -> None:
        if self._over or self._status is not None:
            return
        if data and not self._queue and len(data) <= self._room():
            self.remoteWindowLeft -= len(data)
            self.conn.send_pieces(self, to_error, [data])
        elif data:
            self._queued += len(data)
            self._queue.append((to_error, memoryview(data)))
            self._send()
        if self._queued > QUEUE_LIMIT:
            self.log.error("a program over SSH wrote on though the channel was blocked")
            self.hang_up("this connection is too slow")

    def _room(self) -> int:
        """:returns: the maximum size of the next packet."""
        return 0 if self.conn.transport.blocked else min(self.remoteWindowLeft, self.remoteMaxPacket, PIECE)

    def _send(self) -> None:
        while self._queue and self._room() > 0:
            to_error, data = self._queue.popleft()
            pieces: list[memoryview] = []
            while data and len(pieces) < PIECES and (room := self._room()) > 0:
                pieces.append(data[:room])
                self.remoteWindowLeft -= len(pieces[-1])
                data = data[room:]
            if data:
                self._queue.appendleft((to_error, data))
            self._queued -= sum(map(len, pieces))
            self.conn.send_pieces(self, to_error, pieces)

    def _finish(self, status: int) -> None:
        self._over = True
        self.conn.sendRequest(self, b"exit-status", struct.pack(">L", status))
        self.conn.sendEOF(self)
        self.loseConnection()

    def _lose(self) -> None:
        program, self._program = self._program, None
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
        if program is not None:
            try:
                program.lost()
            except Exception:
                self.log.failure("a program over SSH failed when its person had gone")

    def _clear(self) -> None:
        self._queue.clear()
        self._early.clear()
        self._queued = 0
