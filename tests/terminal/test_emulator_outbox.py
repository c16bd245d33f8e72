"""What waits for the process of the screen models."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.emulator_wire import (
    GAP,
    EmulatorOrder,
    EmulatorOutbox,
    FeedOutput,
    OpenScreen,
    ReadScreen,
    RedrawScreen,
    ResizeTerminal,
    order_reader,
)

OPEN = OpenScreen(5, 80, 24)
Step = bytes | ResizeTerminal | ReadScreen
outputs = st.binary(min_size=1, max_size=20)
steps = st.lists(
    st.one_of(
        outputs,
        st.builds(ResizeTerminal, st.just(5), st.integers(1, 9), st.integers(1, 9)),
        st.builds(ReadScreen, st.just(5), st.integers(0, 99)),
    )
)


def read(data: bytes) -> list[EmulatorOrder]:
    return list(order_reader().feed(data))


def play(outbox: EmulatorOutbox, done: list[Step]) -> None:
    for step in done:
        if isinstance(step, bytes):
            outbox.feed(step)
        else:
            outbox.put(step)


def joined(orders: list[EmulatorOrder]) -> list[object]:
    """:returns: the same with output as bytes, all that follow each other in one."""
    parts: list[object] = []
    for order in orders:
        if not isinstance(order, FeedOutput):
            parts.append(order)
        elif parts and isinstance(parts[-1], bytes):
            parts[-1] += order.data
        else:
            parts.append(order.data)
    return parts


class OutboxTests(SynchronousTestCase):
    """One screen's."""

    @given(st.lists(steps, max_size=5))
    def test_all_is_sent_once_and_in_order(self, rounds: list[list[Step]]) -> None:
        outbox = EmulatorOutbox(OPEN)
        sent: list[EmulatorOrder] = []
        for done in rounds:
            play(outbox, done)
            sent += read(outbox.take())
            self.assertEqual((outbox.waiting, outbox.take()), (0, b""))
        sent += read(outbox.take())
        flat = [FeedOutput(5, step) if isinstance(step, bytes) else step for done in rounds for step in done]
        self.assertEqual(joined(sent), joined([OPEN, *flat]))

    @given(steps, steps)
    def test_a_new_start_keeps_what_lasts(self, done: list[Step], more: list[Step]) -> None:
        outbox = EmulatorOutbox(OPEN)
        play(outbox, done)
        dropped = outbox.restart(b"last")
        self.assertEqual(dropped, [step.request for step in done if isinstance(step, ReadScreen)])
        play(outbox, more)
        resizes = [step for step in done if isinstance(step, ResizeTerminal)]
        rest = [FeedOutput(5, step) if isinstance(step, bytes) else step for step in more]
        self.assertEqual(
            joined(read(outbox.take())), joined([OPEN, *resizes[-1:], FeedOutput(5, GAP + b"last"), *rest])
        )

    def test_what_was_sent_is_not_sent_again(self) -> None:
        outbox = EmulatorOutbox(OPEN)
        outbox.put(ResizeTerminal(5, 1, 1))
        outbox.put(RedrawScreen(5, 7, 1, 1, True))
        outbox.take()
        outbox.feed(b"x")
        self.assertEqual(outbox.restart(b"last"), [])
        self.assertEqual(read(outbox.take()), [FeedOutput(5, GAP + b"last")])

    @given(steps)
    def test_it_knows_how_much_waits(self, done: list[Step]) -> None:
        outbox = EmulatorOutbox(OPEN)
        play(outbox, done)
        waiting = outbox.waiting
        self.assertLessEqual(waiting, len(outbox.take()))
        self.assertGreaterEqual(waiting, sum(len(step) for step in done if isinstance(step, bytes)))
