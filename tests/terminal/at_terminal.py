"""
A program that uses the terminal at which it is started: ``python at_terminal.py HOW``.

Keys: ``q`` closes the terminal, ``x`` exits without a word, ``b`` writes much; any other is written back.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from typing import Any

from twisted.internet.asyncioreactor import install

from ironcurtain.terminal.local import LocalTerminal


class Person:
    """Who uses the terminal."""

    def __init__(self, reactor: Any) -> None:
        self.reactor, self.terminal = reactor, LocalTerminal(reactor)
        self.filled = False

    def begin(self) -> None:
        self.terminal.begin(self)
        shared = bool(fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK)
        os.write(1, b"\x1b[?1049h\x1b[?1000hraw %d shared=%d %d %d;" % (os.getpid(), shared, *self.terminal.size()))

    def received(self, read: bytes) -> None:
        if read == b"q":
            self.terminal.write(b"bye")
            self.terminal.closed.addCallback(lambda status: self.reactor.stop())
            self.terminal.close(3)
        elif read == b"x":
            self.reactor.stop()  # and the terminal is left to itself
        elif read == b"b":
            self.terminal.write(b"y" * 1_000_000)
            self.filled = self.terminal.blocked
        else:
            self.terminal.write(b"<%b>" % read)

    def resized(self, columns: int, rows: int) -> None:
        self.terminal.write(b"size %d %d;" % (columns, rows))

    def drained(self) -> None:
        self.terminal.write(b"drained %d;" % self.filled)

    def lost(self) -> None:
        self.reactor.stop()


def main(how: str) -> None:
    """:param how: ``plain``; ``bare``: nobody handles SIGTERM; ``raise``, ``exit``: at once."""
    install()
    from twisted.internet import reactor as installed

    reactor: Any = installed
    person = Person(reactor)
    if how == "bare":  # the reactor has handlers, or it would sleep through a signal that comes just before it waits
        reactor.callWhenRunning(signal.signal, signal.SIGTERM, signal.SIG_DFL)
    reactor.callWhenRunning(person.begin)
    if how in ("raise", "exit"):
        person.begin()
        sys.exit(6) if how == "exit" else 1 // 0
    reactor.run()


if __name__ == "__main__":
    main(sys.argv[1])
