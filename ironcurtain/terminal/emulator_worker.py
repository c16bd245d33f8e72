"""
The process of terminal emulators, ``python -I -m ironcurtain.terminal.emulator_worker NICE``: all the screens of one
owner, or what scans the output of one iteration of a loop. Its owner talks to it over the socket that is its standard
input.

The emulators are native code that processes untrusted output. This process holds no secrets and makes nobody wait; its
crash costs exact redraws, or one iteration. It ends when its owner does.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Protocol

from ironcurtain.process.confined import carry_out, run
from ironcurtain.process.frames import packed
from ironcurtain.terminal.echo import LoopEvent, Promise
from ironcurtain.terminal.emulator_wire import (
    MESSAGE_LIMIT,
    Answer,
    BytesRead,
    CloseEmulator,
    EmulatorFailed,
    EmulatorOrder,
    EmulatorReply,
    EndScan,
    EventFound,
    FeedOutput,
    OpenScan,
    OpenScreen,
    ReadScreen,
    Ready,
    RedrawScreen,
    Refusal,
    ResizeTerminal,
    ScanReport,
    ScanResult,
    TypedInput,
    order_reader,
)
from ironcurtain.terminal.ghostty_screen import GhosttyScreen
from ironcurtain.terminal.scan import Scanner

PIECE = 4 * 1024
"""Number of bytes after which a scan reports that they are read."""


class OpenEmulator(Protocol):
    """A screen, or a scan."""

    def handle(self, order: EmulatorOrder) -> Iterator[EmulatorReply]:
        """:returns: the replies, as they are generated. Orders for the other kind have no effect."""


class ScreenEmulator:
    """A screen that can be drawn again."""

    def __init__(self, order: OpenScreen) -> None:
        self._screen = GhosttyScreen(order.columns, order.rows)

    def handle(self, order: EmulatorOrder) -> Iterator[EmulatorReply]:
        """:returns: the answer to a request."""
        match order:
            case FeedOutput():
                self._screen.feed(order.data)
            case ResizeTerminal():
                self._screen.resize(order.columns, order.rows)
            case RedrawScreen():
                yield _answer(order.request, self._screen.redraw(order.columns, order.rows, order.history))
            case ReadScreen():
                yield _answer(order.request, self._screen.text().encode("utf-8", "replace"))


def _answer(request: int, data: bytes) -> Answer | Refusal:
    if len(data) > MESSAGE_LIMIT - 64:
        return Refusal(request, f"{len(data)} bytes are too many")
    return Answer(request, data)


class ScanEmulator:
    """A scan of a program's output."""

    def __init__(self, order: OpenScan) -> None:
        self._number = order.number
        self._events: list[LoopEvent] = []
        self._scanner = Scanner(Promise(order.promise), order.prompt, order.size, self._events.append)

    def handle(self, order: EmulatorOrder) -> Iterator[ScanReport]:
        """:returns: what is found, and how much is read."""
        match order:
            case FeedOutput():
                yield from self._read(order.data)
            case TypedInput():
                self._scanner.typed(order.data)
            case ResizeTerminal():
                self._scanner.resize(order.columns, order.rows)
                yield from self._news()
            case EndScan():
                promised = self._scanner.end()
                yield from self._news()
                yield ScanResult(self._number, promised, self._scanner.text())

    def _read(self, data: bytes) -> Iterator[ScanReport]:
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            self._scanner.feed(piece)
            yield from self._news()
            yield BytesRead(self._number, len(piece))

    def _news(self) -> Iterator[EventFound]:
        yield from [EventFound(self._number, event.topic, event.payload) for event in self._events]
        self._events.clear()


class EmulatorWorker:
    """Executes orders. A failure in an emulator ends that one only."""

    def __init__(self) -> None:
        self._emulators: dict[int, OpenEmulator] = {}

    def handle(self, order: EmulatorOrder) -> Iterator[EmulatorReply]:
        """:returns: the replies, as they are generated; none for an emulator that is not there."""
        try:
            match order:
                case OpenScreen():
                    self._emulators[order.number] = ScreenEmulator(order)
                case OpenScan():
                    self._emulators[order.number] = ScanEmulator(order)
                case CloseEmulator():
                    self._emulators.pop(order.number, None)
                case _ if (emulator := self._emulators.get(order.number)) is not None:
                    yield from emulator.handle(order)
        except Exception as e:
            self._emulators.pop(order.number, None)
            yield EmulatorFailed(order.number, f"{type(e).__name__}: {e}")


def try_it() -> None:
    """Use a little of everything, so that all of the library and all modules are loaded."""
    output = "\x1b[31mé\x1b[?1049h\x1b]8;;x\x1b\\y\x1b[?1049l中\r\n".encode() + b"\xff"
    worker = EmulatorWorker()
    for order in (
        OpenScreen(1, 80, 24),
        FeedOutput(1, output),
        RedrawScreen(1, 1, 80, 24, True),
        ReadScreen(1, 2),
        OpenScan(2, "done", "é", (80, 24)),
        FeedOutput(2, output),
        ResizeTerminal(2, 70, 20),
        EndScan(2),
    ):
        for reply in worker.handle(order):
            if isinstance(reply, EmulatorFailed):
                raise SystemExit(reply.reason)


def serve(owner: socket.socket) -> None:
    """Execute orders until the connection ends."""
    owner.sendall(packed(Ready()))
    carry_out(owner, order_reader(), EmulatorWorker().handle)


if __name__ == "__main__":
    run(try_it, int(sys.argv[1]), serve)
