"""The terminal of this process: raw mode, and its restoration on every exit, including SIGKILL."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import termios
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from twisted.internet import fdesc
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import UsageError
from ironcurtain.terminal.model import sane_size
from ironcurtain.terminal.sequences import RESTORE

FLUSH_SECONDS = 1.0
"""Time limit in seconds for flushing the last output before the terminal is restored."""

WRITE_SIZE = 16 * 1024
"""Number of bytes per write (the kernel takes fewer)."""

_DEADLY = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
"""Signals that end a process by default and can be handled."""


class NoTerminal(UsageError):
    """Standard input or output is not a terminal."""

    code = "NO_TERMINAL"

    def __init__(self) -> None:
        super().__init__("this needs a terminal: standard input and output must not be redirected")


class TerminalUser(Protocol):
    """Receives the terminal's events."""

    def received(self, read: bytes) -> None:
        """Input, the bytes of one read."""

    def resized(self, columns: int, rows: int) -> None:
        """The terminal has a new size."""

    def drained(self) -> None:
        """The terminal accepts output again."""

    def lost(self) -> None:
        """The terminal is gone: its window was closed, or its connection broke."""


def have_terminal() -> bool:
    """Whether standard input and output are both a terminal."""
    return os.isatty(0) and os.isatty(1)


@implementer(IPushProducer)
class LocalTerminal(FileDescriptor):
    """
    Standard input's terminal, as a channel.

    It is opened a second time, so that non-blocking mode (``O_NONBLOCK``) does not affect other processes.

    :param reactor: for reading, writing and time.
    :param descriptor: descriptor of the terminal.
    :raises NoTerminal: it is not a terminal.
    :ivar closed: fires when the terminal is restored, with the status passed to :meth:`close`.
    """

    reactor: Any

    def __init__(self, reactor: Any, descriptor: int = 0) -> None:
        super().__init__(reactor)
        if not os.isatty(descriptor):
            raise NoTerminal
        self._given, self._opened = descriptor, -1
        self._before = termios.tcgetattr(descriptor)
        self._user: TerminalUser | None = None
        self._handlers: dict[int, Any] = {}
        self._raw = False
        self._status: int | None = None
        self.blocked = False
        self.closed: Deferred[int | None] = Deferred()

    def begin(self, user: TerminalUser) -> None:
        """Switch to raw mode. Call it once. Input goes to ``user``."""
        self._opened = _open_again(self._given)
        self._user = user
        self._raw = True
        atexit.register(self.undo)
        for number in _DEADLY:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handle(number, self._deadly)
        self._handle(signal.SIGWINCH, lambda number, frame: self.reactor.callFromThread(self._resized))
        tty.setraw(self._opened, termios.TCSANOW)
        self.connected = 1
        self.registerProducer(self, True)
        self.startReading()

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows; the default size if unknown."""
        try:
            return sane_size(*os.get_terminal_size(self._given))
        except OSError:  # it is gone
            return sane_size(0, 0)

    def hold(self, full: bool) -> None:
        """:param full: whether to pause reading keys."""
        if self.connected:
            (self.stopReading if full else self.startReading)()

    def close(self, status: int | None) -> None:
        """Flush output, then restore the terminal. Can be called twice."""
        if not self.connected or self.disconnecting:
            return
        self._user, self._status = None, status
        self.unregisterProducer()
        self.loseConnection()
        late = self.reactor.callLater(FLUSH_SECONDS, self.connectionLost, Failure(ConnectionDone()))

        def in_time(result: int | None) -> int | None:
            if late.active():
                late.cancel()
            return result

        self.closed.addBoth(in_time)

    def undo(self) -> None:
        """Restore the terminal at once; unflushed output is lost. Can be called twice."""
        if not self._raw:
            return
        self._raw = False
        atexit.unregister(self.undo)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._restore()
        with suppress(termios.error):
            termios.tcflush(self._opened, termios.TCIFLUSH)  # discard answers to the program's last queries
            termios.tcsetattr(self._opened, termios.TCSANOW, self._before)

    def _restore(self) -> None:
        with suppress(OSError, termios.error):
            try:
                whole = os.write(self._opened, RESTORE) == len(RESTORE)
            except BlockingIOError:
                whole = False
            if not whole:  # it does not accept output, as after Ctrl-S: discard queued output
                termios.tcflush(self._opened, termios.TCOFLUSH)
                os.write(self._opened, RESTORE)

    def fileno(self) -> int:
        """For the reactor."""
        return self._opened

    def doRead(self) -> Any:
        """For the reactor."""
        return fdesc.readFromFD(self._opened, _nobody if self._user is None else self._user.received)

    def writeSomeData(self, data: bytes) -> Any:
        """For the transport's buffer: a terminal takes a few KiB at once, and more soon after."""
        done = 0
        while done < len(data):
            written = fdesc.writeToFD(self._opened, data[done : done + WRITE_SIZE])
            if not isinstance(written, int):
                return done or written  # an end is detected again
            if written == 0:
                break
            done += written
        return done

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: it is gone, or all output is written after :meth:`close`."""
        if not self.connected:
            return
        super().connectionLost(reason)
        self.undo()
        os.close(self._opened)
        user, self._user = self._user, None
        if user is not None:
            user.lost()
        self.closed.callback(self._status)

    def pauseProducing(self) -> None:
        """For the transport's buffer: much data is queued."""
        self.blocked = True

    def resumeProducing(self) -> None:
        """For the transport's buffer: all data was written."""
        was, self.blocked = self.blocked, False
        if was and self._user is not None:
            self._user.drained()

    def stopProducing(self) -> None:
        """For the transport's buffer: it is gone."""

    def _resized(self) -> None:
        if self._user is not None:
            self._user.resized(*self.size())

    def _handle(self, number: int, handler: Callable[[int, Any], object]) -> None:
        self._handlers[number] = signal.signal(number, handler)

    def _deadly(self, number: int, frame: object) -> None:
        """Restore the terminal, then let the signal end the process."""
        self.undo()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _nobody(read: bytes) -> None:
    """Discards input while closing."""


