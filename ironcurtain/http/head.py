"""
Heads of HTTP/1.1 messages, read strictly (RFC 9112).

A head that two programs could understand differently is how one request is made to look like two. So there is one way
to write each thing that decides where a message ends and whom it is for, and everything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.fields import Fields, pick, read_fields, words
from ironcurtain.http.framing import Chunked, Counted, Framing, UntilClose


@dataclass(frozen=True, slots=True)
class RequestHead:
    """
    What stands before a request's body.

    :ivar method: as it was written; methods are case-sensitive (RFC 9110 section 9.1).
    :ivar target: the whole request target, as it was written.
    :ivar path: the target up to the first question mark.
    :ivar query: what follows that question mark; empty if there is none.
    :ivar headers: names in lower case and values (latin-1), in the order in which they came.
    """

    method: str
    target: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)


HEAD_LIMIT = 64 * 1024
"""Most bytes of one head (nginx takes 32 KiB, and the heads of model APIs have about two)."""

_REQUEST = re.compile(r"([A-Z][A-Z-]{0,31}) (/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)(?:\?([!\"$-~]*))? HTTP/1\.1")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?")
_LENGTH = re.compile(r"[0-9]{1,15}")
_NO_BODY = frozenset((204, 304))
_OF_REQUESTS = frozenset(("connection", "content-length", "expect", "host", "transfer-encoding"))
_OF_RESPONSES = frozenset(("connection", "content-encoding", "content-length", "content-type", "transfer-encoding"))
_NONE: list[str] = []


@dataclass(slots=True)
class HeadReader:
    """
    Collect bytes until one head is whole.

    :param limit: most bytes of it.
    """

    limit: int = HEAD_LIMIT
    _buffer: bytes = b""

    @property
    def begun(self) -> bool:
        """Whether part of a head has come."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> tuple[bytes, bytes] | None:
        """
        Take bytes as they come, in any slicing.

        :returns: the head, without the blank line at its end, and what came after it; ``None`` while it is not whole.
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


# These two are made for each request, and a frozen dataclass takes six times as long to make as a named tuple.


class HttpRequest(NamedTuple):
    """
    One request.

    :param host: the value of its one Host header, in lower case.
    :param length: bytes of its body; ``None`` if it is chunked.
    :param expects: whether the client waits for ``100 Continue`` before it sends the body.
    :param last: whether the client wants the connection closed after the response.
    """

    head: RequestHead
    host: str
    length: int | None
    expects: bool
    last: bool

    def framing(self) -> Framing:
        """:returns: what finds the end of the body."""
        return Chunked(strict=True) if self.length is None else Counted(self.length)


class HttpResponse(NamedTuple):
    """
    The head of one response.

    :param named: the values of those fields that decide on what is done with it.
    :param length: bytes of its body if they are told in advance.
    :param framing: what finds the end of the body.
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
    :raises ProtocolViolation: it is not to be understood in one way only; answer 400.
    """
    line, _, lines = head.partition(b"\r\n")
    if (match := _REQUEST.fullmatch(line.decode("latin-1"))) is None:
        raise ProtocolViolation("http", "the first line is no HTTP/1.1 request for a path")
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


def read_response(head: bytes, method: str) -> HttpResponse:
    """
    :param head: without the blank line at its end.
    :param method: of the request that this answers.
    :raises ProtocolViolation: the server cannot be understood.
    """
    line, _, lines = head.partition(b"\r\n")
    if (match := _STATUS.fullmatch(line)) is None:
        raise ProtocolViolation("http", "the first line is no HTTP/1 response")
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


_ABSENT = -1
"""In place of a length where a head says nothing about a body."""


def _length(named: dict[str, list[str]]) -> int | None:
    """:returns: the length that the head tells, ``None`` for a chunked body, or :data:`_ABSENT`."""
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
        raise ProtocolViolation("http", "a length that is no number")
    return int(lengths[0])
