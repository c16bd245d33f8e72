"""Tests for streams of bytes as messages."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.fleet.frames import Frame, Kind, Receiving, Sending, decode

WINDOW = 64


class FrameTests(SynchronousTestCase):
    @given(st.sampled_from(Kind), st.integers(0, 2**64 - 1), st.binary(max_size=200))
    def test_each_is_read_as_it_was_written(self, kind: Any, number: Any, data: Any) -> None:
        frame = Frame(kind, number, data)
        self.assertEqual(decode(frame.encode()), frame)

    @given(st.binary(max_size=200))
    def test_anything_else_is_refused(self, message: Any) -> None:
        try:
            frame = decode(message)
        except ProtocolViolation:
            return
        self.assertEqual(frame.encode(), message)


class StreamTests(SynchronousTestCase):
    @given(st.lists(st.binary(max_size=3 * WINDOW), max_size=10), st.randoms())
    def test_all_data_arrives_in_order_within_the_window(self, pieces: Any, random: Any) -> None:
        sending, receiving = Sending(WINDOW), Receiving(WINDOW)
        frames = [frame for piece in pieces for frame in sending.write(piece)] + sending.end()
        got, untaken, ended = b"", 0, False
        while not ended:
            while frames and random.random() < 0.8:
                frame = frames.pop(0)
                if frame.kind is Kind.END:
                    receiving.end(frame)
                    ended = True
                    break
                data = receiving.data(frame)
                got, untaken = got + data, untaken + len(data)
                self.assertLessEqual(untaken, WINDOW)
            count = random.randint(0, untaken) if frames else untaken
            untaken -= count
            for report in receiving.take(count):
                frames += sending.taken(report.number)
            if not frames and not untaken and not ended and not sending.waiting:
                self.assertTrue(sending.over)
                break
        self.assertEqual(got, b"".join(pieces)[: len(got)])
        if ended:
            self.assertEqual(got, b"".join(pieces))

    def test_a_lost_repeated_or_late_frame_is_noticed(self) -> None:
        sending = Sending(WINDOW)
        frames = [*sending.write(b"one"), *sending.write(b"two"), *sending.end()]
        one, two, end = frames
        for wrong in ([two], [one, one], [one, end], [one, two, end, end], [end], [one, two, end, two]):
            receiving = Receiving(WINDOW)
            with self.assertRaises(ProtocolViolation, msg=str(wrong)):
                for frame in wrong:
                    (receiving.end if frame.kind is Kind.END else receiving.data)(frame)

    def test_a_sender_that_ignores_the_window_is_noticed(self) -> None:
        receiving = Receiving(WINDOW)
        receiving.data(Frame(Kind.DATA, 0, bytes(WINDOW)))
        with self.assertRaises(ProtocolViolation):
            receiving.data(Frame(Kind.DATA, WINDOW, b"x"))

    def test_frame_of_data_without_data_is_refused(self) -> None:
        with self.assertRaises(ProtocolViolation):
            Receiving(WINDOW).data(Frame(Kind.DATA, 0))

    def test_a_receiver_cannot_report_what_was_not_sent(self) -> None:
        sending = Sending(WINDOW)
        sending.write(b"12345")
        sending.taken(3)
        for total in (2, 6, 2**63):
            with self.assertRaises(ProtocolViolation):
                sending.taken(total)
