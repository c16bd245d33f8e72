"""
The protocol of a process of terminal emulators, in :mod:`~ironcurtain.process.frames`.

An emulator has a number. It is a screen, which is drawn again on request, or it scans output for what a loop looks
for. The client sends orders, most of them without an answer. The process reports once that it is ready, and replies in
the order of the orders, so an answer reflects exactly the output that was sent before its request.

The process reads untrusted output, so its messages are bounded, and are trusted no more than the output itself.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ironcurtain.process.frames import MessageReader, packed
from ironcurtain.terminal.sequences import ABORT, PLAIN

MESSAGE_LIMIT = 32 * 1024 * 1024
"""Maximum size in bytes of a message (a redraw usually has some 100 KB, a prompt with its events some MB at most)."""

KEPT = 256 * 1024
"""Maximum number of characters of output kept as text: a long conversation."""

EVENT_LIMIT = 64 * 1024
"""Maximum length in characters of an event."""

EVENTS_LIMIT = 1000
"""Most events of one program; later ones are left out."""

BATCH_SIZE = 64 * 1024
"""Number of bytes of output sent together (each send costs some 30 us)."""


class OpenScreen(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """
    Create a screen.

    :param number: was never used before, as that of each emulator.
    """

    number: int
    columns: int
    rows: int


class OpenScan(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """
    Begin to scan the output of a program.

    :param size: columns and rows of the program's terminal; ``None``: it has none.
    """

    number: int
    promise: str
    prompt: str
    size: tuple[int, int] | None


class FeedOutput(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Output, split anywhere."""

    number: int
    data: bytes


class ResizeTerminal(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The terminal has a new size."""

    number: int
    columns: int
    rows: int


class TypedInput(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """For a scan: a person's input."""

    number: int
    data: bytes


class RedrawScreen(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Answer with a complete redraw of the screen."""

    number: int
    request: int
    columns: int
    rows: int
    history: bool


class ReadScreen(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Answer with the text of a screen, in UTF-8."""

    number: int
    request: int


class EndScan(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The output ended: report what was found."""

    number: int


class CloseEmulator(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Forget an emulator."""

    number: int


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The library is loaded and works: from now on requests are answered at once."""


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The answer to a request."""

    request: int
    data: bytes


class Refusal(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """There is no answer."""

    request: int
    reason: str


class EmulatorFailed(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """An emulator failed, and is forgotten."""

    number: int
    reason: str


class BytesRead(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """So many bytes of output were scanned."""

    number: int
    size: Annotated[int, msgspec.Meta(ge=0)]


class EventFound(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The program printed an event."""

    number: int
    topic: Annotated[str, msgspec.Meta(max_length=EVENT_LIMIT)]
    payload: Annotated[str, msgspec.Meta(max_length=EVENT_LIMIT)]


class ScanResult(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """
    The answer to :class:`EndScan`.

    :param promised: whether the promise was made.
    :param text: the end of the output as plain text.
    """

    number: int
    promised: bool
    text: Annotated[str, msgspec.Meta(max_length=KEPT)]


ScreenRequest = RedrawScreen | ReadScreen
EmulatorOrder = (
    OpenScreen | OpenScan | FeedOutput | ResizeTerminal | TypedInput | ScreenRequest | EndScan | CloseEmulator
)
ScanReport = BytesRead | EventFound | ScanResult
EmulatorReply = Ready | Answer | Refusal | EmulatorFailed | ScanReport


def order_reader() -> MessageReader[EmulatorOrder]:
    """:returns: the process's reader of orders."""
    return MessageReader("emulator", msgspec.msgpack.Decoder(EmulatorOrder), MESSAGE_LIMIT)


def reply_reader() -> MessageReader[EmulatorReply]:
    """:returns: the client's reader of replies."""
    return MessageReader("emulator", msgspec.msgpack.Decoder(EmulatorReply), MESSAGE_LIMIT)


def sendable(text: str) -> str:
    """:returns: the text with invalid characters replaced: no terminal shows them either."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


GAP = ABORT + PLAIN
"""Sent before output that does not continue the earlier output: modes are kept, the text style is reset."""


class EmulatorOutbox:
    """
    Orders and output for an emulator, in order.

    :ivar waiting: number of queued bytes.
    """

    def __init__(self, opening: OpenScreen | OpenScan) -> None:
        self._number = opening.number
        self._frames: list[bytes] = []
        self._output: list[bytes] = []
        self._unsealed = 0
        self._requests: list[int] = []
        self._lasting: dict[type, EmulatorOrder] = {}
        self.waiting = 0
        self.put(opening)

    def feed(self, data: bytes) -> None:
        """Queue output."""
        self._output.append(data)
        self._unsealed += len(data)
        self.waiting += len(data)
        if self._unsealed >= BATCH_SIZE:
            self._seal()

    def put(self, order: EmulatorOrder) -> None:
        """Queue an order."""
        if isinstance(order, ScreenRequest):
            self._requests.append(order.request)
        elif isinstance(order, OpenScreen | ResizeTerminal):
            self._lasting[type(order)] = order
        self._seal()
        self._frames.append(packed(order))
        self.waiting += len(self._frames[-1])

    def take(self) -> bytes:
        """:returns: everything queued, in frames; the queue is empty afterwards."""
        self._seal()
        taken = b"".join(self._frames)
        self._clear()
        return taken

    def restart(self, last: bytes) -> list[int]:
        """
        Replace a screen's queue by the last output and what it requires.

        :param last: the last output.
        :returns: queued requests, which will not be sent.
        """
        dropped, lasting = self._requests, self._lasting
        self._clear()
        for order in lasting.values():
            self.put(order)
        self.feed(GAP + last)
        return dropped

    def _seal(self) -> None:
        if self._output:
            self._frames.append(packed(FeedOutput(self._number, b"".join(self._output))))
            self._output, self._unsealed = [], 0

    def _clear(self) -> None:
        self._frames, self._output, self._requests, self._lasting = [], [], [], {}
        self._unsealed = self.waiting = 0
