"""
Read the messages of MCP servers, also those that break the rules of JSON-RPC but whose meaning is plain.

An answer that cannot be read is refused with the request that it answers, if that can be told, so that its caller
learns the reason at once.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ironcurtain.errors import ProtocolViolation
from ironcurtain.jsonrpc import codec

SCAN_LIMIT: Final = 1024 * 1024
"""Number of bytes of a broken message that are searched for its id and for the reason."""

STRINGS_LIMIT: Final = 200_000
"""Maximum number of quotation marks of a message in whose strings tabs are escaped."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_NAMED: Final = b'"jsonrpc"'
_NOTIFICATION: Final = b'"notifications/'
_LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)"
    rb"(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_CONTROLS = tuple(bytes([code]) for code in range(0x20) if bytes([code]) not in b"\t\n\r")
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_TOKENS = re.compile(_STRING + rb"|[{}\[\]]|-?Infinity|NaN", re.DOTALL)
_NUMBER = rb'\s*:\s*(\d{1,18}(?:\.0+)?|"\d{1,18}")\s*'
_MEMBER = re.compile(_NUMBER + rb"[,}]")
_LAST_MEMBER = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"' + _NUMBER + rb"\}\s*\Z")


class Unreadable(ProtocolViolation):
    """
    Bytes of a server that are not a message.

    :param ids: the requests that it answers, if that can be told.
    :param is_answer: whether it was meant as an answer. Otherwise it is another message, or text such as a log.
    """

    def __init__(self, detail: str, ids: tuple[int, ...] = (), is_answer: bool = False) -> None:
        super().__init__("json-rpc", detail)
        self.ids, self.is_answer = ids, is_answer or bool(ids)


