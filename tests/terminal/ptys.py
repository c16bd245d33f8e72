"""Commands in real terminals, for tests to wait for what they show."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.trial.unittest import TestCase

from ironcurtain.terminal.model import ProgramExit
from ironcurtain.terminal.pty import LocalPty

ENVIRON = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}


class Watcher:
    """Hears from a terminal, and lets a test wait for what it shows."""

    def __init__(self) -> None:
        self.seen = b""
        self.full: list[bool] = []
        self.ends: list[ProgramExit] = []
        self._wanted: list[tuple[Callable[[], bool], Deferred[None]]] = []

    def received(self, data: bytes) -> None:
        self.seen += data
        ready = [wait for wait in self._wanted if wait[0]()]
        self._wanted = [wait for wait in self._wanted if wait not in ready]
        for _, fired in ready:
            fired.callback(None)

    def input_full(self, full: bool) -> None:
        self.full.append(full)
        self.received(b"")

    def ended(self, ended: ProgramExit) -> None:
        self.ends.append(ended)

    def more(self) -> Deferred[None]:
        """:returns: fires once anything more has come."""
        fired: Deferred[None] = Deferred()
        known = len(self.seen)
        self._wanted.append((lambda: len(self.seen) > known, fired))
        return fired

    def shows(self, text: bytes) -> Deferred[None]:
        """:returns: fires once ``text`` has come."""
        fired: Deferred[None] = Deferred()
        self._wanted.append((lambda: text in self.seen, fired))
        self.received(b"")
        return fired


def until_the_end(terminal: int) -> Iterator[int]:
    """:returns: all bytes that come, until nobody has the other side of a terminal any more."""
    try:
        while data := os.read(terminal, 65536):
            yield from data
    except OSError as e:
        assert e.errno == errno.EIO, e


class PtyCase(TestCase):
    """One command a test."""

    timeout = 120

    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.watcher = Watcher()
        self.make_pty(self.reactor)

    def make_pty(self, clock: IReactorTime) -> None:
        self.pty = LocalPty(self.reactor, clock)
        self.pty.owner = self.watcher

    async def tearDown(self) -> None:  # type: ignore[override]
        if self.pty.pid and not self.pty.done.called:
            self.pty.kill()
            await self.pty.done

    def spawn(self, *argv: str, columns: int = 100, rows: int = 30) -> None:
        self.pty.spawn(argv, ENVIRON, "/", columns, rows)

    def shell(self, script: str) -> None:
        self.spawn("sh", "-c", script)
