"""The terminal at which this program was started: raw mode, undone on every way out, SIGKILL included."""

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
"""How long the last output may take before the terminal is restored all the same."""

WRITE_SIZE = 16 * 1024
"""How many bytes are offered to it at once (the kernel takes fewer)."""

_DEADLY = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
"""Signals that end a process that does nothing about them, and leave it time to run a handler."""


class NoTerminal(UsageError):
    """Standard input or output is no terminal."""

    code = "NO_TERMINAL"

    def __init__(self) -> None:
        super().__init__("this needs a terminal: standard input and output must not be redirected")


class TerminalUser(Protocol):
    """Who uses the terminal."""

    def received(self, read: bytes) -> None:
        """Keys, as one read gave them."""

    def resized(self, columns: int, rows: int) -> None:
        """It has another size."""

    def drained(self) -> None:
        """It is not blocked any more."""

    def lost(self) -> None:
        """It is gone: its window was closed, or the connection to it broke."""


def have_terminal() -> bool:
    """Whether standard input and output are both a terminal."""
    return os.isatty(0) and os.isatty(1)


@implementer(IPushProducer)
class LocalTerminal(FileDescriptor):
    """
    Standard input's terminal, as a channel.

    It is opened a second time, so that our not waiting for it (``O_NONBLOCK``) holds for nobody else who has it.

    :param reactor: reads and writes it, and tells the time.
    :param descriptor: of the terminal.
    :raises NoTerminal: it is none.
    :ivar closed: fires when it is as it was before, with the status that :meth:`close` was given.
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
        """Switch to raw mode, once; keys go to ``user``."""
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
        """:returns: columns and rows; the usual ones if it does not say."""
        try:
            return sane_size(*os.get_terminal_size(self._given))
        except OSError:  # it is gone
            return sane_size(0, 0)

    def hold(self, full: bool) -> None:
        """:param full: whether to read no more keys for now."""
        if self.connected:
            (self.stopReading if full else self.startReading)()

    def close(self, status: int | None) -> None:
        """Show what was written, then be as before. Harmless the second time."""
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
        """Be as before, at once; what was written and is not shown yet is lost. Harmless the second time."""
        if not self._raw:
            return
        self._raw = False
        atexit.unregister(self.undo)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._restore()
        with suppress(termios.error):
            termios.tcflush(self._opened, termios.TCIFLUSH)  # answers to the program's last questions
            termios.tcsetattr(self._opened, termios.TCSANOW, self._before)

    def _restore(self) -> None:
        with suppress(OSError, termios.error):
            try:
                whole = os.write(self._opened, RESTORE) == len(RESTORE)
            except BlockingIOError:
                whole = False
            if not whole:  # it shows nothing more, as after Ctrl-S: give up what waits before this
                termios.tcflush(self._opened, termios.TCOFLUSH)
                os.write(self._opened, RESTORE)

    def fileno(self) -> int:
        """For the reactor."""
        return self._opened

    def doRead(self) -> Any:
        """For the reactor."""
        return fdesc.readFromFD(self._opened, _nobody if self._user is None else self._user.received)

    def writeSomeData(self, data: bytes) -> Any:
        """For the transport's buffer: a terminal takes a few KiB at once, and soon a few more."""
        done = 0
        while done < len(data):
            written = fdesc.writeToFD(self._opened, data[done : done + WRITE_SIZE])
            if not isinstance(written, int):
                return done or written  # an end is found again
            if written == 0:
                break
            done += written
        return done

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: it is gone, or all is written after :meth:`close`."""
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
        """For the transport's buffer: much waits."""
        self.blocked = True

    def resumeProducing(self) -> None:
        """For the transport's buffer: all has gone out."""
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
        """Die of the signal, as without this handler, but first undo."""
        self.undo()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _nobody(read: bytes) -> None:
    """It is closing."""


def _open_again(descriptor: int) -> int:
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(os.ttyname(descriptor), flags)
    except OSError:  # it belongs to somebody else, as after su
        return os.open("/dev/tty", flags)


_SCRIPT = """
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
read -r word
test "$word" = done && exit
stty "$1" <"$2"
printf %s "$3" >"$2"
"""
"""Its standard input comes from us, and ends with us: then the word is missing."""

_DONE = b"done\n"


class Guard:
    """
    Restores a terminal if we are killed before we can, by a small process that waits for us to end.

    :param reactor: starts the process.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._process: Any = None
        self._ended: Deferred[None] = Deferred()

    def begin(self, descriptor: int) -> None:
        """
        From now on, the terminal will be restored to what it is now. Where that cannot be had, nothing is done.

        :param descriptor: of the terminal, before it is changed.
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
        """The terminal is restored already, or will not be changed any more."""
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