class _Members(msgspec.Struct):
    jsonrpc: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    method: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Call(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: float
    method: str
    params: dict[str, msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET


_calls = msgspec.json.Decoder(_Call)
_scanner = json.JSONDecoder(strict=False)
_objects = msgspec.json.Decoder(_Members)
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_raw_batches = msgspec.json.Decoder(list[msgspec.Raw])
_batches = msgspec.json.Decoder(list[_Members])


def read(message: bytes) -> codec.Message:
    """
    Read one message of a server.

    A batch of one message is that message. The id of a request may be a fraction. Broken characters become U+FFFD,
    unescaped control characters are escaped, and a byte order mark is ignored, as are members that are null where none
    is permitted. The result of an answer is an object; its error has a number and a text. Its id is a number, as the
    proxy's are.

    :param message: bytes without a line end.
    :raises Unreadable: it is not a message.
    """
    message = _alone(message.removeprefix(BYTE_ORDER_MARK))
    if b"\r" in message:  # white space in JSON, but a line end to some readers
        message = message.replace(b"\r", b" ")
    try:
        return _strictly(message)
    except codec.InvalidMessage as e:
        if _NAMED not in message and _NAMED in message.replace(b"\0", b""):
            raise Unreadable("it is UTF-16 text, not UTF-8", is_answer=True) from None
        if (mended := _without_nulls(_mended(message))) == message:
            return _answer(message, e)
    try:
        return _strictly(mended)
    except codec.InvalidMessage as e:
        return _answer(mended, e)


def messages(line: bytes) -> tuple[bytes, ...]:
    """:returns: the messages on a line, of which some servers write several one after the other."""
    if line.count(_NAMED) < 2 or line.lstrip().startswith(b"["):
        return (line,)
    found, at = list[bytes](), 0
    text = line.decode("utf-8", "surrogateescape")
    try:
        while at < len(text):
            _, end = _scanner.raw_decode(text, at)
            found.append(text[at:end].encode("utf-8", "surrogateescape"))
            while end < len(text) and text[end] in " \t\r\n":
                end += 1
            at = end
    except (ValueError, RecursionError):
        return (line,)
    return tuple(found)


def as_number(value: Any) -> int | None:
    """:returns: the id of a request of ours, also if it comes back as text or as a fraction; ``None`` if it is none."""
    if isinstance(value, str) and len(value) < 19 and value.isascii() and value.isdigit():
        return int(value) if str(int(value)) == value else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _alone(message: bytes) -> bytes:
    """:returns: the message in a batch of one, else what was given."""
    if not message.lstrip().startswith(b"["):
        return message
    try:
        batch = _raw_batches.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return message
    return bytes(batch[0]) if len(batch) == 1 else message


def _strictly(message: bytes) -> codec.Message:
    """:raises InvalidMessage: it is not a message, or an answer that has to be looked at again."""
    parsed = codec.parse(message)
    if not isinstance(parsed, codec.Response):
        return parsed
    if not isinstance(parsed.id, int) or parsed.result is None or not parsed.result.startswith(b"{"):
        raise codec.InvalidMessage(codec.INVALID_REQUEST, "an odd answer")
    return parsed


def _mended(message: bytes) -> bytes:
    if not message.isascii():
        message = message.decode("utf-8", "replace").encode()
    message = _LONE_SURROGATE.sub(lambda found: found[1] + (found[2] or b"\\ufffd"), message)
    for control in _CONTROLS:
        message = message.replace(control, b"\\u%04x" % control[0])
    if b"\t" in message and message.count(b'"') <= STRINGS_LIMIT:  # between strings it is white space
        message = _STRINGS.sub(lambda string: string[0].replace(b"\t", b"\\t"), message)
    return message


def _without_nulls(message: bytes) -> bytes:
    """:returns: a message in which members that are null, where none is permitted, are missing."""
    if b"null" not in message:
        return message
    try:
        members = _raw_members.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return message
    notifies = bytes(members.get("method", b"")).startswith(_NOTIFICATION)
    needless = ("id", "params") if notifies else ("method", "params")
    kept = {name: raw for name, raw in members.items() if name not in needless or bytes(raw) != b"null"}
    return message if len(kept) == len(members) else codec.encode(kept)


def _answer(message: bytes, why: codec.InvalidMessage) -> codec.Message:
    try:
        call = _calls.decode(message)
        return codec.Request(call.id, call.method, None if call.params is msgspec.UNSET else codec.encode(call.params))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        members = _objects.decode(message)
    except (msgspec.ValidationError, RecursionError):
        raise _no_object(message) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise _no_json(message, str(e)) from None
    result, error = (b"" if raw == b"null" else raw for raw in (bytes(members.result), bytes(members.error)))
    ids = _ids(members)
    if members.method or not (members.jsonrpc or ids):
        raise Unreadable(why.detail)
    if bytes(members.jsonrpc) != b'"2.0"':
        raise Unreadable('jsonrpc must be "2.0"', ids if result or error else ())
    if not error and not members.result:
        raise Unreadable("it has neither a result nor an error", ids, is_answer=True)
    if not error and result and not result.startswith(b"{"):
        raise Unreadable("its result is not an object", ids, is_answer=True)
    identifier = ids[0] if ids else None
    if identifier is None and not error:
        raise Unreadable("it has no id of a request", is_answer=bytes(members.id) in (b"", b"null"))
    return codec.Response(identifier, None if error else result or b"{}", _sound_error(error) if error else None)


def _sound_error(raw: bytes) -> bytes:
    """:returns: an error object that clients accept: with a code that is an integer, and a message that is a text."""
    try:
        error = codec.decode(raw)
    except codec.InvalidMessage:
        error = "the server answered with an error"
    code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else (None, error)
    if type(code) is int and isinstance(message, str):
        return raw
    number = as_number(code)
    text = message if isinstance(message, str) else codec.encode(error).decode()
    mended = {"code": codec.INTERNAL_ERROR if number is None else number, "message": text}
    return codec.encode({**error, **mended} if isinstance(error, dict) else mended)


def _ids(members: _Members) -> tuple[int, ...]:
    try:
        number = as_number(codec.decode(bytes(members.id))) if members.id else None
    except codec.InvalidMessage:
        return ()
    return () if number is None else (number,)


def _no_object(message: bytes) -> Unreadable:
    if not message.lstrip().startswith(b"["):
        found = _scan(message)
        return Unreadable("it is not an object on one line, or nested too deeply", found.ids, found.is_answer)
    try:
        ids = tuple(number for members in _batches.decode(message) for number in _ids(members))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        ids = ()
    return Unreadable("batches are not supported", ids)


def _no_json(message: bytes, why: str) -> Unreadable:
    found = _scan(message)
    if found.constant:
        return Unreadable(f"it contains {found.constant}, which JSON does not have", found.ids, found.is_answer)
    return Unreadable(f"it is not JSON: {why}", found.ids, found.is_answer)


class _Scan(NamedTuple):
    ids: tuple[int, ...]
    is_answer: bool
    constant: str


def _scan(message: bytes) -> _Scan:
    """:returns: what a message that is not JSON has as its id, as far as its outermost members can be told apart."""
    depth, identifier, constant, is_call, named = 0, b"", b"", False, _NAMED in message
    for token in _TOKENS.finditer(message, 0, SCAN_LIMIT):
        text = token[0]
        if text in b"{[":
            depth += 1
        elif text in b"}]":
            depth -= 1
        elif text[:1] != b'"':
            constant = constant or text
        elif depth == 1 and text == b'"id"' and (found := _MEMBER.match(message, token.end())) is not None:
            identifier = identifier or found[1]
        elif depth == 1 and text == b'"method"':
            is_call = True
    if not identifier and (last := _LAST_MEMBER.search(message, max(len(message) - 200, 0))) is not None:
        identifier = last[1]
    is_answer = named and not is_call
    number = as_number(codec.decode(identifier)) if identifier and is_answer else None
    return _Scan(() if number is None else (number,), is_answer, constant.decode())
