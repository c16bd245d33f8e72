"""What passes between the user's terminal and the shell until the session is there."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

import msgspec

from ironcurtain.shell.streams import ShellStreams
from ironcurtain.shell_integration.marks import InstructionTyped, Mark, MarkReader
from ironcurtain.terminal.changes import TerminalChanges

OUTPUT_LIMIT = 256 * 1024
"""Most bytes of output that are relayed; for more, the shell waits until the session is there."""

READ_SIZE = 65536


class Relayed(msgspec.Struct, frozen=True):
    """
    Where a relay stopped.

    :param streams: all output and keys so far.
    :param shown: output and marks that the user's terminal has, or has in ``unshown``.
    :param waiting: output and marks that came after that.
    :param unshown: what the user's terminal did not take yet.
    :param untyped: keys that the shell did not take yet.
    """

    streams: ShellStreams
    shown: tuple[bytes | Mark, ...]
    waiting: tuple[bytes | Mark, ...]
    unshown: bytes
    untyped: bytes


class _End:
    """
    One of the two terminals.

    :param descriptor: non-blocking.
    :ivar unwritten: what it did not take yet.
    :ivar is_over: whether nobody has its other side any more.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.unwritten, self.is_over = descriptor, b"", False

    def fileno(self) -> int:
        """:returns: the descriptor, for ``select``."""
        return self.descriptor

    def read(self) -> bytes:
        """:returns: what can be read now."""
        try:
            data = os.read(self.descriptor, READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError:  # EIO
            data = b""
        self.is_over = not data
        return data

    def write(self, data: bytes = b"") -> None:
        """Write what can be written now of what is left, and of this."""
        self.unwritten += data
        try:
            while self.unwritten:
                self.unwritten = self.unwritten[os.write(self.descriptor, self.unwritten) :]
        except BlockingIOError:
            return
        except OSError:  # EIO
            self.unwritten = b""


class Relay:
    """
    Passes keys to the shell, and its output without marks to the user. It stops at an instruction: that and all that
    follows is for the session.

    :param terminal: non-blocking descriptor of the user's terminal, in raw mode.
    :param shell: non-blocking descriptor of the master side of the shell's.
    :param nonce: of its marks.
    :param integrated: whether it has marks.
    :param in_foreground: returns whether the shell itself has its terminal, and not a job.
    :param changes: follows what is written to the user's terminal.
    """

    def __init__(
        self,
        terminal: int,
        shell: int,
        nonce: str,
        integrated: bool,
        in_foreground: Callable[[], bool],
        changes: TerminalChanges,
    ) -> None:
        self._changes = changes
        self._terminal, self._shell = _End(terminal), _End(shell)
        self._streams = ShellStreams(MarkReader(nonce))
        self._integrated, self._in_foreground = integrated, in_foreground
        self._shown: list[bytes | Mark] = []
        self._waiting: list[bytes | Mark] = []
        self._size = 0
        self._woken, self._wake = os.pipe()

    def run(self) -> None:
        """Relay until :meth:`stop` is called in another thread."""
        while self.turn():
            pass

    def turn(self) -> bool:
        """
        Wait until something can be relayed, and relay it.

        :returns: ``False`` once :meth:`stop` was called; nothing more was relayed then.
        """
        ends = [end for end in (self._terminal, self._shell) if not end.is_over]
        reading: list[_End | int] = [self._woken]
        reading += [] if self._waiting else [end for end in ends if self._takes(end)]
        readable, writable, _ = select.select(reading, [end for end in ends if end.unwritten], ())
        if self._woken in readable:
            return False
        for end in writable:
            end.write()
        if self._terminal in readable:
            self._typed(self._terminal.read())
        if self._shell in readable:
            self._output(self._shell.read())
        return True

    def _takes(self, end: _End) -> bool:
        """:returns: whether what can be read there can be passed on."""
        if end is self._terminal:
            return not self._shell.unwritten
        return not self._terminal.unwritten and self._size < OUTPUT_LIMIT

    def stop(self) -> None:
        """End :meth:`run`. Can be called once, from any thread."""
        os.write(self._wake, b"x")

    def close(self) -> Relayed:
        """
        Call it after :meth:`run` has ended.

        :returns: where it stopped.
        """
        os.close(self._woken)
        os.close(self._wake)
        shown, waiting = tuple(self._shown), tuple(self._waiting)
        return Relayed(self._streams, shown, waiting, self._terminal.unwritten, self._shell.unwritten)

    def _typed(self, keys: bytes) -> None:
        typed = self._streams.typed(keys, self._integrated, self._in_foreground)
        self._output(typed.echo)
        self._waiting += map(InstructionTyped, typed.instructions)
        self._shell.write(typed.forwarded)

    def _output(self, data: bytes) -> None:
        self._size += len(data)
        unshown = b""
        for piece in self._streams.reader.feed(data):
            if self._waiting or isinstance(piece, InstructionTyped):
                self._waiting.append(piece)
                continue
            self._shown.append(piece)
            if isinstance(piece, bytes):
                unshown += piece
                self._changes.feed(piece)
        self._terminal.write(unshown)
