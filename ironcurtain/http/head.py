"""
Heads of HTTP/1.1 messages, parsed strictly (RFC 9112).

Ambiguous heads are the means of request smuggling. So for everything that determines a message's end and target, one
spelling is accepted, and all others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.fields import Fields, pick, read_fields, words
from ironcurtain.http.framing import Chunked, Counted, Framing, UntilClose

# These are created for each request, and creating a frozen dataclass takes six times as long as a named tuple.


class RequestHead(NamedTuple):
    """
    The head of a request.

    :ivar method: unchanged; methods are case-sensitive (RFC 9110 section 9.1).
    :ivar target: the complete request target, unchanged.
    :ivar path: the target up to the first question mark.
    :ivar query: the part after that question mark; empty if there is none.
    :ivar headers: names in lower case with values (latin-1), in their original order.
    """

    method: str
    target: str
    path: str
    query: str
    headers: Fields

    def __repr__(self) -> str:
        return f"RequestHead({self.method!r}, {self.path!r}, ...)"


HEAD_LIMIT = 64 * 1024
"""Maximum size in bytes of a head (nginx allows 32 KiB, and heads of model APIs have about two)."""

_REQUEST = re.compile(r"([A-Z][A-Z-]{0,31}) (/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)(?:\?([!\"$-~]*))? HTTP/1\.1")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
_NO_BODY = frozenset((204, 304))
_OF_REQUESTS = frozenset(("connection", "content-length", "expect", "host", "transfer-encoding"))
_OF_RESPONSES = frozenset(("connection", "content-encoding", "content-length", "content-type", "transfer-encoding"))
_NONE: list[str] = []


class HeadReader(msgspec.Struct):
    """
    Collects bytes until one head is complete.

    :param limit: its maximum size in bytes.
    """

    limit: int = HEAD_LIMIT
    _buffer: bytes = b""

    @property
    def begun(self) -> bool:
        """Whether part of a head has arrived."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> tuple[bytes, bytes] | None:
        """
        Process bytes in any slicing.

        :returns: the head, without the blank line at its end, and the bytes after it; ``None`` while it is incomplete.
        :raises ProtocolViolation: it is longer than the limit.
        """
        start = max(0, len(self._buffer) - 3)
        whole = self._buffer + data if self._buffer else data
        end = whole.find(b"\r\n\r\n", start)
        if (len(whole) if end < 0 else end) > self.limit:
            raise ProtocolViolation("http", f"a head of more than {self.limit} bytes")
        if end < 0:
            self._buffer = whole
            return None
        self._buffer = b""
        return whole[:end], whole[end + 4 :]


class HttpRequest(NamedTuple):
    """
    One request.

    :param host: the value of its only Host header, in lower case.
    :param length: size of its body in bytes; ``None`` if it is chunked.
    :param expects: whether the client waits for ``100 Continue`` before it sends the body.
    :param last: whether the client wants the connection closed after the response.
    """

    head: RequestHead
    host: str
    length: int | None
    expects: bool
    last: bool

    def framing(self) -> Framing:
        """:returns: the framing of the body."""
        return Chunked(strict=True) if self.length is None else Counted(self.length)


class HttpResponse(NamedTuple):
    """
    The head of one response.

    :param named: the values of the fields that determine its processing.
    :param length: size of its body in bytes if known in advance.
    :param framing: the framing of the body.
    :param last: whether the server closes the connection after it.
    """

    status: int
    fields: Fields
    named: Mapping[str, list[str]]
    length: int | None
    last: bool
    framing: Framing


def read_request(head: bytes) -> HttpRequest:
    """
    :param head: without the blank line at its end.
    :raises ProtocolViolation: it is ambiguous or invalid; answer 400.
    """
    line, _, lines = head.partition(b"\r\n")
    if (match := _REQUEST.fullmatch(line.decode("latin-1"))) is None:
        raise ProtocolViolation("http", "the first line is not an HTTP/1.1 request for a path")
    method, path, query = match.groups()
    fields = read_fields(lines)
    named = pick(fields, _OF_REQUESTS)
    hosts, expects = named.get("host", _NONE), named.get("expect", _NONE)
    if len(hosts) != 1:
        raise ProtocolViolation("http", "not exactly one Host header")
    if any(value.lower() != "100-continue" for value in expects):
        raise ProtocolViolation("http", "an expectation other than 100-continue")
    length = _length(named)
    target = path if query is None else f"{path}?{query}"
    return HttpRequest(
        RequestHead(method, target, path, query or "", fields),
        hosts[0].lower(),
        0 if length is _ABSENT else length,
        bool(expects) and length != 0 and length is not _ABSENT,
        "close" in words(named.get("connection", _NONE)),
    )


def read_status(head: bytes) -> int:
    """
    :param head: of a response, without the blank line at its end.
    :raises ProtocolViolation: its first line is not that of an HTTP/1 response.
    """
    return int(_status_line(head.partition(b"\r\n")[0])[2])


def read_response(head: bytes, method: str) -> HttpResponse:
    """
    :param head: without the blank line at its end.
    :param method: method of the request.
    :raises ProtocolViolation: it is ambiguous or invalid.
    """
    line, _, lines = head.partition(b"\r\n")
    match = _status_line(line)
    status, fields = int(match[2]), read_fields(lines)
    named = pick(fields, _OF_RESPONSES)
    length = _length(named)
    last = match[1] == b"0" or "close" in words(named.get("connection", _NONE))
    if method == "HEAD" or status < 200 or status in _NO_BODY:
        return HttpResponse(status, fields, named, None if length is _ABSENT else length, last, Counted(0))
    if length is _ABSENT:
        return HttpResponse(status, fields, named, None, True, UntilClose())
    if length is None:
        return HttpResponse(status, fields, named, None, last, Chunked(strict=False))
    return HttpResponse(status, fields, named, length, last, Counted(length))


def _status_line(line: bytes) -> re.Match[bytes]:
    if (match := _STATUS.fullmatch(line)) is None:
        raise ProtocolViolation("http", "the first line is not an HTTP/1 response")
    return match


_ABSENT = -1
"""Stands for the length if a head does not specify a body."""


def _length(named: dict[str, list[str]]) -> int | None:
    """:returns: the length in the head, ``None`` for a chunked body, or :data:`_ABSENT`."""
    lengths, codings = named.get("content-length", _NONE), named.get("transfer-encoding", _NONE)
    if not lengths and not codings:
        return _ABSENT
    if len(lengths) + len(codings) > 1:
        raise ProtocolViolation("http", "more than one header about the length of the body")
    if codings:
        if codings[0].lower() != "chunked":
            raise ProtocolViolation("http", "a transfer coding other than chunked")
        return None
    if not _LENGTH.fullmatch(lengths[0]):
        raise ProtocolViolation("http", "a length that is not a number")
    return int(lengths[0])
