"""What comes on standard input of ``ironcurtain shell`` without a terminal: data for an instruction, or lines."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from ironcurtain.cli.piped import FIRST_BYTE_SECONDS
from ironcurtain.errors import UsageError
from ironcurtain.shell.messages import Action, Alive, Instruct
from ironcurtain.shell.protocol import InputLines, decode_action

QUIET_SECONDS = 10.0
"""How long nothing may come before a stream counts as one that goes on, and its beginning as all the data."""

KEPT = 20_000
"""Most characters of the beginning of the data, and again of its end, that an instruction gets."""

BLOCK = 64 * 1024


class PipedData:
    """
    The beginning and the end of a stream: it may be long, but what is kept of it is not.

    :ivar open: whether the stream has not ended.
    """

    def __init__(self) -> None:
        self._head, self._tail, self._size = bytearray(), bytearray(), 0
        self.open = False

    def add(self, block: bytes) -> None:
        """:param block: the next bytes."""
        limit = 4 * KEPT  # of bytes, that so many characters can have
        self._size += len(block)
        room = limit - len(self._head)
        self._head += block[:room]
        self._tail += block[max(room, 0) :]
        del self._tail[:-limit]

    @property
    def size(self) -> int:
        """Bytes of all that came."""
        return self._size

    def text(self) -> str:
        """
        :returns: it as text, without its middle if it is long.
        :raises UsageError: it is no text.
        """
        cut = self._size > len(self._head) + len(self._tail)
        if b"\0" in self._head or b"\0" in self._tail:
            raise _no_text()
        if not cut:
            text = _decoded(bytes(self._head + self._tail), self.open)
            if len(text) <= 2 * KEPT:
                return text
            head, tail = text[:KEPT], text[-KEPT:]
        else:
            head = _decoded(bytes(self._head), True)[:KEPT]
            tail = self._tail.decode("utf-8", "replace")[-KEPT:]
        return f"{head}\n[... of {self._size} bytes, those between are left out ...]\n{tail}"


def _decoded(data: bytes, may_be_cut: bool) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        if may_be_cut and e.start >= len(data) - 3 and e.reason == "unexpected end of data":
            return data[: e.start].decode()
        raise _no_text() from None


def _no_text() -> UsageError:
    return UsageError("standard input is no UTF-8 text: name a file in the instruction instead, or pipe in text")


def read_data(descriptor: int, quiet: float = QUIET_SECONDS) -> PipedData:
    """
    Read standard input, unless it is a terminal or a device, to its end; or until nothing has come for a while, if
    something came before. Of a program that writes without a pause, as much as an instruction can use is read.

    :param quiet: seconds.
    """
    found, mode = PipedData(), os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return found
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    seconds = FIRST_BYTE_SECONDS
    while stat.S_ISREG(mode) or poll.poll(seconds * 1000):
        if not (block := os.read(descriptor, BLOCK)):
            return found
        found.add(block)
        seconds = quiet
    found.open = found.size > 0
    return found


def is_unread(descriptor: int) -> bool:
    """:returns: whether the other end of a pipe or socket is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


class InstructionInput(Protocol):
    """
    Standard input: instructions as lines that begin with ``#``, and actions as JSON.

    :param acted: gets the actions; ``None``: nothing more comes.
    :param wrong: gets a sentence for each line that is neither.
    :param lost: called if the program at the other end does not say any more that it is there, after it had.
    :ivar ended: whether all has come.
    :ivar instructed: how many instructions came.
    """

    def __init__(
        self,
        acted: Callable[[Action | None], None],
        wrong: Callable[[str], None],
        lost: Callable[[], None],
        clock: IReactorTime,
    ) -> None:
        self._acted, self._wrong, self._lost, self._clock = acted, wrong, lost, clock
        self._losing: IDelayedCall | None = None
        self._lines = InputLines()
        self._instructions: list[str] = []
        self._waiting: Deferred[str | None] | None = None
        self.ended = False
        self.instructed = 0

    def dataReceived(self, data: bytes) -> None:
        """Take bytes in any slicing."""
        for line in self._lines.feed(data):
            self._line(line)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The last line need not have an end."""
        for line in self._lines.end():
            self._line(line)
        self.ended = True
        self._is_there(None)
        self._acted(None)
        self._give()

    def _line(self, line: bytes | None) -> None:
        try:
            action = decode_action(line)
        except UsageError as e:
            self._wrong(str(e))
            return
        if isinstance(action, Instruct):
            self.instructed += 1
            self._instructions.append(action.text)
            self._give()
        elif isinstance(action, Alive):
            self._is_there(action.seconds)
        elif action is not None:
            self._acted(action)

    def _is_there(self, seconds: float | None) -> None:
        """:param seconds: within which that has to be said again; ``None``: never."""
        if self._losing is not None and self._losing.active():
            self._losing.cancel()
        self._losing = None if seconds is None or self.ended else self._clock.callLater(seconds, self._lost)

    def next(self) -> Deferred[str | None]:
        """:returns: fires with the next instruction; ``None``: there are no more."""
        self._waiting = Deferred()
        waiting = self._waiting
        self._give()
        return waiting

    def _give(self) -> None:
        if self._waiting is not None and (self._instructions or self.ended):
            waiting, self._waiting = self._waiting, None
            waiting.callback(self._instructions.pop(0) if self._instructions else None)
