"""Messages of servers, well-formed and not."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.jsonrpc import codec, lenient

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def message(**members: Any) -> bytes:
    """:returns: one message."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


class ReadTests(SynchronousTestCase):
    """What is accepted."""

    def result(self, line: bytes) -> Any:
        """:returns: id and result of an answer."""
        found = lenient.read(line)
        assert isinstance(found, codec.Response) and found.result is not None, found
        return found.id, json.loads(found.result)

    def error(self, line: bytes) -> Any:
        """:returns: id and error of an answer."""
        found = lenient.read(line)
        assert isinstance(found, codec.Response) and found.error is not None, found
        return found.id, json.loads(found.error)

    @given(st.integers(1, 2**53), st.dictionaries(st.text(max_size=5), values, max_size=3), st.booleans())
    def test_any_json_answer_is_read_unchanged(self, number: int, result: Any, ascii_only: bool) -> None:
        members = {"jsonrpc": "2.0", "id": number, "result": result}
        line = json.dumps(members, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        found = lenient.read(line)
        assert isinstance(found, codec.Response)
        self.assertEqual(found.id, number)
        if "\\ud" not in line.decode("utf-8", "replace"):
            self.assertEqual(json.loads(found.result or b""), result)

    def test_requests_and_notifications_keep_id_and_parameters(self) -> None:
        self.assertEqual(lenient.read(message(id="q", method="ping")), codec.Request("q", "ping", None))
        self.assertEqual(lenient.read(message(method="x", params={"a": 1})), codec.Notification("x", b'{"a": 1}'))

    def test_request_may_have_a_fraction_as_id(self) -> None:
        for identifier in (1.5, 1.0):
            line = message(id=identifier, method="ping", params={"a": None})
            found = lenient.read(line)
            self.assertEqual(found, codec.Request(identifier, "ping", b'{"a":null}'))
            assert isinstance(found, codec.Request)
            self.assertIsInstance(found.id, float)

    def test_messages_on_one_line_are_told_apart(self) -> None:
        one, two = message(id=1, result={"a": '{"jsonrpc":'}), message(method="notifications/x", params={"é": "\t"})
        for between in (b"", b" ", b"\t "):
            self.assertEqual(lenient.messages(one + between + two), (one, two))
        for line in (one, one[:-1], b"log " + one + two, one + b"log" + two, b"[%b,%b]" % (one, two), b""):
            self.assertEqual(lenient.messages(line), (line,))

    @given(
        st.lists(st.binary(max_size=20) | st.sampled_from([b"{}", b'{"jsonrpc":1}', b" ", b"{", b"\xff"]), max_size=6)
    )
    def test_no_byte_of_a_line_is_lost(self, parts: list[bytes]) -> None:
        line = b"".join(parts)
        self.assertEqual(b"".join(b"".join(lenient.messages(line)).split()), b"".join(line.split()))

    def test_ids_come_back_as_text_or_fractions(self) -> None:
        for written in ("7", '"7"', "7.0", "7e0"):
            self.assertEqual(self.result(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % written.encode()), (7, {}))

    def test_null_beside_the_other_member_means_nothing(self) -> None:
        self.assertEqual(self.result(message(id=1, result={"a": 1}, error=None)), (1, {"a": 1}))
        self.assertEqual(self.result(message(id=1, result=None)), (1, {}))
        error = {"code": 1, "message": "no"}
        self.assertEqual(self.error(message(id=1, result=None, error=error)), (1, error))

    def test_byte_order_mark_and_control_characters_are_no_obstacle(self) -> None:
        line = b'\xef\xbb\xbf{"jsonrpc":"2.0",\t"id":1,"result":{"text":"a\tb\x1b\\\\\tc\\"\x00"}}'
        self.assertEqual(self.result(line), (1, {"text": 'a\tb\x1b\\\tc"\x00'}))

    def test_batch_of_one_is_its_message(self) -> None:
        self.assertEqual(self.result(b" [" + message(id=1, result={"a": 1}) + b"]"), (1, {"a": 1}))

    def test_error_has_code_and_message(self) -> None:
        for sent, code, said in (
            ("nope", codec.INTERNAL_ERROR, "nope"),
            ({"code": 5, "message": "no", "x": [1]}, 5, "no"),
            ({"code": "5", "message": "no"}, 5, "no"),
            ({"message": "no"}, codec.INTERNAL_ERROR, "no"),
            ({"code": 5}, 5, '{"code":5}'),
            ([1], codec.INTERNAL_ERROR, "[1]"),
        ):
            _, error = self.error(message(id=1, error=sent))
            self.assertEqual((error["code"], error["message"]), (code, said))
        self.assertEqual(self.error(message(id=1, error={"code": 5, "message": "no", "x": [1]}))[1]["x"], [1])

    def test_error_without_an_id_is_read(self) -> None:
        error = {"code": codec.PARSE_ERROR, "message": "no"}
        self.assertEqual(self.error(message(id=None, error=error)), (None, error))


class UnreadableTests(SynchronousTestCase):
    """What is refused, and what is still known of it."""

    def refused(self, line: bytes) -> lenient.Unreadable:
        """:returns: why a message is refused."""
        refused: lenient.Unreadable = self.assertRaises(lenient.Unreadable, lenient.read, line)
        return refused

    def test_number_that_json_lacks_is_named_with_the_request(self) -> None:
        for constant in ("NaN", "Infinity", "-Infinity"):
            for line in (
                '{"jsonrpc":"2.0","id":7,"result":{"id":9,"v":[%s]}}',
                '{"result":{"text":"NaN {","v":%s},"jsonrpc":"2.0","id":"7"}',
            ):
                refused = self.refused((line % constant).encode())
                self.assertEqual((refused.ids, refused.is_answer), ((7,), True))
                self.assertIn(f"contains {constant},", refused.detail)

    def test_cut_answer_ends_its_request(self) -> None:
        for line in (
            b'{"jsonrpc":"2.0","id":5,"result":{"text":"abc',
            b'{"jsonrpc":"2.0","id":5,"result":{}',
            b'log line {"jsonrpc":"2.0","id":5,"result":{}}',
            b'{"jsonrpc":"2.0","id":5,"result":' + b"[" * 100_000,
            b'{"result":{"a":"' + b"x" * lenient.SCAN_LIMIT + b'",},"jsonrpc":"2.0","id":5}',
            b'{"result":' + b'{"a":' * 1000 + b"{'b'}" + b"}" * 1000 + b',"jsonrpc":"2.0","id":5}',
        ):
            self.assertEqual(self.refused(line).ids, (5,))

    def test_answers_that_lack_parts_end_their_request(self) -> None:
        for line, why in (
            (message(id=1), "neither a result nor an error"),
            (message(id=1, result=[1]), "not an object"),
            (b'{"id":1,"result":{}}', 'jsonrpc must be "2.0"'),
            (b"[%b,%b]" % (message(id=1, result={}), message(id="1", error=5)), "batches are not supported"),
        ):
            refused = self.refused(line)
            self.assertIn(why, refused.detail)
            self.assertEqual(set(refused.ids), {1})

    def test_answer_of_an_unknown_request_is_known_as_an_answer(self) -> None:
        for line in (
            message(result={}),
            message(id=None, result={}),
            b' "jsonrpc": "2.0",',
            message(id=1, result={"text": "é"}).decode().encode("utf-16"),
            message(id=1, result={}).decode().encode("utf-16-be"),
        ):
            refused = self.refused(line)
            self.assertEqual((refused.ids, refused.is_answer), ((), True), line)

    def test_logs_and_broken_notifications_answer_nothing(self) -> None:
        for line in (
            b"Starting up...",
            b'{"level":30,"time":1,"msg":"hello"}',
            b'{"id":5,"msg":"hello"}',
            b"[1,2]",
            b"null",
            b"",
            b"{",
            b"\xff\xfe",
            b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":5,"progress":NaN}}',
            message(id=None, method="ping"),
        ):
            refused = self.refused(line)
            self.assertEqual((refused.ids, refused.is_answer), ((), False), line)

    @given(st.binary(max_size=80) | st.text('{}[]",:\\\t jsonrpc20idNa', max_size=60).map(str.encode))
    def test_any_bytes_are_read_or_refused(self, line: bytes) -> None:
        for sent in (line, b'{"jsonrpc":"2.0","id":1,"result":{"a":' + line + b"}}"):
            with contextlib.suppress(lenient.Unreadable):
                lenient.read(sent)
