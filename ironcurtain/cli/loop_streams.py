"""The standard streams of a loop: what its program writes without a terminal, and messages of the loop between."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import click
from twisted.internet.defer import CancelledError, Deferred, TimeoutError, succeed

from ironcurtain.cli.output import fitted
from ironcurtain.cli.stream_writer import StreamWriter
from ironcurtain.text.columns import Span
from ironcurtain.text.display import one_line
from ironcurtain.text.output import EscapedOutput
from ironcurtain.view.look import look_for

OUTPUT, ERRORS = 1, 2
"""Standard output and standard error."""

INTERRUPTED_SECONDS = 1.0
"""How long to wait for unread output to be written after the user interrupts the loop."""


class LoopStreams:
    """
    Writes output to a terminal escaped, and to a pipe or a file unchanged. Messages of the loop are dim on a terminal:
    the program's output has no style there, so it cannot look like them.

    :param environ: names the terminal.
    :param on_error: called when a stream can no longer be written.
    """

    def __init__(self, environ: Mapping[str, str], on_error: Callable[[OSError], None]) -> None:
        self._look = look_for(environ)
        self._on_error = on_error
        self._writers: dict[int, StreamWriter] = {}
        self._escaped: dict[int, EscapedOutput] = {}
        self._full: set[int] = set()
        self._inside_line = False
        self._writing: Deferred[None] = succeed(None)
        self.hold: Callable[[bool], None] = lambda full: None
        """Pauses (``True``) or resumes (``False``) the program's output."""

    def begin(self, reactor: Any) -> None:
        """From now on, write without blocking."""
        for descriptor in (OUTPUT, ERRORS):
            filled = partial(self._filled, descriptor)
            self._writers[descriptor] = StreamWriter(reactor, descriptor, filled, self._on_error)
            if os.isatty(descriptor):
                self._escaped[descriptor] = EscapedOutput()
        with suppress(OSError):  # standard output or error is closed
            if os.path.sameopenfile(
                OUTPUT, ERRORS
            ):  # so that output and errors appear in the order in which they were written
                self._writers[ERRORS] = self._writers[OUTPUT]

    def write(self, descriptor: int, data: bytes) -> None:
        """Write what a program wrote to its own :data:`OUTPUT` or :data:`ERRORS`."""
        if descriptor not in self._escaped:
            self._writers[descriptor].write(data)
        else:
            self._show(descriptor, self._escaped[descriptor].feed(data))

    def say(self, text: str) -> None:
        """Write a message of the loop to standard error."""
        line = fitted(f"[loop] {one_line(text, 500)}", err=True)
        if sys.stderr.isatty():
            begun = "\n" if self._inside_line else ""
            line = f"{begun}{self._look.paint((Span(line, 'dim'),))}"
            self._inside_line = False
        if self._writers:
            self._writers[ERRORS].write(f"{line}\n".encode("utf-8", "replace"))
        else:
            click.echo(line, err=True)

    async def written(self, reactor: Any, interrupted: bool) -> None:
        """
        Wait until all output is written, and write as before from then on.

        :param interrupted: wait at most :data:`INTERRUPTED_SECONDS`.
        """
        for descriptor, escaped in self._escaped.items():
            self._show(descriptor, escaped.feed(b"", last=True))
        writers, self._writers = self._writers, {}
        for writer in writers.values():
            self._writing = writer.written()
            if interrupted:
                self._writing.addTimeout(INTERRUPTED_SECONDS, reactor)
            with suppress(CancelledError, TimeoutError):
                await self._writing

    def interrupt(self) -> None:
        """Wait no longer."""
        self._writing.cancel()

    def _show(self, descriptor: int, text: str) -> None:
        if text:
            self._inside_line = not text.endswith("\n")
            self._writers[descriptor].write(text.encode("utf-8", "replace"))

    def _filled(self, descriptor: int, full: bool) -> None:
        before = bool(self._full)
        (self._full.add if full else self._full.discard)(descriptor)
        if bool(self._full) != before:
            self.hold(bool(self._full))
