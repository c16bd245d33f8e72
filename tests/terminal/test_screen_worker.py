"""What the process of the screen models does, played here."""

from __future__ import annotations

import socket

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.frames import packed
from ironcurtain.terminal.ghostty_screen import GhosttyScreen
from ironcurtain.terminal.screen_wire import (
    CloseScreen,
    FeedScreen,
    OpenScreen,
    ReadScreen,
    RedrawScreen,
    ResizeScreen,
    ScreenAnswer,
    ScreenOrder,
    ScreenRefusal,
    ScreenReply,
    ScreensReady,
    reply_reader,
)
from ironcurtain.terminal.screen_worker import ScreenWorker, serve
from tests.terminal.corpus import PIECES


class ScreensTests(SynchronousTestCase):
    """Orders."""

    def setUp(self) -> None:
        self.screens = ScreenWorker()

    def give(self, *orders: ScreenOrder) -> list[ScreenReply]:
        return [reply for order in orders if (reply := self.screens.handle(order)) is not None]

    @given(st.lists(st.sampled_from(PIECES), max_size=30), st.booleans())
    def test_a_redraw_is_the_screens_own(self, output: list[bytes], history: bool) -> None:
        alone = GhosttyScreen(20, 8)
        screens = ScreenWorker()
        screens.handle(OpenScreen(3, 20, 8))
        for data in output:
            alone.feed(data)
            screens.handle(FeedScreen(3, data))
        alone.resize(30, 9)
        screens.handle(ResizeScreen(3, 30, 9))
        self.assertEqual(
            screens.handle(RedrawScreen(3, 1, 30, 9, history)), ScreenAnswer(1, alone.redraw(30, 9, history))
        )

    def test_screens_do_not_mix(self) -> None:
        self.give(OpenScreen(1, 80, 24), OpenScreen(2, 80, 24), FeedScreen(1, b"one"), FeedScreen(2, b"two"))
        self.assertEqual(
            self.give(ReadScreen(1, 8), ReadScreen(2, 9)), [ScreenAnswer(8, b"one"), ScreenAnswer(9, b"two")]
        )

    def test_a_screen_that_is_closed_or_was_never_there(self) -> None:
        self.assertEqual(
            self.give(
                OpenScreen(1, 80, 24), CloseScreen(1), FeedScreen(1, b"x"), ResizeScreen(1, 1, 1), CloseScreen(1)
            ),
            [],
        )
        (reply,) = self.give(ReadScreen(1, 8))
        assert isinstance(reply, ScreenRefusal)
        self.assertEqual(reply.request, 8)

    def test_one_that_fails_says_why_and_harms_no_other(self) -> None:
        self.give(OpenScreen(1, 80, 24), OpenScreen(2, 80, 24), FeedScreen(2, b"two"))
        self.patch(GhosttyScreen, "feed", lambda screen, data: 1 / 0)
        self.give(FeedScreen(1, b"x"), FeedScreen(1, b"y"))
        self.assertEqual(
            self.give(ReadScreen(1, 8), RedrawScreen(1, 9, 80, 24, True), ReadScreen(2, 10)),
            [
                ScreenRefusal(8, "ZeroDivisionError: division by zero"),
                ScreenRefusal(9, "ZeroDivisionError: division by zero"),
                ScreenAnswer(10, b"two"),
            ],
        )

    def test_an_answer_that_is_too_long(self) -> None:
        self.give(OpenScreen(1, 80, 24))
        self.patch(GhosttyScreen, "redraw", lambda screen, *size: bytes(33 * 1024 * 1024))
        (reply,) = self.give(RedrawScreen(1, 9, 80, 24, True))
        assert isinstance(reply, ScreenRefusal)
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
                        packed(FeedScreen(1, b"x")),
                        packed(ReadScreen(1, 5)),
                        packed(ReadScreen(9, 6)),
                    ]
                )
            )
            ours.shutdown(socket.SHUT_WR)
            serve(theirs)
            replies = list(reply_reader().feed(ours.recv(65536)))
        self.assertEqual(replies[:2], [ScreensReady(), ScreenAnswer(5, b"x")])
        self.assertIsInstance(replies[2], ScreenRefusal)
