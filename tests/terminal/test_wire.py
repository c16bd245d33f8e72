"""Lines and frames between a terminal's owner and a viewer elsewhere."""

from __future__ import annotations

import contextlib  # as a name of this module, "suppress" would mean something to trial

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.wire import (
    FRAME_LIMIT,
    LINE_LIMIT,
    Frame,
    FrameReader,
    Hello,
    LineReader,
    Resize,
    Welcome,
    data_frames,
    frame,
    line,
    read_hello,
    read_welcome,
)

HELLO = Hello("1f-2", Mode.OBSERVE, 80, 24, "secret")
sizes = st.integers(0, 65535)
frames = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=30),
        st.builds(Resize, sizes, sizes),
        st.builds(ProgramExit, st.none() | st.integers(0, 255), st.text(max_size=20)),
    )
)


def sent(what: Frame) -> bytes:
    return data_frames(what) if isinstance(what, bytes) else frame(what)


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


class LineTests(SynchronousTestCase):
    """What each side says first."""

    @given(st.integers(1, 50), st.binary())
    def test_any_slicing_gives_the_same_line(self, size: int, rest: bytes) -> None:
        reader, pieces = LineReader(), cut(line(HELLO) + rest, size)
        found = None
        while found is None:
            found = reader.feed(pieces.pop(0))
        self.assertEqual(read_hello(found), HELLO)
        self.assertEqual(reader.rest + b"".join(pieces), rest)

    def test_an_answer(self) -> None:
        for welcome in (Welcome(), Welcome("NOT_FOUND", "there is none")):
            self.assertEqual(read_welcome(line(welcome).rstrip()), welcome)

    def test_a_line_that_is_too_long(self) -> None:
        self.assertRaises(ProtocolViolation, LineReader().feed, b"x" * (LINE_LIMIT + 1))

    def test_wrong_lines(self) -> None:
        for wrong in (b"", b"{}", b"[1]", b"\xff", b"[" * 3000, line(HELLO).replace(b"observe", b"rule")):
            self.assertRaises(ProtocolViolation, read_hello, wrong)

    @given(st.binary(max_size=100))
    def test_no_bytes_raise_anything_else(self, data: bytes) -> None:
        with contextlib.suppress(ProtocolViolation):
            read_hello(data)


class FrameTests(SynchronousTestCase):
    """What follows."""

    @given(frames, st.integers(1, 40))
    def test_any_slicing_gives_the_same_frames(self, wanted: list[Frame], size: int) -> None:
        reader = FrameReader()
        stream = b"".join(map(sent, wanted))
        self.assertEqual([what for piece in cut(stream, size) for what in reader.feed(piece)], wanted)

    def test_long_data_is_sent_in_several(self) -> None:
        data = bytes(range(256)) * 1000
        got = [what for what in FrameReader().feed(data_frames(data)) if isinstance(what, bytes)]
        self.assertEqual(b"".join(got), data)
        self.assertEqual(max(map(len, got)), FRAME_LIMIT)

    def test_wrong_frames(self) -> None:
        for wrong in (b"d\xff\xff\xff\xff", b"x\0\0\0\0", b"r\0\0\0\3abc", b"e\0\0\0\2{}"):
            with self.assertRaises(ProtocolViolation):
                list(FrameReader().feed(wrong))

    @given(st.binary(max_size=200))
    def test_no_bytes_raise_anything_else(self, data: bytes) -> None:
        with contextlib.suppress(ProtocolViolation):
            list(FrameReader().feed(data))
