"""Read the CONNECT request with which a client asks for a tunnel (RFC 9110, section 9.3.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.fields import read_fields

CONNECT_LIMIT = 8192
"""Most bytes of a CONNECT request (clients send a few hundred)."""

_REQUEST = re.compile(rb"([!-~]{1,32}) ([!-~]+) HTTP/1\.[01]")
_AUTHORITY = re.compile(r"([A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9]+)?\]):([1-9][0-9]{0,4})")


class OtherMethod(ProtocolViolation):
    """A well-formed request that is no CONNECT: one for a plain-HTTP proxy, say. Answer it with 403."""


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """
    Where a client wants to go.

    :param host: in lower case; an IPv6 address stands in its brackets.
    :param named: the value of its Host header in lower case, empty if it has none.
    :param rest: bytes that came after the head: the beginning of TLS.
    """

    host: str
    port: int
    named: str
    rest: bytes

    @property
    def consistent(self) -> bool:
        """Whether the Host header names the same host."""
        return self.named in ("", self.host, f"{self.host}:{self.port}")


@dataclass(slots=True)
class ConnectReader:
    """Collect bytes until one CONNECT head is whole."""

    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> ConnectRequest | None:
        """
        Take bytes as they come, in any slicing.

        :returns: the request once its head is whole, ``None`` before.
        :raises OtherMethod: a request for something else than a tunnel.
        :raises ProtocolViolation: anything that is no such request, or is too long.
        """
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end > CONNECT_LIMIT or (end < 0 and len(self._buffer) > CONNECT_LIMIT):
            raise ProtocolViolation("connect", f"a head of more than {CONNECT_LIMIT} bytes")
        return _parse(bytes(self._buffer[:end]), bytes(self._buffer[end + 4 :])) if end >= 0 else None


def _parse(head: bytes, rest: bytes) -> ConnectRequest:
    line, _, lines = head.partition(b"\r\n")
    if (request := _REQUEST.fullmatch(line)) is None:
        raise ProtocolViolation("connect", "the first line is no HTTP request")
    headers = read_fields(lines)
    if request[1] != b"CONNECT":
        raise OtherMethod("connect", "only CONNECT is served")
    authority = _AUTHORITY.fullmatch(request[2].decode("ascii"))
    if authority is None or int(authority[2]) > 65535:
        raise ProtocolViolation("connect", "the target is no host and port")
    names = [value for name, value in headers if name == "host"]
    if len(names) > 1 or any(name in ("content-length", "transfer-encoding") for name, _ in headers):
        raise ProtocolViolation("connect", "more than one Host, or a body")
    return ConnectRequest(authority[1].lower(), int(authority[2]), names[0].lower() if names else "", rest)
