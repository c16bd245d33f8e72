"""The first message of TLS clients."""

from __future__ import annotations

import contextlib
import ssl

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.client_hello import HELLO_LIMIT, ClientHelloReader


def hello(name: str | None) -> bytes:
    """:returns: what Python sends first."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


REAL = hello("host.example")


def records(message: bytes, size: int) -> bytes:
    """:returns: a handshake message in records of a size."""
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece for piece in pieces)


def made(*extensions: tuple[int, bytes]) -> bytes:
    """:returns: a message with these extensions."""
    parts = b"".join(kind.to_bytes(2) + len(data).to_bytes(2) + data for kind, data in extensions)
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0" + len(parts).to_bytes(2) + parts
    return records(b"\1" + len(body).to_bytes(3) + body, 16000)


def names(*hosts: bytes, kind: bytes = b"\0") -> bytes:
    """:returns: the content of an extension that names hosts."""
    entries = b"".join(kind + len(host).to_bytes(2) + host for host in hosts)
    return len(entries).to_bytes(2) + entries


class ReadTests(SynchronousTestCase):
    def test_host_is_read(self) -> None:
        self.assertEqual(ClientHelloReader().feed(REAL), "host.example")
        self.assertEqual(ClientHelloReader().feed(hello(None)), "")
        self.assertEqual(ClientHelloReader().feed(made((5, b"x"), (0, names(b"A.Example")))), "a.example")

    @given(st.integers(1, 600), st.integers(1, 600))
    def test_any_slicing_into_records_and_pieces_gives_the_same(self, size: int, piece: int) -> None:
        data, reader, found = records(REAL[5:], size), ClientHelloReader(), None
        for at in range(0, len(data), piece):
            self.assertIsNone(found)
            found = reader.feed(data[at : at + piece])
        self.assertEqual(found, "host.example")

    def test_ambiguous_names_are_refused(self) -> None:
        for extensions in (
            ((0, names(b"a")), (0, names(b"b"))),
            ((0, names(b"a", b"b")),),
            ((0, names(b"")),),
            ((0, names()),),
            ((0, names(b"a", kind=b"\1")),),
            ((0, names(b"a") + b"x"),),
            ((0, b"\0\x09\0\0\1a"),),
        ):
            with self.assertRaises(ProtocolViolation):
                ClientHelloReader().feed(made(*extensions))

    def test_other_beginnings_are_refused_at_once(self) -> None:
        for data in (
            b"GET / HTTP/1.1\r\n",
            b"SSH-2.0",
            b"\x16\x02",
            b"\x17\x03\x03",
            b"\x16\x03\x01\x00\x00",
            b"\x80\x2e\1",
        ):
            with self.assertRaises(ProtocolViolation):
                ClientHelloReader().feed(data)

    def test_size_is_bounded(self) -> None:
        for message in (b"\1" + (HELLO_LIMIT + 1).to_bytes(3) + bytes(10), b"\2\0\0\1x"):
            with self.assertRaises(ProtocolViolation):
                ClientHelloReader().feed(records(message, 5))

    @given(st.binary(max_size=300), st.integers(0, len(REAL) - 1))
    def test_anything_is_read_or_refused(self, junk: bytes, at: int) -> None:
        for data in (junk, REAL[:at] + junk, REAL[:at] + junk + REAL[at + len(junk) :]):
            with contextlib.suppress(ProtocolViolation):
                ClientHelloReader().feed(data)
