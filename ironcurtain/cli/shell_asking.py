"""Questions of ``ironcurtain shell`` at the terminal, although its standard streams are pipes or its answers NDJSON."""

from __future__ import annotations

import os
import termios
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from ironcurtain.cli.shell_above import session_above
from ironcurtain.cli.shell_pages import PagedQuestion, approval
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import Home
from ironcurtain.shell.inheritance import policies_in
from ironcurtain.shell.messages import Approval, ApprovalRequested
from ironcurtain.view.look import Look

TERMINAL = "/dev/tty"

UNKNOWN_SIZE = (80, 24)
"""Columns and rows of a terminal that does not say how many it has."""

LINE_LIMIT = 4096
"""Most bytes of an answer."""


def nobody_attends(home: Home, environ: Mapping[str, str]) -> str:
    """
    :returns: why nobody can answer at this process's terminal: an agent has it; empty if somebody may.
    """
    if (entry := session_above(home)) is not None:
        return f"this terminal is that of session {entry.number}, in which an agent works"
    try:
        depth = policies_in(environ).depth
    except ConfigurationError:
        depth = 1
    return "an agent on another machine has started this" if depth else ""


def open_terminal(home: Home, environ: Mapping[str, str]) -> int | None:
    """
    :returns: a descriptor of the terminal at which somebody can be asked: that of this process, if it has one, is in
        its foreground, and no agent has it.
    """
    try:
        descriptor = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    with suppress(OSError):
        if os.tcgetpgrp(descriptor) == os.getpgrp() and not nobody_attends(home, environ):
            return descriptor
    os.close(descriptor)
    return None


class TerminalQuestions:
    """
    Asks one question after the other. What was typed before a question, or within a second after it, answers nothing.

    :param descriptor: of the terminal, which this closes.
    :param look: what it can show.
    :param decide: gets the decisions.
    """

    def __init__(self, reactor: Any, descriptor: int, look: Look, decide: Callable[[Approval], None]) -> None:
        self._reactor, self._clock, self._descriptor = reactor, reactor, descriptor
        self._look, self._decide = look, decide
        self._asked: PagedQuestion | None = None
        self._request: ApprovalRequested | None = None
        self._line = bytearray()

    def ask(self, request: ApprovalRequested) -> None:
        """Ask about a step."""
        if self._asked is None:
            self._reactor.addReader(self)
        self._asked, self._request = PagedQuestion(request, self._look), request
        self._line.clear()
        self._show(self._asked.page(*self._size(), self._now()))

    def withdraw(self) -> None:
        """The step was decided, here or elsewhere."""
        if self._asked is not None:
            self._asked = None
            self._reactor.removeReader(self)

    def close(self) -> None:
        """Ask nothing more."""
        self.withdraw()
        os.close(self._descriptor)

    def fileno(self) -> int:
        """For the reactor."""
        return self._descriptor

    def logPrefix(self) -> str:
        """For the reactor."""
        return "terminal"

    def doRead(self) -> Failure | None:
        """For the reactor: something was typed."""
        try:
            read = os.read(self._descriptor, LINE_LIMIT)
        except OSError:
            read = b""
        self.typed(read)
        return None

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor."""
        self._asked = None

    def typed(self, read: bytes) -> None:
        """:param read: from the terminal; empty: its end."""
        if (asked := self._asked) is None or self._request is None:
            return
        self._line += read
        if read and not self._line.endswith(b"\n"):
            return
        line, self._line = self._line.decode("utf-8", "replace"), bytearray()
        answer = asked.answer(line, *self._size(), self._now()) if read else approval("deny", self._request)
        if isinstance(answer, str):
            self._show(answer)
            return
        self.withdraw()
        self._decide(answer)

    def _size(self) -> tuple[int, int]:
        """:returns: columns and rows."""
        with suppress(OSError):
            columns, height = os.get_terminal_size(self._descriptor)
            if columns and height:
                return columns, height
        return UNKNOWN_SIZE

    def _now(self) -> float:
        clock: IReactorTime = self._clock
        return clock.seconds()

    def _show(self, text: str) -> None:
        with suppress(termios.error):
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        data = text.encode("utf-8", "replace")
        with suppress(OSError):
            while data:
                data = data[os.write(self._descriptor, data) :]
