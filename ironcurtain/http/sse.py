"""
Parse a stream of Server-Sent Events (WHATWG HTML, section 9.2.6 "Interpreting an event stream").

The ``retry`` field is ignored, since nothing here reconnects to a stream.
"""

from __future__ import annotations

import re

import msgspec

from ironcurtain.errors import ProtocolViolation

EVENT_LIMIT = 16 * 1024 * 1024
"""Maximum size in bytes of one event, including comments: 16 MiB (the largest seen is a tool's complete input)."""

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerEvent(msgspec.Struct, frozen=True):
    """One event; ``name`` is ``message`` if the stream gave none, ``id`` the last id in the stream."""

    name: str
    data: str
    id: str


class EventParser(msgspec.Struct):
    """
    Collects bytes until events are complete. An incomplete event at the end is dropped, as the standard says.

    :param limit: maximum size in bytes of one event.
    """

    limit: int = EVENT_LIMIT
    _line: list[bytes] = msgspec.field(default_factory=list)
    _data: list[str] = msgspec.field(default_factory=list)
    _name: str = ""
    _id: str = ""
    _size: int = 0
    _first: bool = True
    _after_cr: bool = False

    def feed(self, data: bytes) -> list[ServerEvent]:
        """
        Process bytes in any slicing.

        :param data: zero or more bytes.
        :returns: the completed events, in order.
        :raises ProtocolViolation: an event is longer than the limit.
        """
        if not data:
            return []
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        *whole, rest = _LINE_END.split(data)
        events: list[ServerEvent] = []
        for piece in whole:
            self._keep(piece)
            line = b"".join(self._line)
            self._line.clear()
            self._take(line, events)
        self._keep(rest)
        return events

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self.limit:
            raise ProtocolViolation("server-sent events", f"an event is longer than {self.limit} bytes")
        if piece:
            self._line.append(piece)

    def _take(self, line: bytes, events: list[ServerEvent]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        self._field(name, value.removeprefix(" "))

    def _field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value

    def _dispatch(self, events: list[ServerEvent]) -> None:
        if self._data:
            events.append(ServerEvent(self._name or "message", "\n".join(self._data), self._id))
        self._data.clear()
        self._name, self._size = "", 0
