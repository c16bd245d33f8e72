"""
The process that reads a program's output, ``python -I -m ironcurtain.loop.scan_worker``: one for each iteration of a
loop, which its owner talks to over the socket that is its standard input.

The terminal emulator is native code that is fed by programs nobody trusts. Here there is nothing to steal, it makes
nobody wait, and a crash costs one iteration. The process ends when its owner does.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from ironcurtain.loop.echo import LoopEvent, Promise
from ironcurtain.loop.scan import Scanner
from ironcurtain.loop.scan_wire import (
    BytesRead,
    EventFound,
    ScanBegin,
    ScanEnd,
    ScanOrder,
    ScanOutput,
    ScanReply,
    ScanResize,
    ScanResult,
    ScanTyped,
    order_reader,
)
from ironcurtain.process.confined import carry_out, run

PIECE = 4 * 1024
"""Number of bytes after which it reports that they are read."""

NICE = 10
"""Its niceness: nobody waits for it before the end of an iteration."""


class ScanWorker:
    """Executes orders; the first one creates a scanner."""

    def __init__(self) -> None:
        self._scanner: Scanner | None = None
        self._said: list[LoopEvent] = []

    def handle(self, order: ScanOrder) -> Iterator[ScanReply]:
        """:returns: the replies, as they are generated."""
        if isinstance(order, ScanBegin):
            self._scanner = Scanner(Promise(order.promise), order.prompt, order.size, self._said.append)
            return
        assert self._scanner is not None  # the client sends that one first
        if isinstance(order, ScanOutput):
            yield from self._read(self._scanner, order.data)
        elif isinstance(order, ScanTyped):
            self._scanner.typed(order.data)
        elif isinstance(order, ScanResize):
            self._scanner.resize(order.columns, order.rows)
            yield from self._news()
        else:
            promised = self._scanner.end()
            yield from self._news()
            yield ScanResult(promised, self._scanner.text())

    def _read(self, scanner: Scanner, data: bytes) -> Iterator[ScanReply]:
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            scanner.feed(piece)
            yield from self._news()
            yield BytesRead(len(piece))

    def _news(self) -> Iterator[EventFound]:
        yield from [EventFound(event.topic, event.payload) for event in self._said]
        self._said.clear()


def try_it() -> None:
    """Read a little of everything, so that all modules are loaded."""
    reading = ScanWorker()
    for order in (
        ScanBegin("done", "é", (80, 24)),
        ScanOutput("\x1b[31m中\r\n".encode() + b"\xff"),
        ScanResize(70, 20),
        ScanEnd(),
    ):
        list(reading.handle(order))


def serve(owner: socket.socket) -> None:
    """Execute orders until the connection ends."""
    carry_out(owner, order_reader(), ScanWorker().handle)


if __name__ == "__main__":
    run(try_it, NICE, serve)
