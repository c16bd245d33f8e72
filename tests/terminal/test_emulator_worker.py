"""What the process of the screen models does, played here."""

from __future__ import annotations

import socket

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.frames import packed
from ironcurtain.terminal.emulator_wire import (
    Answer,
    CloseEmulator,
    EmulatorFailed,
    EmulatorOrder,
    EmulatorReply,
    EndScan,
    FeedOutput,
    OpenScan,
    OpenScreen,
    ReadScreen,
    Ready,
    RedrawScreen,
    Refusal,
    ResizeTerminal,
    TypedInput,
    reply_reader,
)
from ironcurtain.terminal.emulator_worker import EmulatorWorker, serve
from ironcurtain.terminal.ghostty_screen import GhosttyScreen
from tests.terminal.corpus import PIECES


class ScreensTests(SynchronousTestCase):
    """Orders."""

    def setUp(self) -> None:
        self.screens = EmulatorWorker()

    def give(self, *orders: EmulatorOrder) -> list[EmulatorReply]:
        return [reply for order in orders for reply in self.screens.handle(order)]

    @given(st.lists(st.sampled_from(PIECES), max_size=30), st.booleans())
    def test_a_redraw_is_the_screens_own(self, output: list[bytes], history: bool) -> None:
        alone = GhosttyScreen(20, 8)
        screens = EmulatorWorker()
        list(screens.handle(OpenScreen(3, 20, 8)))
        for data in output:
            alone.feed(data)
            list(screens.handle(FeedOutput(3, data)))
        alone.resize(30, 9)
        list(screens.handle(ResizeTerminal(3, 30, 9)))
        self.assertEqual(
            list(screens.handle(RedrawScreen(3, 1, 30, 9, history))), [Answer(1, alone.redraw(30, 9, history))]
        )

    def test_screens_do_not_mix(self) -> None:
        self.give(OpenScreen(1, 80, 24), OpenScreen(2, 80, 24), FeedOutput(1, b"one"), FeedOutput(2, b"two"))
        self.assertEqual(self.give(ReadScreen(1, 8), ReadScreen(2, 9)), [Answer(8, b"one"), Answer(9, b"two")])

    def test_a_screen_that_is_closed_or_was_never_there(self) -> None:
        self.assertEqual(
            self.give(
                OpenScreen(1, 80, 24),
                CloseEmulator(1),
                FeedOutput(1, b"x"),
                ResizeTerminal(1, 1, 1),
                CloseEmulator(1),
                ReadScreen(1, 8),
            ),
            [],
        )

    def test_one_that_fails_says_why_and_harms_no_other(self) -> None:
        self.give(OpenScreen(1, 80, 24), OpenScreen(2, 80, 24), FeedOutput(2, b"two"))
        self.patch(GhosttyScreen, "feed", lambda screen, data: 1 / 0)
        self.assertEqual(
            self.give(FeedOutput(1, b"x"), FeedOutput(1, b"y"), ReadScreen(1, 8), ReadScreen(2, 10)),
            [EmulatorFailed(1, "ZeroDivisionError: division by zero"), Answer(10, b"two")],
        )

    def test_orders_of_the_other_kind_have_no_effect(self) -> None:
        self.give(OpenScreen(1, 80, 24), OpenScan(2, "done", "", None))
        self.assertEqual(self.give(TypedInput(1, b"x"), EndScan(1), ReadScreen(2, 8)), [])

    def test_an_answer_that_is_too_long(self) -> None:
        self.give(OpenScreen(1, 80, 24))
        self.patch(GhosttyScreen, "redraw", lambda screen, *size: bytes(33 * 1024 * 1024))
        (reply,) = self.give(RedrawScreen(1, 9, 80, 24, True))
        assert isinstance(reply, Refusal)
        self.assertIn("too many", reply.reason)


class ServeTests(SynchronousTestCase):
    """The loop."""

    def test_until_the_owner_is_gone(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(
                b"".join(
                    [
                        packed(OpenScreen(1, 80, 24)),
                        packed(FeedOutput(1, b"x")),
                        packed(ReadScreen(1, 5)),
                    ]
                )
            )
            ours.shutdown(socket.SHUT_WR)
            serve(theirs)
            replies = list(reply_reader().feed(ours.recv(65536)))
        self.assertEqual(replies, [Ready(), Answer(5, b"x")])