def _open_again(descriptor: int) -> int:
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(os.ttyname(descriptor), flags)
    except OSError:  # it belongs to another account, as after su
        return os.open("/dev/tty", flags)


_SCRIPT = """
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
read -r word
test "$word" = done && exit
stty "$1" <"$2"
printf %s "$3" >"$2"
"""
"""
A shell script that waits for a word on standard input. If this process dies, the word is missing and the terminal is
restored.
"""

_DONE = b"done\n"


class Guard:
    """
    Restores the terminal if this process is killed, using a small process that waits for that.

    :param reactor: starts the process.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._process: Any = None
        self._ended: Deferred[None] = Deferred()

    def begin(self, descriptor: int) -> None:
        """
        From now on, the terminal will be restored to its current state. If the process cannot be started, nothing is
        done.

        :param descriptor: descriptor of the terminal, before it is changed.
        """
        setsid = shutil.which("setsid")
        try:
            name = os.ttyname(descriptor)
            saved = subprocess.run(["stty", "-g"], stdin=descriptor, capture_output=True, check=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return
        if setsid is not None:
            words = [setsid, "/bin/sh", "-c", _SCRIPT, "sh", saved.strip(), name, RESTORE.decode()]
            environ = {"PATH": os.environ.get("PATH", os.defpath)}
            streams: dict[int, Any] = {0: "w", 1: 1, 2: 2}
            self._process = self._reactor.spawnProcess(_Waiting(self._ended), setsid, words, environ, childFDs=streams)

    async def end(self) -> None:
        """The terminal was restored, or will not be changed again."""
        if self._process is not None:
            process, self._process = self._process, None
            process.write(_DONE)
            process.closeStdin()
            await self._ended


class _Waiting(ProcessProtocol):
    def __init__(self, ended: Deferred[None]) -> None:
        self._ended = ended

    def processEnded(self, reason: Failure) -> None:
        self._ended.callback(None)
