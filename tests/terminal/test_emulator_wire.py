"""Messages between us and the process of the screen models."""

from __future__ import annotations

import contextlib  # as a name of this module, "suppress" would mean something to trial
import struct

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.process.frames import packed
from ironcurtain.terminal.emulator_wire import (
    MESSAGE_LIMIT,
    Answer,
    CloseEmulator,
    EmulatorOrder,
    EmulatorReply,
    FeedOutput,
    OpenScreen,
    ReadScreen,
    Ready,
    RedrawScreen,
    Refusal,
    ResizeTerminal,
    order_reader,
    reply_reader,
)

numbers = st.integers(0, 2**32)
orders = st.lists(
    st.one_of(
        st.builds(OpenScreen, numbers, numbers, numbers),
        st.builds(FeedOutput, numbers, st.binary(max_size=300)),
        st.builds(ResizeTerminal, numbers, numbers, numbers),
        st.builds(RedrawScreen, numbers, numbers, numbers, numbers, st.booleans()),
        st.builds(ReadScreen, numbers, numbers),
        st.builds(CloseEmulator, numbers),
    )
)
replies = st.lists(
    st.one_of(
        st.just(Ready()),
        st.builds(Answer, numbers, st.binary(max_size=300)),
        st.builds(Refusal, numbers, st.text()),
    )
)


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


class MessageTests(SynchronousTestCase):
    """Both directions."""

    @given(orders, st.integers(1, 50))
    def test_any_slicing_gives_the_same_orders(self, wanted: list[EmulatorOrder], size: int) -> None:
        reader = order_reader()
        stream = b"".join(map(packed, wanted))
        self.assertEqual([order for piece in cut(stream, size) for order in reader.feed(piece)], wanted)

    @given(replies, st.integers(1, 50))
    def test_and_the_same_replies(self, wanted: list[EmulatorReply], size: int) -> None:
        reader = reply_reader()
        stream = b"".join(map(packed, wanted))
        self.assertEqual([reply for piece in cut(stream, size) for reply in reader.feed(piece)], wanted)

    def test_what_may_not_come(self) -> None:
        long = struct.pack("!I", MESSAGE_LIMIT + 1)
        for wrong in (
            long,
            packed(FeedOutput(1, b"x")),
            packed(CloseEmulator(2)),
            b"\0\0\0\0",
            b"\0\0\0\1\xc1",
            b"\0\0\0\2\x91\x63",
        ):
            with self.assertRaises(ProtocolViolation, msg=wrong):
                list(reply_reader().feed(wrong))

    @given(st.binary(max_size=200), st.booleans())
    def test_no_bytes_raise_anything_else(self, data: bytes, framed: bool) -> None:
        with contextlib.suppress(ProtocolViolation):
            list(reply_reader().feed(struct.pack("!I", len(data)) + data if framed else data))
