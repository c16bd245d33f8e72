"""Requests for tunnels through a proxy, and what comes of them."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.testing import AccumulatingProtocol, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from ironcurtain.http.proxies import SETTING, read_proxy
from ironcurtain.http.tunnels import HEAD_LIMIT, Tunnel, connect_request, read_reply
from ironcurtain.http.upstream_proxies import ProxyFailed
from ironcurtain.secrets.redaction import Secret
from tests.http.proxy_stub import OPENED

PROXY = read_proxy("http://me@proxy.example:3128", "environment variable HTTPS_PROXY")
CONFIGURED = read_proxy("http://me@proxy.example:3128", SETTING)
TARGET = "api.example:443"


def refusal(head: bytes, authenticated: bool = False, proxy: Any = PROXY) -> ProxyFailed:
    """:returns: what a response means."""
    failed = read_reply(head, proxy, TARGET, authenticated)
    assert failed is not None
    return failed


class RequestTests(SynchronousTestCase):
    def test_request_names_host_and_port_twice(self) -> None:
        sent = connect_request("api.example", 443, None)
        self.assertEqual(sent, b"CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n\r\n")
        self.assertIn(b"CONNECT [2001:db8::1]:443 HTTP/1.1\r\n", connect_request("2001:db8::1", 443, None))

    def test_credentials_are_sent(self) -> None:
        sent = connect_request("api.example", 443, Secret("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="))
        self.assertIn(b"\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n", sent)


class ReplyTests(SynchronousTestCase):
    """What is said of a response."""

    def test_any_status_of_success_is_a_tunnel(self) -> None:
        for head in (b"HTTP/1.1 200 OK", b"HTTP/1.0 200 Connection established", b"HTTP/1.1 299 x\r\nbad line"):
            self.assertIsNone(read_reply(head, PROXY, TARGET, False))

    def test_refused_credentials_name_where_they_are_set(self) -> None:
        head = b'HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm="x"'
        said = str(refusal(head))
        self.assertIn("the proxy http://proxy.example:3128 (environment variable HTTPS_PROXY) wants a user", said)
        self.assertIn("set the user and the password in the environment variable HTTPS_PROXY", said)
        self.assertIn("refuses the user or the password (HTTP 407): correct", str(refusal(head, authenticated=True)))
        self.assertIn("network.proxy_password in config.toml", str(refusal(head, proxy=CONFIGURED)))

    def test_authentication_that_is_not_supported_is_named(self) -> None:
        head = b"HTTP/1.1 407 x\r\nProxy-Authenticate: Digest realm=x\r\nProxy-Authenticate: NTLM"
        self.assertIn("wants Digest or NTLM authentication, and only Basic and Negotiate are", str(refusal(head)))
        self.assertNotIn("only Basic", str(refusal(head + b"\r\nproxy-authenticate: basic")))

    def test_proxy_for_kerberos_names_the_setting(self) -> None:
        head = b"HTTP/1.1 407 x\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM"
        self.assertIn('with proxy_auth = "negotiate"', str(refusal(head)))
        negotiating = replace(CONFIGURED, negotiates=True)
        self.assertIn("refuses the Kerberos ticket (HTTP 407): klist", str(refusal(head, True, negotiating)))
        basic = b"HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm=x"
        self.assertIn("wants Basic authentication, and proxy_auth is negot", str(refusal(basic, True, negotiating)))

    def test_refusals_are_lasting_and_faults_are_not(self) -> None:
        for head, lasting in ((b"HTTP/1.1 403 no", True), (b"HTTP/1.1 502 x", False), (b"HTTP/1.1 302 x", True)):
            failed = refusal(head)
            self.assertEqual(failed.lasting, lasting)
            self.assertIn(f"refuses the connection to {TARGET} (HTTP {head[9:12].decode()})", str(failed))

    def test_other_protocols_are_no_proxy(self) -> None:
        for head in (b"SSH-2.0-OpenSSH_9.2", b"", b"HTTP/2 200", b"\x15\x03\x01\x00\x02\x02"):
            self.assertIn("does not answer as an HTTP proxy does", str(refusal(head)))

    @given(st.binary(max_size=100))
    def test_any_response_is_understood_or_refused(self, after: bytes) -> None:
        for begin in (b"", b"HTTP/1.1 ", b"HTTP/1.1 407 x\r\n", b"HTTP/1.1 407 x\r\nproxy-authenticate: "):
            said = str(read_reply(begin + after, PROXY, TARGET, False))
            self.assertTrue(said.isprintable(), said)


@implementer(IHalfCloseableProtocol)
class HalfOpen(AccumulatingProtocol):
    """Notices that the other side has ended its output."""

    ended = False

    def readConnectionLost(self) -> None:
        self.ended = True

    def writeConnectionLost(self) -> None:
        pass


class Connection(StringTransport):
    """Remembers that it was aborted."""

    aborted = False

    def abortConnection(self) -> None:
        self.aborted = True


class TunnelTests(SynchronousTestCase):
    """:class:`Tunnel` without TLS."""

    def setUp(self) -> None:
        self.made = self.begin()

    def begin(self, inner: Any = None) -> tuple[Tunnel, Any, Connection]:
        """:returns: a new tunnel, what is to use it, and its transport."""
        inner, transport = inner or cast(Any, AccumulatingProtocol()), Connection()
        inner.closedReason = None
        tunnel = Tunnel(b"request", lambda head: read_reply(head, PROXY, TARGET, False), inner, encrypted=False)
        tunnel.makeConnection(transport)
        return tunnel, inner, transport

    @given(st.binary(max_size=80), st.lists(st.integers(1, 30), min_size=1))
    def test_what_follows_the_head_is_the_others_in_any_slicing(self, rest: bytes, sizes: list[int]) -> None:
        tunnel, inner, transport = self.begin()
        self.assertEqual(transport.value(), b"request")
        stream, at = OPENED + rest, 0
        while at < len(stream):
            size = sizes[at % len(sizes)]
            self.assertEqual(inner.made, int(at >= len(OPENED)))
            tunnel.dataReceived(stream[at : at + size])
            at += size
        self.assertEqual((inner.data, inner.made), (rest, 1))
        self.assertIs(inner.transport, transport)
        self.successResultOf(tunnel.established)

    def test_refused_tunnel_is_aborted_and_never_used(self) -> None:
        tunnel, inner, transport = self.made
        tunnel.dataReceived(b"HTTP/1.1 403 no\r\n\r\nbody")
        self.failureResultOf(tunnel.established, ProxyFailed)
        tunnel.dataReceived(OPENED)
        tunnel.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((inner.made, transport.aborted), (0, True))

    def test_endless_head_is_refused(self) -> None:
        tunnel, _, transport = self.made
        for _ in range(HEAD_LIMIT // 1024 + 1):
            self.assertFalse(transport.aborted)
            tunnel.dataReceived(b"x" * 1024)
        self.failureResultOf(tunnel.established, ProxyFailed)
        self.assertTrue(transport.aborted)

    def test_loss_fails_what_waits_for_the_tunnel_and_then_ends_what_uses_it(self) -> None:
        tunnel, inner, _ = self.made
        tunnel.connectionLost(Failure(ConnectionLost()))
        self.failureResultOf(tunnel.established, ConnectionLost)
        tunnel, inner, _ = self.begin()
        tunnel.dataReceived(OPENED)
        self.assertFalse(inner.closed)
        tunnel.connectionLost(Failure(ConnectionLost()))
        self.assertTrue(inner.closedReason.check(ConnectionLost))

    def test_end_of_input_is_passed_on_to_those_who_can_tell(self) -> None:
        tunnel, inner, transport = self.begin(HalfOpen())
        tunnel.dataReceived(OPENED)
        tunnel.readConnectionLost()
        self.assertEqual((inner.ended, transport.disconnecting), (True, False))
        tunnel, inner, transport = self.begin()
        tunnel.dataReceived(OPENED)
        tunnel.readConnectionLost()
        self.assertTrue(transport.disconnecting)

    def test_cancelling_aborts(self) -> None:
        tunnel, _, transport = self.made
        tunnel.established.cancel()
        self.failureResultOf(tunnel.established)
        self.assertTrue(transport.aborted)
