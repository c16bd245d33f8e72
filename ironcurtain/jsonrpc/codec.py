"""
Parse and write single JSON-RPC messages.

The envelope is parsed strictly. ``params``, ``result`` and ``error`` stay raw JSON until they are needed, so that
unknown members are preserved and large results are not parsed.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import msgspec

from ironcurtain.errors import ProtocolViolation

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

ID_LIMIT: Final = 4096
"""Maximum length in characters of an id (ids are kept for each open request; Python limits integers to 4300 digits)."""

_WRONG_ID: Final = f"id must be an integer, or a string of at most {ID_LIMIT} characters"

Id = int | float | str
"""
A request's id; type and exact value are preserved (JSON-RPC 2.0 section 4). MCP forbids null and fractions, which only
:mod:`ironcurtain.jsonrpc.lenient` reads.
"""


class Request(msgspec.Struct, frozen=True):
    """A call that expects an answer."""

    id: Id
    method: str
    params: bytes | None
    """Raw JSON of an object or array; ``None`` if missing."""


class Notification(msgspec.Struct, frozen=True):
    """A call that expects no answer."""

    method: str
    params: bytes | None


class Response(msgspec.Struct, frozen=True):
    """An answer: exactly one of ``result`` and ``error`` is set."""

    id: Id | None
    result: bytes | None
    error: bytes | None


Message = Request | Notification | Response


class InvalidMessage(ProtocolViolation):
    """
    A line that is not a JSON-RPC message.

    :param code: the error code to answer with.
    :param id: the id to answer to, if one could be read.
    """

    def __init__(self, code: int, detail: str, id: Id | None = None) -> None:
        super().__init__("json-rpc", detail)
        self.code_number, self.id = code, id


class _Message(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    id: int | str | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Envelope(msgspec.Struct):
    jsonrpc: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    method: msgspec.Raw = msgspec.Raw()


_messages = msgspec.json.Decoder(_Message)
_envelopes = msgspec.json.Decoder(_Envelope)
_ids: msgspec.json.Decoder[int | str] = msgspec.json.Decoder(int | str)
_values = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


def parse(line: bytes) -> Message:
    """
    Parse one line.

    :param line: bytes without a line end.
    :raises InvalidMessage: it is not JSON, not an object, a batch, or not a JSON-RPC 2.0 message.
    """
    try:
        message = _messages.decode(line)
        if not line.isascii():
            line.decode()  # raw members are not parsed, but are forwarded: they must be UTF-8, too
    except (msgspec.ValidationError, RecursionError):
        raise _why_no_message(line) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise InvalidMessage(PARSE_ERROR, f"not JSON: {e}", _rescued_identifier(line)) from None
    identifier, method = message.id, message.method
    if method is msgspec.UNSET:
        return _answer(message, None if identifier is msgspec.UNSET else identifier)
    params = bytes(message.params)
    if identifier is None or (isinstance(identifier, str) and len(identifier) > ID_LIMIT):
        raise InvalidMessage(INVALID_REQUEST, _WRONG_ID)
    if params and params[:1] not in b"{[":
        known = None if identifier is msgspec.UNSET else identifier
        raise InvalidMessage(INVALID_REQUEST, "params must be an object", known)
    if identifier is msgspec.UNSET:
        return Notification(method, params or None)
    return Request(identifier, method, params or None)


def _answer(message: _Message, identifier: Id | None) -> Response:
    result, error = bytes(message.result), bytes(message.error)
    if bool(result) == bool(error):
        raise InvalidMessage(INVALID_REQUEST, "neither a call nor an answer", identifier)
    if error and not error.startswith(b"{"):
        raise InvalidMessage(INVALID_REQUEST, "error must be an object", identifier)
    return Response(identifier, result or None, error or None)


def _why_no_message(line: bytes) -> InvalidMessage:
    try:
        envelope = _envelopes.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        batch = line.lstrip()[:1] == b"["
        detail = "batches are not supported" if batch else "not an object, or nested too deeply"
        return InvalidMessage(INVALID_REQUEST, detail)
    try:
        identifier = _ids.decode(bytes(envelope.id)) if bytes(envelope.id) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return InvalidMessage(INVALID_REQUEST, _WRONG_ID)
    if bytes(envelope.jsonrpc) != b'"2.0"':
        return InvalidMessage(INVALID_REQUEST, 'jsonrpc must be "2.0"', identifier)
    return InvalidMessage(INVALID_REQUEST, "method must be a string", identifier)


def _rescued_identifier(line: bytes) -> Id | None:
    # A lone surrogate, which JavaScript produces when it cuts a text, is valid JSON (RFC 8259 section 8.2), but not
    # text. The line is refused, with its id, so that the caller gets an answer.
    try:
        message = json.loads(line)
        identifier = message["id"]
        if type(identifier) not in (int, str):
            return None
        known: Id = _ids.decode(encode(identifier))
        return known
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def decode(raw: bytes) -> Any:
    """
    Parse raw JSON into Python values.

    :raises InvalidMessage: not JSON, or nested too deeply.
    """
    try:
        return _values.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise InvalidMessage(INVALID_PARAMS, f"bad value: {e}") from None


def as_id(value: Any) -> Id | None:
    """:returns: a parsed value if it is a valid id or progress token, else ``None``."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def encode(value: Any) -> bytes:
    """Write Python values as JSON, without spaces."""
    return _encoder.encode(value)


def request(id: Id, method: str, params: Any = None) -> bytes:
    """
    :returns: one request as a line, with its end.

    :param params: values, or raw JSON.
    """
    if params is None:
        return _encoder.encode({"jsonrpc": "2.0", "id": id, "method": method}) + b"\n"
    return _encoder.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": _raw(params)}) + b"\n"


def notification(method: str, params: Any = None) -> bytes:
    """
    :returns: one notification as a line, with its end.

    :param params: values, or raw JSON.
    """
    if params is None:
        return _encoder.encode({"jsonrpc": "2.0", "method": method}) + b"\n"
    return _encoder.encode({"jsonrpc": "2.0", "method": method, "params": _raw(params)}) + b"\n"


def result(id: Id, value: bytes) -> bytes:
    """:returns: one answer as a line, with its end; ``value`` is inserted unchanged."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (_encoder.encode(id), value)


def error(id: Id | None, code: int, message: str, data: Any = None) -> bytes:
    """:returns: one error answer as a line, with its end."""
    body: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return raw_error(id, encode(body))


def raw_error(id: Id | None, value: bytes) -> bytes:
    """:returns: one error answer with an error object that is already JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (_encoder.encode(id), value)


def _raw(value: Any) -> Any:
    return msgspec.Raw(value) if isinstance(value, bytes) else value
