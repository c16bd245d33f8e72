"""Cut a byte stream into lines, within a limit, in any slicing of the stream."""

from __future__ import annotations

from dataclasses import dataclass, field

INBOUND_LIMIT = 8 * 1024 * 1024
"""Most bytes of one message from an agent: 8 MiB (our choice; the largest real request seen was below 1 MiB)."""

OUTBOUND_LIMIT = 64 * 1024 * 1024
"""Most bytes of one message from a backend: 64 MiB (our choice; results of 10 MiB are ordinary)."""


class TooLong:
    """Stands in the list of lines where a line over the limit was thrown away."""

    __slots__ = ()


TOO_LONG = TooLong()


@dataclass(slots=True)
class Framer:
    """
    Collect bytes until lines are whole.

    A line ends with LF or CRLF; empty lines are skipped. A line over the limit is discarded while it arrives, so that
    it never costs more memory than the limit, and is reported once as :data:`TOO_LONG`.

    :param limit: most bytes of a line, without its end.
    """

    limit: int
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0
    _discarding: bool = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """
        Take bytes as they come from the transport.

        :param data: zero or more bytes.
        :returns: the lines that became whole, without their ends, in order.
        """
        *whole, rest = data.split(b"\n")
        lines: list[bytes | TooLong] = []
        for piece in whole:
            self._keep(piece, lines)
            if not self._discarding and (line := b"".join(self._parts).removesuffix(b"\r")):
                lines.append(line)
            self._parts.clear()
            self._size, self._discarding = 0, False
        self._keep(rest, lines)
        return lines

    @property
    def pending(self) -> bool:
        """Whether an unfinished line is held, or is being thrown away."""
        return self._discarding or self._size > 0

    def _keep(self, piece: bytes, lines: list[bytes | TooLong]) -> None:
        if self._discarding or not piece:
            return
        self._size += len(piece)
        if self._size > self.limit + 1:  # one more, for the CR of a CRLF
            self._parts.clear()
            self._discarding = True
            lines.append(TOO_LONG)
        else:
            self._parts.append(piece)
