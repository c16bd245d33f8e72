"""A session channel: a terminal or a pair of pipes at the person's end, a program of ours at this one."""

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
"""What the peer may send before the program has taken it; also the most that waits for a program that begins."""

PIECE = 32768
"""Most bytes of one packet; what every client takes (RFC 4253, section 6.1)."""

PIECES = 4
"""Most packets that are sent together (then the TCP buffer is looked at again)."""

QUEUE_LIMIT = 4 * 1024 * 1024
"""Most bytes that wait for the peer. A good program stops when the channel is blocked, long before."""

SOFTWARE_FAILED = 70
"""Exit status of a program that failed by itself (sysexits.h, EX_SOFTWARE)."""

HUNG_UP = 69
"""Exit status where the service ends the channel (sysexits.h, EX_UNAVAILABLE)."""

_TERMINAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class ChannelProgram(Protocol):
    """What runs on a channel. It writes to the channel and closes it when it is done."""

    def received(self, data: bytes) -> None:
        """What the person typed."""

    def resized(self, columns: int, rows: int) -> None:
        """The person's terminal has another size."""

    def drained(self) -> None:
        """The channel may take more. Comes more often than needed."""

    def lost(self) -> None:
        """The person has gone; nothing can be written any more."""


class Programs(Protocol):
    """Knows what to run."""

    def open(self, who: Principal, command: bytes | None, channel: SessionChannel) -> Awaitable[ChannelProgram]:
        """
        Begin a program.

        :param command: as the client sent it; ``None``: none.
        :raises IronCurtainError: the person is told, and the channel ends with its exit status.
        """


class SessionChannel(SSHChannel):
    """
    One channel (RFC 4254, section 6), with a size and a program of its own.

    :ivar held: whether the program takes no input now; the peer's window is then not opened again.
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
        """Say what may run here, and for whom."""
        self._programs, self._who = programs, who

    @property
    def environ(self) -> Mapping[str, str]:
        """``TERM``, and ``COLORTERM`` where the client sent it."""
        return self._environ

    @property
    def has_terminal(self) -> bool:
        """Whether the person's end is a terminal."""
        return self._size is not None

    @property
    def blocked(self) -> bool:
        """Whether what is written now has to wait."""
        return bool(self._queue) or self._over or self._room() <= 0

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows of the person's terminal."""
        return self._size or sane_size(0, 0)

    def write(self, data: bytes) -> None:
        """Send; harmless once the channel is closed."""
        self._put(False, data)

    def error(self, data: bytes) -> None:
        """Send to the person's standard error."""
        self._put(True, data)

    def hold(self, full: bool) -> None:
        """:param full: whether the program takes no more input for now."""
        self.held = full
        due = self.localWindowSize - self.localWindowLeft
        if not full and due and not self.localClosed:
            self.conn.adjustWindow(self, due)

    def close(self, status: int | None) -> None:
        """Send what waits, then the exit status, then the end. A status that is not known counts as a failure."""
        if self._status is None:
            self._status = 1 if status is None else status & 0xFF
            self.pump()

    def hang_up(self, why: str) -> None:
        """End the program, put the person's terminal in order, and say why."""
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
        """Send what can be sent now; then the program may go on."""
        self._send()
        if self._queue or self._over:
            return
        if self._status is not None:
            self._finish(self._status)
        elif not self.blocked and self._program is not None:
            self._guarded(self._program.drained)

    def addWindowBytes(self, data: int) -> None:
        """The peer takes more. The program is told in any case: it may have seen the full window before we did."""
        self.remoteWindowLeft += data
        self.pump()

    def requestReceived(self, requestType: bytes, data: bytes) -> Any:
        """:returns: whether a request is granted; one that cannot be read is not."""
        try:
            return super().requestReceived(requestType, data)
        except (struct.error, ValueError, IndexError) as e:
            self.log.info("a request could not be read: {error}", error=type(e).__name__)
            return 0

    def request_pty_req(self, data: bytes) -> int:
        """The person's end is a terminal."""
        if self._starting is not None or self._program is not None:
            return 0
        term, (rows, columns, _, _), _ = parseRequest_pty_req(data)
        self._size = sane_size(columns, rows)
        name = term.decode("ascii", "replace")
        self._environ["TERM"] = name if _TERMINAL.fullmatch(name) else "dumb"
        return 1

    def request_env(self, data: bytes) -> int:
        """Of the client's environment only the terminal's colours are of use."""
        name, value = getNS(data, 2)[:2]
        if name != b"COLORTERM" or value not in (b"truecolor", b"24bit"):
            return 0
        self._environ["COLORTERM"] = value.decode()
        return 1

    def request_window_change(self, data: bytes) -> int:
        """The person's terminal has another size."""
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
        """A command. A wrong one is accepted too, since only then can the person be told what is wrong."""
        return self._start(getNS(data)[0])

    def dataReceived(self, data: bytes) -> None:
        """What the person typed."""
        if self._program is not None:
            self._guarded(self._program.received, data)
        elif not self._over and self._status is None:
            self._early.append(data)  # the window bounds it

    def extReceived(self, dataType: int, data: bytes) -> None:
        """A client has no standard error to send."""

    def eofReceived(self) -> None:
        """The person's input ends, which ends nothing: ``ssh -n`` and ``ssh < file`` still want to see the output."""

    def closeReceived(self) -> None:
        """The person's end is closed."""
        self._over = True
        self._lose()
        self._clear()
        self.loseConnection()

    def closed(self) -> None:
        """The channel is gone on both sides."""
        self._over = True
        self._lose()
        self._clear()

    def openFailed(self, reason: Any) -> None:
        """Only channels that we open can fail to; we open none."""

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
        """What fails in a program ends its channel, not the connection."""
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
        """:returns: how many bytes one packet may have now."""
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
