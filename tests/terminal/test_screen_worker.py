"""What the process of the screen models does, played here."""

from __future__ import annotations

import socket

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.frames import packed
from ironcurtain.terminal.ghostty_screen import GhosttyScreen
from ironcurtain.terminal.screen_wire import (
    Answer,
    Close,
    Feed,
    Open,
    Order,
    Ready,
    Redraw,
    Refusal,
    Reply,
    Resize,
    Text,
    reply_reader,
)
from ironcurtain.terminal.screen_worker import Screens, serve
from tests.terminal.corpus import PIECES


class ScreensTests(SynchronousTestCase):
    """Orders."""

    def setUp(self) -> None:
        self.screens = Screens()

    def give(self, *orders: Order) -> list[Reply]:
        return [reply for order in orders if (reply := self.screens.handle(order)) is not None]

    @given(st.lists(st.sampled_from(PIECES), max_size=30), st.booleans())
    def test_a_redraw_is_the_screens_own(self, output: list[bytes], history: bool) -> None:
        alone = GhosttyScreen(20, 8)
        screens = Screens()
        screens.handle(Open(3, 20, 8))
        for data in output:
            alone.feed(data)
            screens.handle(Feed(3, data))
        alone.resize(30, 9)
        screens.handle(Resize(3, 30, 9))
        self.assertEqual(screens.handle(Redraw(3, 1, 30, 9, history)), Answer(1, alone.redraw(30, 9, history)))

    def test_screens_do_not_mix(self) -> None:
        self.give(Open(1, 80, 24), Open(2, 80, 24), Feed(1, b"one"), Feed(2, b"two"))
        self.assertEqual(self.give(Text(1, 8), Text(2, 9)), [Answer(8, b"one"), Answer(9, b"two")])

    def test_a_screen_that_is_closed_or_was_never_there(self) -> None:
        self.assertEqual(self.give(Open(1, 80, 24), Close(1), Feed(1, b"x"), Resize(1, 1, 1), Close(1)), [])
        (reply,) = self.give(Text(1, 8))
        assert isinstance(reply, Refusal)
        self.assertEqual(reply.request, 8)

    def test_one_that_fails_says_why_and_harms_no_other(self) -> None:
        self.give(Open(1, 80, 24), Open(2, 80, 24), Feed(2, b"two"))
        self.patch(GhosttyScreen, "feed", lambda screen, data: 1 / 0)
        self.give(Feed(1, b"x"), Feed(1, b"y"))
        self.assertEqual(
            self.give(Text(1, 8), Redraw(1, 9, 80, 24, True), Text(2, 10)),
            [
                Refusal(8, "ZeroDivisionError: division by zero"),
                Refusal(9, "ZeroDivisionError: division by zero"),
                Answer(10, b"two"),
            ],
        )

    def test_an_answer_that_is_too_long(self) -> None:
        self.give(Open(1, 80, 24))
        self.patch(GhosttyScreen, "redraw", lambda screen, *size: bytes(33 * 1024 * 1024))
        (reply,) = self.give(Redraw(1, 9, 80, 24, True))
        assert isinstance(reply, Refusal)
        self.assertIn("too many", reply.reason)


class ServeTests(SynchronousTestCase):
    """The loop."""

    def test_until_the_owner_is_gone(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(
                b"".join([packed(Open(1, 80, 24)), packed(Feed(1, b"x")), packed(Text(1, 5)), packed(Text(9, 6))])
            )
            ours.shutdown(socket.SHUT_WR)
            serve(theirs)
            replies = list(reply_reader().feed(ours.recv(65536)))
        self.assertEqual(replies[:2], [Ready(), Answer(5, b"x")])
        self.assertIsInstance(replies[2], Refusal)
