"""
The process that reads a program's output, ``python -I -m ironcurtain.loop.scan_worker``: one for each iteration of a
loop, which its owner talks to over the socket that is its standard input.

The terminal emulator is native code that is fed by programs nobody trusts. Here there is nothing to steal, it makes
nobody wait, and a crash costs one iteration. The process ends when its owner does.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from ironcurtain.loop.echo import Event, Promise
from ironcurtain.loop.scan import Scanner
from ironcurtain.loop.scan_wire import (
    Begin,
    End,
    Found,
    Order,
    Output,
    Read,
    Reply,
    Resize,
    Said,
    Typed,
    order_reader,
)
from ironcurtain.terminal.confined import carry_out, run

PIECE = 4 * 1024
"""After how many bytes it says that they are read."""

NICE = 10
"""How far it steps back for what people wait for; nobody does for this, before the end of an iteration."""


class Reading:
    """Carries out orders, of which the first one makes a scanner."""

    def __init__(self) -> None:
        self._scanner: Scanner | None = None
        self._said: list[Event] = []

    def handle(self, order: Order) -> Iterator[Reply]:
        """:returns: what there is to say, as it is found."""
        if isinstance(order, Begin):
            self._scanner = Scanner(Promise(order.promise), order.prompt, order.size, self._said.append)
            return
        assert self._scanner is not None  # our owner begins with that one
        if isinstance(order, Output):
            yield from self._read(self._scanner, order.data)
        elif isinstance(order, Typed):
            self._scanner.typed(order.data)
        elif isinstance(order, Resize):
            self._scanner.resize(order.columns, order.rows)
            yield from self._news()
        else:
            promised = self._scanner.end()
            yield from self._news()
            yield Found(promised, self._scanner.text())

    def _read(self, scanner: Scanner, data: bytes) -> Iterator[Reply]:
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            scanner.feed(piece)
            yield from self._news()
            yield Read(len(piece))

    def _news(self) -> Iterator[Said]:
        yield from [Said(event.topic, event.payload) for event in self._said]
        self._said.clear()


def try_it() -> None:
    """Read a little of everything, so that all is loaded."""
    reading = Reading()
    for order in (Begin("done", "é", (80, 24)), Output("\x1b[31m中\r\n".encode() + b"\xff"), Resize(70, 20), End()):
        list(reading.handle(order))


def serve(owner: socket.socket) -> None:
    """Carry out what comes, until nothing more does."""
    carry_out(owner, order_reader(), Reading().handle)


if __name__ == "__main__":
    run(try_it, NICE, serve)
