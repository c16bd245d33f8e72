"""
Answer name queries inside a sandbox (RFC 1035): the listed hosts have their addresses, and no other name exists.

Nothing is ever asked elsewhere, since the name in a query alone can carry data to whoever answers it.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Mapping

import msgspec

LIFETIME = 60
"""Seconds for which programs may keep an answer."""

QUERY_LIMIT = 1500
"""Most bytes of a query; a name has 255 at most, and options follow."""

A, ANY, INTERNET = 1, 255, 1
NO_ERROR, FORMAT_ERROR, NO_SUCH_NAME, NOT_IMPLEMENTED = 0, 1, 3, 4

_HEADER = struct.Struct(">HHHHHH")
_IS_ANSWER, _AUTHORITATIVE, _RECURSION_WANTED, _RECURSION = 0x8000, 0x0400, 0x0100, 0x0080
_OPERATION = 0x7800


class _Question(msgspec.Struct, frozen=True):
    name: str
    kind: int
    group: int
    raw: bytes


def answer(query: bytes, addresses: Mapping[str, str]) -> bytes | None:
    """
    :param query: a message.
    :param addresses: the IPv4 address of each host, by name in lower case.
    :returns: the answer; ``None`` for what is not a query.
    """
    if not _HEADER.size <= len(query) <= QUERY_LIMIT:
        return None
    number, flags, questions, *_ = _HEADER.unpack_from(query)
    if flags & _IS_ANSWER:
        return None
    if flags & _OPERATION:
        return _message(number, flags, NOT_IMPLEMENTED)
    question = _question(query) if questions == 1 else None
    if question is None:
        return _message(number, flags, FORMAT_ERROR)
    if question.name not in addresses or question.group not in (INTERNET, ANY):
        return _message(number, flags, NO_SUCH_NAME, question.raw)
    found = b""
    if question.kind in (A, ANY):
        packed = ipaddress.IPv4Address(addresses[question.name]).packed
        # The name is that of the question, at byte 12.
        found = struct.pack(">HHHIH", 0xC00C, A, INTERNET, LIFETIME, len(packed)) + packed
    return _message(number, flags, NO_ERROR, question.raw, found)


def _message(number: int, flags: int, code: int, question: bytes = b"", found: bytes = b"") -> bytes:
    kept = flags & (_OPERATION | _RECURSION_WANTED)
    flags = _IS_ANSWER | _AUTHORITATIVE | _RECURSION | kept | code
    return _HEADER.pack(number, flags, bool(question), bool(found), 0, 0) + question + found


def _question(query: bytes) -> _Question | None:
    labels, at = list[bytes](), _HEADER.size
    while True:
        if at >= len(query) or (size := query[at]) > 63 or at - _HEADER.size > 254:
            return None  # a longer "label" is a reference to another place, which no question has
        at += 1
        if size == 0:
            break
        labels.append(query[at : at + size])
        at += size
    if at + 4 > len(query):
        return None
    kind, group = struct.unpack_from(">HH", query, at)
    name = b".".join(labels).decode("latin-1").lower()
    return _Question(name, kind, group, query[_HEADER.size : at + 4])
