"""
Raw mode of this process's terminal, and its restoration on every exit; after SIGKILL,
:mod:`~ironcurtain.terminal.guard` restores it. Without Twisted, so that it can begin before that is imported.
"""

from __future__ import annotations

import atexit
import os
import signal
import termios
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ironcurtain.errors import UsageError
from ironcurtain.terminal.model import sane_size
from ironcurtain.terminal.sequences import RESTORE

_DEADLY = (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
"""Signals that end a process by default and can be handled."""


class NoTerminal(UsageError):
    """Standard input or output is not a terminal."""

    code = "NO_TERMINAL"

    def __init__(self) -> None:
        super().__init__("this needs a terminal: standard input and output must not be redirected")


def have_terminal() -> bool:
    """Whether standard input and output are both a terminal."""
    return os.isatty(0) and os.isatty(1)


def in_foreground(fd: int) -> bool:
    """:returns: whether this process may read the terminal; a background job would be stopped."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # it is not the controlling terminal
        return True


class RawMode:
    """
    A terminal in raw mode.

    It is opened a second time, so that non-blocking mode (``O_NONBLOCK``) does not affect other processes.

    :param descriptor: descriptor of the terminal.
    :raises NoTerminal: it is not a terminal.
    :ivar opened: the second descriptor, while it is open; else -1.
    :ivar restoration: gives what is written to restore it, if output was followed; else that is :data:`RESTORE`.
    """

    def __init__(self, descriptor: int = 0) -> None:
        if not os.isatty(descriptor):
            raise NoTerminal
        self._given = descriptor
        self._before = termios.tcgetattr(descriptor)
        self._handlers: dict[int, tuple[Any, Callable[[int, Any], object]]] = {}
        self._raw = False
        self.opened = -1
        self.restoration: Callable[[], bytes] = lambda: RESTORE

    def begin(self) -> None:
        """Switch to raw mode. No effect if it has begun."""
        if self.opened >= 0:
            return
        self.opened = _open_again(self._given)
        self._raw = True
        atexit.register(self.undo)
        for number in _DEADLY:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handle(number, self._deadly)
        tty.setraw(self.opened, termios.TCSANOW)

    def on_resize(self, resized: Callable[[], object]) -> None:
        """:param resized: called, in place of an earlier one, from the signal's handler when the size changes."""
        self._handle(signal.SIGWINCH, lambda number, frame: resized())

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows; the default size if unknown."""
        try:
            return sane_size(*os.get_terminal_size(self._given))
        except OSError:  # it is gone
            return sane_size(0, 0)

    def undo(self) -> None:
        """Restore the terminal at once. Can be called twice."""
        if not self._raw:
            return
        self._raw = False
        atexit.unregister(self.undo)
        for number, (before, ours) in self._handlers.items():
            if signal.getsignal(number) is ours:
                signal.signal(number, before)
        self._restore()
        with suppress(termios.error):
            termios.tcflush(self.opened, termios.TCIFLUSH)  # discard answers to the program's last queries
            termios.tcsetattr(self.opened, termios.TCSANOW, self._before)

    def close(self) -> None:
        """Restore the terminal, and close it. Can be called twice."""
        self.undo()
        opened, self.opened = self.opened, -1
        if opened >= 0:
            os.close(opened)

    def _restore(self) -> None:
        restoration = self.restoration()
        with suppress(OSError, termios.error):
            try:
                whole = os.write(self.opened, restoration) == len(restoration)
            except BlockingIOError:
                whole = False
            if not whole:  # it does not accept output, as after Ctrl-S: discard queued output
                termios.tcflush(self.opened, termios.TCOFLUSH)
                os.write(self.opened, RESTORE)

    def _handle(self, number: int, handler: Callable[[int, Any], object]) -> None:
        before = signal.signal(number, handler)
        self._handlers[number] = self._handlers.get(number, (before,))[0], handler

    def _deadly(self, number: int, frame: object) -> None:
        """Restore the terminal, then let the signal end the process."""
        self.undo()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _open_again(descriptor: int) -> int:
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(os.ttyname(descriptor), flags)
    except OSError:  # it belongs to another account, as after su
        return os.open("/dev/tty", flags)
