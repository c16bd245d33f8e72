from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.terminal import BURST_SIZE, PIECE_SIZE, QUIET_SECONDS, TURN_SIZE, OutputPace


class PaceTests(SynchronousTestCase):
    def test_keys_and_screens_never_rest(self) -> None:
        pace = OutputPace()
        for screen in range(1000):
            now = 2 * QUIET_SECONDS * screen
            self.assertFalse(any(pace.rest_after(BURST_SIZE // 8, now) for _ in range(8)))

    def test_a_flood_in_small_pieces_rests_after_each(self) -> None:
        pace = OutputPace()
        rests = [pace.rest_after(4096, 0.001 * number) for number in range(100)]
        first = BURST_SIZE // 4096
        self.assertEqual(rests, [False] * first + [True] * (100 - first))

    def test_a_flood_that_fills_each_read_rests_once_a_turn(self) -> None:
        pace = OutputPace()
        rests = [pace.rest_after(PIECE_SIZE, 0.001 * number) for number in range(12)]
        self.assertEqual(rests, ([False] * (TURN_SIZE // PIECE_SIZE - 1) + [True]) * 3)
