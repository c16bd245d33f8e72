from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.sse import EventParser, ServerEvent

TEXT = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20)
NAME = TEXT.filter(lambda text: text.strip() == text and text != "")


def parse(stream: bytes, size: int = 1 << 20) -> list[ServerEvent]:
    parser, events = EventParser(), []
    for start in range(0, len(stream), size):
        events += parser.feed(stream[start : start + size])
    return events


class EventParserTests(SynchronousTestCase):
    @given(st.lists(st.tuples(NAME, st.lists(TEXT, min_size=1, max_size=3))), st.sampled_from(["\n", "\r", "\r\n"]))
    def test_what_was_written_is_read(self, written: list[tuple[str, list[str]]], end: str) -> None:
        lines = [[f"event: {name}", *(f"data: {line}" for line in data), ""] for name, data in written]
        stream = "".join(line + end for event in lines for line in event).encode()
        self.assertEqual(parse(stream), [ServerEvent(name, "\n".join(data), "") for name, data in written])

    @given(
        st.binary(max_size=200) | st.text("\r\n:da tevnid\ufeff\u20ac", max_size=80).map(str.encode), st.integers(1, 7)
    )
    def test_the_slicing_makes_no_difference(self, stream: bytes, size: int) -> None:
        self.assertEqual(parse(stream, size), parse(stream))

    def test_lines_may_end_in_three_ways_in_one_stream(self) -> None:
        stream = b"data: a\rdata: b\r\ndata: c\n\r\n\ndata: d\r\r"
        self.assertEqual([event.data for event in parse(stream, 1)], ["a\nb\nc", "d"])

    def test_an_event_that_ends_with_cr_does_not_wait_for_more(self) -> None:
        self.assertEqual(len(EventParser().feed(b"data: a\r\r")), 1)

    def test_comments_unknown_fields_and_retry_are_passed_over(self) -> None:
        stream = b": ping\nretry: 10\nwhat: ever\nnothing\ndata: a\n\n: bye\n\n"
        self.assertEqual(parse(stream), [ServerEvent("message", "a", "")])

    def test_only_one_space_after_the_colon_belongs_to_the_syntax(self) -> None:
        self.assertEqual(
            [event.data for event in parse(b"data:a\n\ndata:  b\n\ndata\n\ndata:\n\n")], ["a", " b", "", ""]
        )

    def test_an_event_without_data_is_none_and_its_name_is_forgotten(self) -> None:
        self.assertEqual(parse(b"event: lost\n\ndata: a\n\n"), [ServerEvent("message", "a", "")])

    def test_the_id_stays_until_the_next_and_must_not_hold_nul(self) -> None:
        stream = b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\nid\ndata: c\n\n"
        self.assertEqual([event.id for event in parse(stream)], ["1", "1", ""])

    def test_a_byte_order_mark_is_dropped_at_the_start_only(self) -> None:
        mark = b"\xef\xbb\xbf"
        self.assertEqual(
            [event.data for event in parse(mark + b"data: a\n\ndata: " + mark + b"b\n\n", 1)], ["a", "\ufeffb"]
        )

    def test_bytes_that_are_not_utf_8_are_replaced(self) -> None:
        self.assertEqual(parse(b"data: \xff\xe2\x82\n\n")[0].data, "\ufffd\ufffd")

    def test_an_unfinished_event_is_not_given_out(self) -> None:
        self.assertEqual(parse(b"data: a\n"), [])

    def test_an_event_over_the_limit_is_refused_in_any_shape(self) -> None:
        for stream in (b"data: " + b"x" * 50, b"data: xxxxxxx\n" * 5, b":" * 20 + b"\n" + b":" * 30):
            parser = EventParser(limit=40)
            with self.assertRaises(ProtocolViolation):
                for start in range(len(stream)):
                    parser.feed(stream[start : start + 1])

    def test_the_limit_is_for_each_event_anew(self) -> None:
        parser = EventParser(limit=20)
        self.assertEqual(len(parser.feed(b"data: 0123456789\n\n" * 100)), 100)
