"""A session on the standard streams: a terminal, or plain ones such as pipes, files, and terminals that only print."""

from __future__ import annotations

import codecs
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from twisted.internet.abstract import FileDescriptor
from twisted.internet.interfaces import IReactorFDSet
from twisted.python.failure import Failure

from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.terminal.surface import Listener, Surface
from ironcurtain.terminal.raw import in_foreground
from ironcurtain.text.columns import Line, unstyled
from ironcurtain.view.look import representable, signs_for

WIDTH = 80
"""Number of columns if the reader's width is unknown."""

PIECE = 65536
"""Maximum bytes per read."""


class _Lines(FileDescriptor):
    """
    Reads a file descriptor line by line when it is readable.

    It stays in blocking mode: non-blocking mode would affect every other process that shares it, such as the shell.
    """

    def __init__(self, reactor: IReactorFDSet, fd: int, listener: Listener, now: Callable[[], float]) -> None:
        super().__init__(reactor)
        self._fd, self._listener, self._now, self._by_hand = fd, listener, now, os.isatty(fd)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def fileno(self) -> int:
        """:returns: the descriptor."""
        return self._fd

    def doRead(self) -> None:
        """Read once; the reactor calls this."""
        try:
            data = os.read(self._fd, PIECE)
        except OSError:
            data = b""
        *lines, self._rest = (self._rest + self._decoder.decode(data, final=not data)).split("\n")
        for line in lines:
            self._enter(line)
        if not data:
            self.stopReading()
            if self._rest:
                self._enter(self._rest)
            self._listener.input_ended()

    def _enter(self, line: str) -> None:
        # A terminal gives a line when it ends; when it was begun is not known, but not later.
        self._listener.typed(line, self._now() if self._by_hand else math.inf, line if self._by_hand else "")

    def connectionLost(self, reason: Failure) -> None:
        """The reactor could not read it."""
        self._listener.input_ended()


class PlainSurface(Surface):
    """
    Plain streams: answers go to standard output, everything else to standard error, and nothing is redrawn.

    :param stdin: ``None`` if it is closed, as for the other streams.
    :param now: returns seconds of the reactor's clock.
    """

    def __init__(
        self,
        reactor: IReactorFDSet,
        stdin: TextIO | None,
        stdout: TextIO | None,
        stderr: TextIO | None,
        now: Callable[[], float],
    ) -> None:
        self._now = now
        self._reactor, self._stdin, self._stdout, self._stderr = reactor, stdin, stdout, stderr
        self.signs = signs_for((stderr and stderr.encoding) or "ascii")
        self._lines: _Lines | None = None

    def width(self) -> int:
        """:returns: columns of the terminal, if there is one."""
        if self._stderr is None or not self._stderr.isatty():
            return WIDTH
        return os.get_terminal_size(self._stderr.fileno()).columns or WIDTH

    def open(self, listener: Listener, reads: bool) -> None:
        """Start reading, if lines are wanted or the input is a terminal."""
        if self._stdin is None:
            listener.input_ended()
        elif reads or self._stdin.isatty():
            self._lines = _Lines(self._reactor, self._stdin.fileno(), listener, self._now)
            self._lines.startReading()

    def print(self, lines: Sequence[Line], answer: bool = False) -> None:
        """Print, without styles."""
        stream = self._stdout if answer else self._stderr
        if stream is not None:
            text = "".join(f"{unstyled(line)}\n" for line in lines)
            stream.write(representable(text, stream.encoding or "ascii"))
            stream.flush()

    def bell(self, text: str) -> None:
        """Ring the bell, if the input is a terminal."""
        if self._stderr is not None and self._stderr.isatty():
            self._stderr.write("\a")
            self._stderr.flush()

    async def close(self) -> None:
        """Stop reading."""
        if self._lines is not None:
            self._lines.stopReading()
            self._lines = None


def standard_printer(reactor: Any) -> Printer:
    """:returns: what prints on the standard streams of this process."""
    surface = standard_surface(reactor, sys.stdin, sys.stdout, sys.stderr, os.environ, reactor.seconds)
    return Printer(surface, reactor, time.time)


def standard_surface(
    reactor: IReactorFDSet,
    stdin: TextIO | None,
    stdout: TextIO | None,
    stderr: TextIO | None,
    environ: Mapping[str, str],
    now: Callable[[], float],
) -> Surface:
    """
    :param now: returns seconds of the reactor's clock.
    :returns: the terminal, if input and output are one that can be drawn on; else plain streams.
    """
    can_redraw = environ.get("TERM", "") not in ("", "dumb")
    if stdin is not None and stdin.isatty() and not in_foreground(stdin.fileno()):
        return PlainSurface(reactor, None, stdout, stderr, now)
    if stdin is None or stderr is None or not (stdin.isatty() and stderr.isatty() and can_redraw):
        return PlainSurface(reactor, stdin, stdout, stderr, now)
    from ironcurtain.cli.terminal.prompt import prompt_surface

    return prompt_surface(stdin, stderr, environ, now)
