"""Who holds output up, and what that does."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.loop.backend import LoopStream


class Source:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")


class HoldingTests(SynchronousTestCase):
    """Its viewers, and what reads the output."""

    def setUp(self) -> None:
        self.source = Source()
        self.stream = LoopStream(lambda data: None, lambda columns, rows: None)

    def test_it_goes_on_when_neither_holds_it_up(self) -> None:
        self.stream.begin(self.source)
        self.stream.pause()
        self.stream.hold_back(True)
        self.stream.resume()
        self.assertEqual((self.source.told, self.stream.paused), (["pause"], True))
        self.stream.hold_back(False)
        self.assertEqual((self.source.told, self.stream.paused), (["pause", "resume"], False))

    def test_one_that_begins_while_it_is_held_up_waits(self) -> None:
        self.stream.hold_back(True)
        self.stream.begin(self.source)
        self.assertEqual(self.source.told, ["pause"])

    def test_one_that_is_over_is_told_nothing(self) -> None:
        self.stream.begin(self.source)
        self.stream.over()
        self.stream.pause()
        self.assertEqual(self.source.told, [])
