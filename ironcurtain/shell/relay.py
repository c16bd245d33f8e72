"""What passes between the user's terminal and the shell until the session is there."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from dataclasses import dataclass

from ironcurtain.shell_integration.fallback import FallbackPrefix
from ironcurtain.shell_integration.marks import InstructionTyped, Mark, MarkReader
from ironcurtain.terminal.changes import TerminalChanges

OUTPUT_LIMIT = 256 * 1024
"""Most bytes of output that are relayed; for more, the shell waits until the session is there."""

READ_SIZE = 65536


@dataclass(frozen=True, slots=True)
class Relayed:
    """
    Where a relay stopped.

    :param reader: of the marks in all output so far.
    :param fallback: of instructions in all keys so far, for a shell without marks.
    :param shown: output and marks that the user's terminal has, or has in ``unshown``.
    :param waiting: output and marks that came after that.
    :param unshown: what the user's terminal did not take yet.
    :param untyped: keys that the shell did not take yet.
    :param typed_ahead: whether something was typed after the last Enter.
    :param entered: whether Enter was pressed.
    """

    reader: MarkReader
    fallback: FallbackPrefix
    shown: tuple[bytes | Mark, ...]
    waiting: tuple[bytes | Mark, ...]
    unshown: bytes
    untyped: bytes
    typed_ahead: bool
    entered: bool


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
        self._terminal, self._shell = terminal, shell
        self._reader, self._fallback = MarkReader(nonce), FallbackPrefix()
        self._integrated, self._in_foreground = integrated, in_foreground
        self._shown: list[bytes | Mark] = []
        self._waiting: list[bytes | Mark] = []
        self._unshown, self._untyped = b"", b""
        self._size = 0
        self._typed_ahead = self._entered = False
        self._ended: set[int] = set()
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
        reading = {self._woken}
        if not self._waiting:
            reading |= set() if self._untyped else {self._terminal}
            reading |= set() if self._unshown or self._size >= OUTPUT_LIMIT else {self._shell}
        writing = ({self._shell} if self._untyped else set()) | ({self._terminal} if self._unshown else set())
        readable, writable, _ = select.select(reading - self._ended, writing - self._ended, ())
        if self._woken in readable:
            return False
        if self._shell in writable:
            self._untyped = self._write(self._shell, self._untyped)
        if self._terminal in writable:
            self._unshown = self._write(self._terminal, self._unshown)
        if self._terminal in readable:
            self._typed(self._read(self._terminal))
        if self._shell in readable:
            self._output(self._read(self._shell))
        return True

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
        return Relayed(
            self._reader,
            self._fallback,
            tuple(self._shown),
            tuple(self._waiting),
            self._unshown,
            self._untyped,
            self._typed_ahead,
            self._entered,
        )

    def _typed(self, keys: bytes) -> None:
        typed: tuple[str, ...] = ()
        if not self._integrated:
            found = self._fallback.feed(keys, self._in_foreground())
            keys, typed = found.forwarded, found.instructions
            self._output(found.echo)
        self._waiting += map(InstructionTyped, typed)
        if keys:
            self._typed_ahead = not keys.endswith((b"\r", b"\n"))
            self._entered |= b"\r" in keys
            self._untyped = self._write(self._shell, keys)

    def _output(self, data: bytes) -> None:
        self._size += len(data)
        for piece in self._reader.feed(data):
            if self._waiting or isinstance(piece, InstructionTyped):
                self._waiting.append(piece)
                continue
            self._shown.append(piece)
            if isinstance(piece, bytes):
                self._unshown += piece
                self._changes.feed(piece)
        self._unshown = self._write(self._terminal, self._unshown)

    def _read(self, descriptor: int) -> bytes:
        try:
            data = os.read(descriptor, READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError:  # EIO: nobody has the other side any more
            data = b""
        if not data:
            self._ended.add(descriptor)
        return data

    def _write(self, descriptor: int, data: bytes) -> bytes:
        """:returns: the rest, which cannot be written now."""
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            return data
        except OSError:  # EIO: nobody has the other side any more
            return b""
        return data
