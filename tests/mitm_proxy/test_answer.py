"""A provider's answer on its way to the agent."""

from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.llm.model import TokenUsage
from ironcurtain.mitm_proxy.answer import AnswerRelay
from ironcurtain.mitm_proxy.scrub import KeyForms, Scrubber
from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.usage import UsageReader
from ironcurtain.secrets.redaction import Secret

KEY = "sk-ant-api03-CANARY/real+key-0123456789abcdefghijklmnopqrstuv"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def answer(method: str = "POST", last: bool = False) -> AnswerRelay:
    """:returns: an answer that has not begun."""
    return AnswerRelay(method, Scrubber(KeyForms(Secret(KEY))), UsageReader(ANTHROPIC.count), last)


def chunk(data: bytes) -> bytes:
    """:returns: one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def of_length(body: bytes, *lines: bytes) -> bytes:
    """:returns: a response of known length."""
    return b"\r\n".join((b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *lines, b"", body))


class BodyTests(SynchronousTestCase):
    """How bodies are passed on."""

    @given(st.integers(1, 60))
    def test_any_slicing_gives_the_same(self, size: int) -> None:
        data, got, passing = of_length(b"some body", b"x-request: 1"), b"", answer()
        for start in range(0, len(data), size):
            got += passing.feed(data[start : start + size])
        self.assertEqual(got, b"HTTP/1.1 200 OK\r\nx-request: 1\r\ncontent-length: 9\r\n\r\nsome body")
        self.assertTrue(passing.done and passing.reusable)
        self.assertEqual((passing.status, passing.size), (200, 9))

    def test_an_event_is_passed_on_at_once(self) -> None:
        passing = answer()
        passing.feed(STREAM)
        event = b'event: ping\ndata: {"type": "ping"}\n\n'
        self.assertEqual(passing.feed(chunk(event)), chunk(event))
        self.assertEqual(passing.feed(b"0\r\n"), b"")
        self.assertEqual(passing.feed(b"x-trailer: 1\r\n\r\n"), b"0\r\n\r\n")
        self.assertTrue(passing.reusable)

    def test_a_body_until_the_end_of_the_connection(self) -> None:
        passing = answer()
        got = passing.feed(b"HTTP/1.1 200 OK\r\n\r\na.\n")
        self.assertEqual(got, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\na.\n\r\n")
        self.assertEqual(passing.ended(cleanly=True), b"0\r\n\r\n")
        self.assertTrue(passing.done)
        self.assertFalse(passing.reusable)

    def test_a_connection_that_is_cut(self) -> None:
        for data in (b"", b"HTTP/1.1 200 OK\r\n\r\nabc", of_length(b"abc")[:-1], STREAM + chunk(b"abc")):
            passing = answer()
            passing.feed(data)
            self.assertIsNone(passing.ended(cleanly=False), data)
        passing = answer()
        passing.feed(STREAM + chunk(b"abc"))
        self.assertIsNone(passing.ended(cleanly=True))

    def test_responses_without_a_body(self) -> None:
        for passing, data in (
            (answer("HEAD"), b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n"),
            (answer(), b"HTTP/1.1 204 No Content\r\n\r\n"),
        ):
            self.assertEqual(passing.feed(data), data)
            self.assertTrue(passing.reusable)

    def test_informational_responses_stay_here(self) -> None:
        passing = answer()
        self.assertEqual(passing.feed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n"), b"")
        self.assertEqual(passing.feed(b"\r\n" + of_length(b"")), b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    def test_more_than_the_answer(self) -> None:
        passing = answer()
        self.assertTrue(passing.feed(of_length(b"abc") + b"HTTP/1.1 200 OK\r\n").endswith(b"\r\n\r\nabc"))
        self.assertTrue(passing.done)
        self.assertFalse(passing.reusable)

    def test_what_cannot_be_passed_on(self) -> None:
        for data in (
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
            of_length(b"abc", b"content-encoding: gzip"),
            of_length(b"abc", b"content-encoding: identity, br"),
            b"SSH-2.0-OpenSSH\r\n\r\n",
            STREAM + b"zz\r\n",
        ):
            with self.assertRaises(ProtocolViolation):
                answer().feed(data)


class HeadTests(SynchronousTestCase):
    """Which headers an agent gets."""

    def test_what_is_between_two_neighbours_is_left_out(self) -> None:
        dropped = (
            b"connection: keep-alive, x-hop",
            b"keep-alive: timeout=5",
            b"x-hop: 1",
            b'alt-svc: h3=":443"',
            b"set-cookie: a=b",
            b"upgrade: h2c",
            b"trailer: x",
        )
        got = answer().feed(of_length(b"", b"x-kept: 1", *dropped))
        self.assertEqual(got, b"HTTP/1.1 200 OK\r\nx-kept: 1\r\ncontent-length: 0\r\n\r\n")

    def test_the_agent_is_told_that_its_connection_closes(self) -> None:
        self.assertIn(b"\r\nconnection: close\r\n", answer(last=True).feed(of_length(b"")))

    def test_a_redirection_is_not_followed(self) -> None:
        data = b"HTTP/1.1 302 Found\r\nlocation: https://evil.example/\r\ncontent-length: 0\r\n\r\n"
        self.assertEqual(answer().feed(data), data)


class KeyTests(SynchronousTestCase):
    """The real key, repeated by the provider."""

    FORMS = (
        KEY.encode(),
        base64.b64encode(KEY.encode()),
        base64.b64encode(b"x" + KEY.encode()),
        json.dumps(KEY).replace("/", "\\/").encode(),
    )

    @given(st.sampled_from(FORMS), st.integers(1, 80), st.binary(max_size=20))
    def test_it_does_not_come_through_in_a_body(self, form: bytes, size: int, before: bytes) -> None:
        body = before + form + b" after"
        for data in (of_length(body), b"HTTP/1.1 200 OK\r\n\r\n" + body):
            passing, got = answer(), b""
            for start in range(0, len(data), size):
                got += passing.feed(data[start : start + size])
            got += passing.ended(cleanly=True) or b""
            self.assertNotIn(form[8:40], got.replace(b"\r\n", b""))

    @given(st.sampled_from(FORMS), st.integers(1, 80))
    def test_it_does_not_come_through_in_chunks(self, form: bytes, size: int) -> None:
        pieces = [form[start : start + size] for start in range(0, len(form), size)]
        passing, payload = answer(), b""
        got = passing.feed(STREAM + b"".join(map(chunk, pieces)) + b"0\r\nx-key: " + form + b"\r\n\r\n")
        _, _, rest = got.partition(b"\r\n\r\n")
        while not rest.startswith(b"0\r\n"):
            length, _, rest = rest.partition(b"\r\n")
            payload, rest = payload + rest[: int(length, 16)], rest[int(length, 16) + 2 :]
        self.assertEqual(len(payload), len(form))
        self.assertNotIn(form[8:40], payload + got)

    def test_it_does_not_come_through_in_headers(self) -> None:
        for form in self.FORMS:
            got = answer().feed(of_length(b"", b"location: https://evil.example/?k=" + form, b"x-" + b"k: " + form))
            self.assertNotIn(form[8:40], got)


class UsageTests(SynchronousTestCase):
    """Tokens, as they pass."""

    def test_what_the_provider_tells(self) -> None:
        passing = answer()
        passing.feed(of_length(b'{"model": "claude-x", "usage": {"input_tokens": 7, "output_tokens": 3}}'))
        self.assertEqual(passing.usage(100), (TokenUsage(7, 3), False))
        self.assertEqual(passing.model, "claude-x")

    def test_a_stream_that_breaks_off_is_estimated(self) -> None:
        passing = answer()
        start = b'data: {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}\n\n'
        passing.feed(STREAM + chunk(start) + chunk(b"data: {}\n\n" * 500))
        usage, estimated = passing.usage(100)
        assert usage is not None
        self.assertTrue(estimated)
        self.assertEqual(usage.input_tokens, 7)
        self.assertGreater(usage.output_tokens, 100)

    def test_an_error_costs_nothing(self) -> None:
        passing = answer()
        passing.feed(b"HTTP/1.1 529 Overloaded\r\ncontent-type: text/event-stream\r\n\r\n" + b"x" * 5000)
        self.assertEqual(passing.usage(100), (None, False))
