"""
Read the name of the host from the first message of a TLS client (RFC 8446, section 4.1.2; RFC 6066, section 3).

Nothing is decrypted. What is not needed is skipped by its length; everything must end where its length says.
"""

from __future__ import annotations

from ironcurtain.errors import ProtocolViolation

HELLO_LIMIT = 64 * 1024
"""Maximum size in bytes of the message (clients send up to two thousand)."""

RECORD_LIMIT = 16 * 1024
"""Maximum size in bytes of the content of one record (RFC 8446, section 5.1)."""

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0


class ClientHelloReader:
    """Collects bytes until the message is complete."""

    def __init__(self) -> None:
        self._records, self._message = b"", b""

    def feed(self, data: bytes) -> str | None:
        """
        :param data: in any slicing.
        :returns: the host in lower case, empty if the client names none; ``None`` while the message is incomplete.
        :raises ProtocolViolation: this is not the beginning of TLS, or ambiguous.
        """
        self._records += data
        while (record := self._record()) is not None:
            self._message += record
            if len(self._message) > HELLO_LIMIT:
                raise _violation("longer than any client's")
            if len(self._message) >= 4:
                end = 4 + int.from_bytes(self._message[1:4])
                if self._message[0] != _CLIENT_HELLO or end > HELLO_LIMIT:
                    raise _violation("not the first of a client")
                if len(self._message) >= end:
                    return _host(self._message[4:end])
        return None

    def _record(self) -> bytes | None:
        head = self._records[:5]
        if head and (head[0] != _HANDSHAKE or (len(head) > 1 and head[1] != 3)):
            raise _violation("not TLS")
        if len(head) < 5:
            return None
        end = 5 + int.from_bytes(head[3:5])
        if not 5 < end <= 5 + RECORD_LIMIT:
            raise _violation("in a record of a wrong size")
        if len(self._records) < end:
            return None
        content, self._records = self._records[5:end], self._records[end:]
        return content


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        taken, self.data = self.data[:size], self.data[size:]
        if len(taken) < size:
            raise _violation("shorter than its parts")
        return taken

    def vector(self, length_size: int) -> bytes:
        return self.take(int.from_bytes(self.take(length_size)))


def _host(message: bytes) -> str:
    rest = _Bytes(message)
    rest.take(2 + 32)  # version and random
    for length_size in (1, 2, 1):  # session id, cipher suites, compression methods
        rest.vector(length_size)
    if not rest.data:
        return ""
    extensions = _Bytes(rest.vector(2))
    if rest.data:
        raise _violation("longer than its parts")
    names: list[bytes] = []
    while extensions.data:
        kind, content = int.from_bytes(extensions.take(2)), extensions.vector(2)
        if kind == _SERVER_NAME:
            names.append(_name(content))
    if len(names) > 1:
        raise _violation("naming several hosts")
    return names[0].decode("latin-1").lower() if names else ""


def _name(content: bytes) -> bytes:
    outer = _Bytes(content)
    entries = _Bytes(outer.vector(2))
    if entries.take(1)[0] != _HOST_NAME:
        raise _violation("naming a host in an unknown way")
    name = entries.vector(2)
    if entries.data or outer.data or not name:
        raise _violation("naming several hosts, or none")
    return name


def _violation(what: str) -> ProtocolViolation:
    return ProtocolViolation("tls", f"a first message that is {what}")
