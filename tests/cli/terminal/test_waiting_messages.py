"""Messages of a conversation that wait for the end of the one before."""

from __future__ import annotations

from tests.cli.terminal.frontends import FrontEndCase


class WaitingTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.begin(self.front.interactive())
        self.session.keeps = True

    def test_a_message_is_taken_back_by_a_command(self) -> None:
        self.type("one", "two")
        self.type("/withdraw", "/withdraw 1")
        self.assertEqual((self.session.queue, self.surface.input_line), ([], "two"))
        for words in ("message 1 in the queue: two", "no message waits"):
            self.assertIn(words, self.surface.text)

    def test_all_return_to_the_input_line_in_their_order_if_the_one_before_is_cancelled(self) -> None:
        self.type("one", "two", "three")
        assert self.surface.listener is not None
        self.surface.listener.interrupt()
        self.draw()
        self.assertEqual((self.session.queue, self.surface.input_line), ([], "two\nthree"))
        self.assertIn("cancelled", self.surface.text)
