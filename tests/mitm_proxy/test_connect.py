"""The CONNECT request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.head import HeadReader
from ironcurtain.mitm_proxy.connection import CONNECT_LIMIT, ConnectRequest, OtherMethod, read_connect
from tests.mitm_proxy.refusing import refuses

HEAD = b"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\nProxy-Connection: close\r\n\r\n"


def read(data: bytes) -> ConnectRequest:
    """:returns: the request in these bytes."""
    found = HeadReader(CONNECT_LIMIT).feed(data)
    assert found is not None
    return read_connect(found[0])


def connect(authority: bytes, *headers: bytes) -> ConnectRequest:
    """:returns: the request for this authority."""
    return read(b"\r\n".join([b"CONNECT %b HTTP/1.1" % authority, *headers, b"", b""]))


class ReadTests(SynchronousTestCase):
    """What is read."""

    @given(st.integers(1, 120), st.binary(max_size=40))
    def test_any_slicing_gives_the_same_request(self, size: int, rest: bytes) -> None:
        stream = HEAD + rest
        slices = [stream[start : start + size] for start in range(0, len(stream), size)]
        reader, found = HeadReader(CONNECT_LIMIT), None
        while found is None:
            found = reader.feed(slices.pop(0))
        got = read_connect(found[0])
        self.assertEqual((got.host, got.port, got.consistent), ("api.example.com", 443, True))
        self.assertEqual(found[1] + b"".join(slices), rest)

    def test_a_name_is_compared_without_case(self) -> None:
        got = connect(b"API.Example.com:443", b"host: api.EXAMPLE.com")
        self.assertEqual((got.host, got.consistent), ("api.example.com", True))

    def test_no_host_header_is_needed(self) -> None:
        got = read(b"CONNECT a.example:8443 HTTP/1.0\r\n\r\n")
        self.assertEqual((got.host, got.port, got.consistent), ("a.example", 8443, True))

    def test_another_host_header_is_seen(self) -> None:
        for other in (b"evil.example:443", b"a.example:80", b"a.example.", b" "):
            got = connect(b"a.example:443", b"Host: " + other + b"x")
            self.assertFalse(got.consistent, other)

    @given(st.binary(max_size=200))
    def test_anything_else_is_refused_or_waited_for(self, data: bytes) -> None:
        try:
            read(data + b"\r\n\r\n")
        except ProtocolViolation:
            return
        self.assertTrue(data.startswith(b"CONNECT "))


class RefuseTests(SynchronousTestCase):
    """What is not a CONNECT request to be understood in one way."""

    def test_bytes_that_no_host_has(self) -> None:
        forbidden = [bytes((code,)) for code in (*range(0x21), 0x7F, 0x80, 0xFF)]
        chars = (*forbidden, b"@", b"\\", b"#", b"?", b"/", b"\r\n", b"%00", b",", b"_ ")
        templates = (b"evil.test%b.allowed.com:443", b"%ballowed.com:443", b"allowed.com%b:443")
        authorities = [template % char for template in templates for char in chars]
        self.assertEqual([authority for authority in authorities if not refuses(connect, authority)], [])

    def test_ports(self) -> None:
        ports = (b"", b"0", b"65536", b"+443", b"443 ", b" 443", b"0443", b"4_43", b"443a", b"\xd9\xa4", b"-1")
        self.assertEqual([port for port in ports if not refuses(connect, b"allowed.com:" + port)], [])
        self.assertTrue(refuses(connect, b"allowed.com"))

    def test_addresses_are_read_but_are_no_names(self) -> None:
        for address in (b"127.0.0.1", b"[::1]", b"2130706433", b"0x7f.1", b"[::ffff:127.0.0.1]", b"[fe80::1%eth0]"):
            got = connect(address + b":443")
            self.assertEqual(got.host, address.decode().lower())

    def test_other_methods(self) -> None:
        for line in (b"GET http://api.example.com/ HTTP/1.1", b"POST /v1/messages HTTP/1.1", b"connect a:1 HTTP/1.1"):
            with self.assertRaises(OtherMethod):
                read(line + b"\r\nHost: api.example.com\r\n\r\n")

    def test_heads_that_two_programs_read_differently(self) -> None:
        line = b"CONNECT a.example:443 HTTP/1.1"
        heads = (
            (line, b"Host: a.example", b"Host: a.example"),
            (line, b"Content-Length: 5"),
            (line, b"Transfer-Encoding: chunked"),
            (line, b"Host : a.example"),
            (line, b" folded"),
            (line, b"x: a\nHost: b"),
            (line + b" ",),
            (b" " + line,),
            (line.replace(b" ", b"\t"),),
            (b"CONNECT a.example:443 HTTP/2.0",),
            (b"CONNECT a.example:443",),
        )
        self.assertEqual([lines for lines in heads if not refuses(read, b"\r\n".join((*lines, b"", b"")))], [])

    def test_a_long_head(self) -> None:
        for data in (b"CONNECT " + b"a" * CONNECT_LIMIT, HEAD[:-2] + b"x: " + b"a" * CONNECT_LIMIT + b"\r\n\r\n"):
            with self.assertRaises(ProtocolViolation):
                read(data)
