"""Heads that are known again: whatever was remembered, reading and judging afresh gives the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.mitm_proxy.familiar import HEADS_KEPT, KEPT_LIMIT, FamiliarHeads
from ironcurtain.mitm_proxy.head import Request, read_request
from ironcurtain.mitm_proxy.judgement import Credentials, Forward, judge
from ironcurtain.mitm_proxy.providers import provider_rules
from ironcurtain.secrets.redaction import Secret

(RULE,) = provider_rules({}, ["anthropic"])
CREDENTIALS = Credentials(RULE, Secret("sk-ant-api03-fake"), Secret("sk-ant-api03-real"))
LINES = (
    b"Host: api.anthropic.com",
    b"x-api-key: sk-ant-api03-fake",
    b"content-type: application/json",
    b"content-length: 5",
    b"Content-Length: 17",
    b"content-length: 0",
    b"content-length: 005",
    b"content-length:5",
    b"CONTENT-LENGTH: 5",
    b"content-length: 5, 5",
    b"content-length: +5",
    b"x-length: content-length: 5",
    b"transfer-encoding: chunked",
    b"expect: 100-continue",
    b"connection: content-type",
    b"connection: close",
    b"authorization: Bearer other",
)
HEADS = st.tuples(
    st.sampled_from((b"POST /v1/messages HTTP/1.1", b"GET /v1/models HTTP/1.1")),
    st.permutations(LINES[:3]),
    st.lists(st.sampled_from(LINES[3:]), max_size=3),
).map(lambda parts: b"\r\n".join((parts[0], *parts[1], *parts[2])))


def afresh(head: bytes) -> tuple[Request, Forward] | None:
    """:returns: what a head that may pass says, and what is to be done with it."""
    try:
        request = read_request(head)
    except ProtocolViolation:
        return None
    judged = judge(request.head, CREDENTIALS)
    return (request, judged) if isinstance(judged, Forward) else None


def head(*more: bytes) -> bytes:
    """:returns: a head that may pass."""
    return b"\r\n".join((b"POST /v1/messages HTTP/1.1", *LINES[:3], *more))


class FamiliarTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.familiar = FamiliarHeads()

    def learn(self, one: bytes) -> None:
        """Read, judge and remember a head that may pass."""
        found = afresh(one)
        assert found is not None, one
        self.familiar.remember(one, *found)

    def length(self, one: bytes) -> int | None:
        """:returns: the length that is told for a known head."""
        found = self.familiar.find(one)
        assert found is not None, one
        return found[0].length

    def assert_same(self, found: tuple[Request, Forward], expected: tuple[Request, Forward]) -> None:
        """They are the same, but for the length among the headers, which nobody reads there."""
        ours, theirs = found[0].head, expected[0].head
        self.assertEqual((ours.method, ours.target), (theirs.method, theirs.target))
        self.assertEqual((found[0]._replace(head=theirs), found[1]), expected)

    @given(st.lists(HEADS, min_size=1, max_size=12))
    def test_what_is_found_is_what_would_be_read(self, heads: list[bytes]) -> None:
        familiar = FamiliarHeads()
        for one in heads:
            expected, found = afresh(one), familiar.find(one)
            if expected is not None:
                familiar.remember(one, *expected)
            if found is not None:
                assert expected is not None, one
                self.assert_same(found, expected)

    def test_another_length_is_the_same_head(self) -> None:
        self.learn(head(b"content-length: 5"))
        self.assertEqual(self.length(head(b"content-length: 5")), 5)
        self.assertEqual(self.length(head(b"Content-Length: 1700")), 1700)
        self.assertEqual(self.length(head(b"content-length: 0")), 0)

    def test_no_length_is_another_head(self) -> None:
        self.learn(head(b"content-length: 5"))
        self.assertIsNone(self.familiar.find(head()))
        self.learn(head())
        self.assertEqual(self.length(head()), 0)
        self.assertEqual(self.length(head(b"content-length: 7")), 7)

    def test_a_second_length_is_another_head(self) -> None:
        self.learn(head(b"content-length: 5"))
        self.learn(head(b"CONTENT-LENGTH: 5"))
        for more in ((b"content-length: 5", b"content-length: 5"), (b"CONTENT-LENGTH: 5", b"content-length: 5")):
            self.assertIsNone(self.familiar.find(head(*more)))
            self.assertIsNone(self.familiar.find(head(*more, b"transfer-encoding: chunked")))

    def test_another_byte_is_another_head(self) -> None:
        whole = head(b"content-length: 5")
        self.learn(whole)
        for at in range(len(whole)):
            changed = bytearray(whole)
            changed[at] ^= 1
            found = self.familiar.find(bytes(changed))
            if found is not None:  # a digit of the length, or a capital
                expected = afresh(bytes(changed))
                assert expected is not None, changed
                self.assert_same(found, expected)

    def test_who_waits_for_leave_is_read_each_time(self) -> None:
        for length in (b"5", b"0"):
            self.learn(head(b"expect: 100-continue", b"content-length: " + length))
        self.assertIsNone(self.familiar.find(head(b"expect: 100-continue", b"content-length: 5")))

    def test_little_is_remembered(self) -> None:
        self.learn(head(b"x: " + b"y" * KEPT_LIMIT, b"content-length: 5"))
        self.assertIsNone(self.familiar.find(head(b"x: " + b"y" * KEPT_LIMIT, b"content-length: 5")))
        for number in range(HEADS_KEPT * 3):
            self.learn(head(b"x: %d" % number, b"content-length: 5"))
            self.assertLessEqual(len(self.familiar._known), HEADS_KEPT)
        self.assertEqual(self.length(head(b"x: %d" % number, b"content-length: 9")), 9)
