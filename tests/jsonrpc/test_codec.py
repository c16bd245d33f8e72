"""Single messages, parsed and written."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.codec import InvalidMessage, Notification, Request, Response

IDS = st.one_of(st.integers(), st.text(max_size=500).filter(lambda s: s.isprintable() or s == ""))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


class ParseTests(SynchronousTestCase):
    """What is a message, and what is not."""

    def refused(self, line: bytes) -> tuple[int, codec.Id | None]:
        """:returns: the error code and id that a line is refused with."""
        with self.assertRaises(InvalidMessage) as caught:
            codec.parse(line)
        return caught.exception.code_number, caught.exception.id

    @given(IDS, JSON)
    def test_requests_keep_id_and_parameters(self, identifier: codec.Id, value: Any) -> None:
        line = codec.request(identifier, "some/method", codec.encode({"value": value})).removesuffix(b"\n")
        self.assertNotIn(b"\n", line)
        message = codec.parse(line)
        assert isinstance(message, Request)
        self.assertEqual((message.id, type(message.id)), (identifier, type(identifier)))
        self.assertEqual(codec.decode(message.params or b""), {"value": value})

    @given(IDS, JSON)
    def test_answers_are_spliced_as_they_are(self, identifier: codec.Id, value: Any) -> None:
        raw = json.dumps({"value": value}, indent=1).replace("\n", " ").encode()
        message = codec.parse(codec.result(identifier, raw).removesuffix(b"\n"))
        self.assertEqual(message, Response(identifier, raw, None))
        error = codec.parse(codec.raw_error(identifier, raw).removesuffix(b"\n"))
        self.assertEqual(error, Response(identifier, None, raw))

    @given(st.binary(max_size=60))
    def test_no_bytes_break_it(self, line: bytes) -> None:
        try:
            codec.parse(line)
        except InvalidMessage as e:
            self.assertIn(e.code_number, (codec.PARSE_ERROR, codec.INVALID_REQUEST))

    def test_ids_that_are_kept(self) -> None:
        for text in ("0", "-1", str(2**63 - 1), str(2**64), str(10**300), '""', '"7"', '"' + "x" * 500 + '"'):
            message = codec.parse(f'{{"jsonrpc":"2.0","id":{text},"method":"m"}}'.encode())
            assert isinstance(message, Request)
            self.assertEqual(json.dumps(message.id), text)

    def test_ids_that_are_refused(self) -> None:
        for text in ("null", "1.0", "1.5", "1e3", "true", "{}", "[]", "9" * 5000, '"' + "x" * 5000 + '"'):
            refused = self.refused(f'{{"jsonrpc":"2.0","id":{text},"method":"m"}}'.encode())
            self.assertEqual(refused, (codec.INVALID_REQUEST, None), text[:20])

    def test_what_is_not_json(self) -> None:
        for line in (b"{", b"nonsense", b'{"a":NaN}', b'{"jsonrpc":"2.0"} x', b"   ", b'{"a":"\x01"}', b"\xff"):
            self.assertEqual(self.refused(line), (codec.PARSE_ERROR, None), line)

    def test_what_is_no_message(self) -> None:
        for line in (
            b"1", b'"x"', b"null", b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', b"{}", b'{"jsonrpc":"2.0"}',
            b'{"jsonrpc":"1.0","method":"m"}', b'{"jsonrpc":2.0,"method":"m"}', b'{"jsonrpc":"2.0","method":7}',
            b'{"jsonrpc":"2.0","method":"m","params":7}', b'{"jsonrpc":"2.0","result":1,"error":{}}',
            b'{"jsonrpc":"2.0","error":7}',
        ):  # fmt: skip
            self.assertEqual(self.refused(line)[0], codec.INVALID_REQUEST, line)

    def test_the_id_is_known_where_it_could_be_read(self) -> None:
        self.assertEqual(self.refused(b'{"jsonrpc":"1.0","id":"a","method":"m"}'), (codec.INVALID_REQUEST, "a"))
        self.assertEqual(self.refused(b'{"jsonrpc":"2.0","id":3,"method":"m","params":1}'), (codec.INVALID_REQUEST, 3))
        self.assertEqual(self.refused(b'{"jsonrpc":"2.0","id":0,"method":"m","params":1}'), (codec.INVALID_REQUEST, 0))

    def test_half_a_character_is_refused_with_the_id(self) -> None:
        line = b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"text":"\\ud83d"}}'
        self.assertEqual(self.refused(line), (codec.PARSE_ERROR, 7))
        self.assertEqual(self.refused(line.replace(b"7", b'"\\ud83d"')), (codec.PARSE_ERROR, None))

    def test_raw_members_are_utf8_too(self) -> None:
        self.assertEqual(self.refused(b'{"jsonrpc":"2.0","id":7,"result":{"a":"\xff"}}')[0], codec.PARSE_ERROR)

    def test_nesting_without_end_is_refused(self) -> None:
        deep = b"[" * 100_000 + b"]" * 100_000
        code, _ = self.refused(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % deep)
        self.assertEqual(code, codec.INVALID_REQUEST)
        with self.assertRaises(InvalidMessage):
            codec.decode(deep)

    def test_the_last_of_two_members_counts(self) -> None:
        line = b'{"jsonrpc":"2.0","id":1,"method":"a","method":"b","id":2}'
        self.assertEqual(codec.parse(line), Request(2, "b", None))

    def test_notifications_and_errors_without_id(self) -> None:
        self.assertEqual(codec.parse(b'{"jsonrpc":"2.0","method":"m"}'), Notification("m", None))
        self.assertEqual(codec.parse(b'{"jsonrpc":"2.0","id":null,"error":{}}'), Response(None, None, b"{}"))


class WriteTests(SynchronousTestCase):
    """Lines as others read them."""

    def test_lines(self) -> None:
        self.assertEqual(codec.request(1, "m"), b'{"jsonrpc":"2.0","id":1,"method":"m"}\n')
        self.assertEqual(codec.notification("m", b"{}"), b'{"jsonrpc":"2.0","method":"m","params":{}}\n')
        self.assertEqual(codec.result("a", b"[1]"), b'{"jsonrpc":"2.0","id":"a","result":[1]}\n')
        error = json.loads(codec.error(None, -32700, "no", {"x": 1}))
        self.assertEqual(
            error, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no", "data": {"x": 1}}}
        )

    def test_big_integers_and_text_survive(self) -> None:
        value = {"n": 2**70, "t": "é\u2028"}
        self.assertEqual(codec.decode(codec.encode(value)), value)
