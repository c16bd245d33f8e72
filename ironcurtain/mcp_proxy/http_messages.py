"""
Read the messages in HTTP answers before the SDK does, as those of other servers are read.

The SDK gets well-formed messages only. Each request has its own HTTP answer, so that an answer with another id, or one
that cannot be read, is known to answer that request.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ironcurtain.jsonrpc import codec, lenient

_LINE_END = re.compile(rb"\r\n|\r|\n")


class MessageReader(msgspec.Struct, frozen=True):
    """
    Reads the messages of one HTTP answer.

    :param request: the request that it answers; ``None`` for a stream of other messages.
    :param unread: called with a request, and why its answer cannot be read.
    :param tell: called with a line for the log about a message that is dropped.
    """

    request: codec.Id | None
    unread: Callable[[codec.Id, str], None]
    tell: Callable[[str], None]

    def body(self, body: bytes) -> bytes:
        """:returns: the complete body of an answer, as one message."""
        return self._read(body, complete=True)

    def error(self, body: bytes) -> bytes:
        """:returns: the body of an HTTP error, as a message if it is one."""
        try:
            message = lenient.read(body)
        except lenient.Unreadable:
            return body
        return self._written(message) or body

    def event(self, data: bytes) -> bytes:
        """:returns: the data of one event as a message; empty if it is dropped."""
        return self._read(data, complete=False)

    def _read(self, data: bytes, complete: bool) -> bytes:
        try:
            return self._written(lenient.read(data))
        except lenient.Unreadable as e:
            if self.request is None or not (complete or e.is_answer):
                self.tell(f"(not understood: {e.detail})")
                return b""
            self.unread(self.request, e.detail)
            return codec.error(self.request, codec.PARSE_ERROR, "it cannot be read").rstrip()

    def _written(self, message: codec.Message) -> bytes:
        if isinstance(message, codec.Response):
            return self._answered(message)
        if (message.params or b"{").startswith(b"["):
            self.tell("(not understood: params must be an object)")
            return b""
        if isinstance(message, codec.Request):
            return codec.request(message.id, message.method, message.params).rstrip()
        return codec.notification(message.method, message.params).rstrip()

    def _answered(self, answer: codec.Response) -> bytes:
        identifier = answer.id if self.request is None else self.request
        if identifier is None:
            self.tell("(not understood: an answer to no request)")
            return b""
        if answer.result is not None:
            return codec.result(identifier, answer.result).rstrip()
        return codec.raw_error(identifier, answer.error or b"{}").rstrip()


class EventRewriter(msgspec.Struct):
    """
    Rewrites the messages in a stream of server-sent events. Other fields of events are unchanged.

    :param rewrite: returns a message as it is to be; empty to drop it.
    :param limit: size in bytes of an event from which the rest of the stream is unchanged: it is about to be refused.
    """

    rewrite: Callable[[bytes], bytes]
    limit: int
    _line: list[bytes] = msgspec.field(default_factory=list)
    _data: list[bytes] = msgspec.field(default_factory=list)
    _name: bytes = b""
    _size: int = 0
    _first: bool = True
    _after_cr: bool = False

    def feed(self, data: bytes) -> bytes:
        """
        Process bytes in any slicing.

        :returns: the bytes of the rewritten stream so far.
        """
        if not data or self._size > self.limit:
            return data
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        *whole, rest = _LINE_END.split(data)
        written: list[bytes] = []
        for piece in whole:
            self._keep(piece)
            line = b"".join(self._line)
            self._line.clear()
            self._take(line, written)
        self._keep(rest)
        if self._size > self.limit:
            written += [*(b"data: %b\n" % data for data in self._data), *self._line]
        return b"".join(written)

    def end(self) -> bytes:
        """:returns: what is left of a stream that ended: a complete message in an event that lacks its end."""
        written: list[bytes] = []
        if self._size <= self.limit:
            if self._line:
                self._take(b"".join(self._line), written)
            if _is_message(b"\n".join(self._data)):
                self._take(b"", written)
        return b"".join(written)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if piece:
            self._line.append(piece)

    def _take(self, line: bytes, written: list[bytes]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(lenient.BYTE_ORDER_MARK)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif line:
            self._name = value if name == b"event" else self._name
            written.append(line + b"\n")
        else:
            written += [*self._event(), b"\n"]
            self._data.clear()
            self._name, self._size = b"", 0

    def _event(self) -> list[bytes]:
        data = b"\n".join(self._data)
        if not data or self._name not in (b"", b"message"):
            return [b"data: %b\n" % line for line in self._data]
        return [b"data: %b\n" % line for line in self.rewrite(data).split(b"\n") if line]


def _is_message(data: bytes) -> bool:
    try:
        lenient.read(data)
    except lenient.Unreadable:
        return False
    return True
