from __future__ import annotations

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.terminal.recording import Cast, CastEvent
from ironcurtain.terminal.replay import Replay, read_time, show_time
from ironcurtain.terminal.sequences import FRESH

COLUMNS, ROWS = 30, 6


def cast(*events: CastEvent, idle_limit: float | None = None) -> Cast:
    return Cast((COLUMNS, ROWS), "", idle_limit, events, False, 0)


def said(*times: float) -> Cast:
    """:returns: a recording that shows its own times."""
    return cast(*(CastEvent(time, output=f"{time:g} ") for time in times))


def text(drawn: str) -> str:
    """:returns: what is written, after the last time that all was drawn afresh."""
    return drawn.rpartition(f"\x1b[1;{ROWS}r")[2]


class PlayingTests(SynchronousTestCase):
    def test_each_thing_at_its_time(self) -> None:
        replay = Replay(said(1, 3, 4))
        self.assertEqual(text(replay.begin()), "")
        self.assertEqual(replay.wait, 1.0)
        self.assertEqual(replay.advance(1.0), "1 ")
        self.assertEqual(replay.advance(0.5), "")
        self.assertEqual((replay.wait, replay.recorded, replay.over), (1.5, 1.5, False))
        self.assertEqual(replay.advance(2.5), "3 4 ")
        self.assertEqual((replay.wait, replay.over), (None, True))

    def test_faster(self) -> None:
        replay = Replay(said(1, 3), speed=4.0)
        replay.begin()
        self.assertEqual(replay.wait, 0.25)
        self.assertEqual(replay.advance(0.25), "1 ")
        self.assertEqual(replay.wait, 0.5)

    def test_whoever_waits_as_told_gets_something_each_time(self) -> None:
        replay = Replay(said(*(n / 10 for n in range(1, 100))), speed=3.0)
        replay.begin()
        drawn = []
        while (wait := replay.wait) is not None:
            drawn.append(replay.advance(wait))
        self.assertEqual(drawn, [f"{n / 10:g} " for n in range(1, 100)])

    def test_long_pauses_are_shortened_and_times_stay(self) -> None:
        replay = Replay(said(1, 101, 102), idle_limit=2.0)
        replay.begin()
        replay.advance(1.0)
        self.assertEqual(replay.wait, 2.0)
        self.assertEqual(replay.advance(2.0), "101 ")
        self.assertEqual(replay.recorded, 101.0)

    def test_the_recording_s_own_limit_holds_unless_another_is_given(self) -> None:
        recording = cast(CastEvent(50.0, output="x"), idle_limit=3.0)
        self.assertEqual([Replay(recording).wait, Replay(recording, idle_limit=5.0).wait], [3.0, 5.0])

    def test_a_pause_stops_time(self) -> None:
        replay = Replay(said(1, 2))
        replay.begin()
        replay.pause()
        self.assertEqual((replay.wait, replay.advance(10.0), replay.over), (None, "", False))
        replay.pause()
        self.assertEqual(replay.wait, 1.0)

    def test_a_bell_is_heard_when_played_and_not_when_passed_over(self) -> None:
        recording = cast(CastEvent(1.0, output="a\a"), CastEvent(2.0, output="b\a"))
        replay = Replay(recording)
        replay.begin()
        self.assertEqual(replay.advance(1.0), "a\a")
        self.assertEqual(replay.skip(5.0), "b")
        self.assertNotIn("\a", replay.skip(-1.0))

    def test_an_empty_one_is_over_at_once(self) -> None:
        replay = Replay(cast())
        self.assertEqual(replay.begin(5.0), f"{FRESH}\x1b[1;{ROWS}r")
        self.assertEqual((replay.over, replay.recorded, replay.step(), replay.skip(-5.0)), (True, 0.0, "", ""))

    def test_one_more_change_and_pause(self) -> None:
        replay = Replay(said(1, 2, 2, 50))
        replay.begin()
        self.assertEqual([replay.step() for _ in range(4)], ["1 ", "2 2 ", "50 ", ""])
        self.assertEqual((replay.paused, replay.over), (True, False))


class SeekTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.replay = Replay(said(*range(1, 21)))
        self.replay.begin()

    def test_forward_draws_what_lies_between(self) -> None:
        self.replay.advance(3.0)
        self.assertEqual(self.replay.skip(2.5), "4 5 ")
        self.assertEqual(self.replay.wait, 0.5)

    def test_back_draws_all_afresh(self) -> None:
        self.replay.advance(6.0)
        drawn = self.replay.skip(-4.0)
        self.assertTrue(drawn.startswith(FRESH))
        self.assertEqual(text(drawn), "1 2 ")
        self.assertEqual(text(self.replay.skip(-4.0)), "")
        self.assertEqual(self.replay.recorded, 0.0)

    def test_not_beyond_the_end(self) -> None:
        self.replay.skip(100.0)
        self.assertEqual((self.replay.recorded, self.replay.over), (20.0, True))

    def test_begin_in_the_middle(self) -> None:
        replay = Replay(said(1, 100, 101), idle_limit=2.0)
        self.assertEqual(text(replay.begin(100.5)), "1 100 ")
        self.assertEqual((replay.recorded, replay.wait), (100.5, 0.5))
        self.assertEqual(text(replay.begin(90.0)), "1 ")
        self.assertEqual(replay.wait, 0.0)  # the pause that is shortened is over by then
        self.assertEqual(text(replay.begin(1e6)), "1 100 101 ")

    def test_back_from_the_last_reset_only(self) -> None:
        shown = {1.0: "1.0 ", 2.0: "2.0 ", 3.0: "old \x1bcnew ", 5.0: "5", 6.0: "6"}
        events = [CastEvent(time, output=output) for time, output in shown.items()]
        recording = cast(*events[:3], CastEvent(4.0, size=(20, 5)), *events[3:])
        replay = Replay(recording)
        replay.begin()
        replay.advance(6.0)
        self.assertNotIn("1.0", replay.skip(-1.0))
        self.assertIn("1.0", replay.skip(-3.5))

    def test_markers(self) -> None:
        events = [CastEvent(n, output=f"{n:g} ") for n in range(1, 11)]
        marks = [CastEvent(n, marker=f"m{n:g}") for n in (2.5, 6.5)]
        replay = Replay(cast(*sorted(events + marks, key=lambda event: event.time)))
        replay.begin()
        places = []
        for following in (True, True, True, False, False, False):
            replay.to_marker(following)
            places.append(replay.recorded)
        self.assertEqual(places, [2.5, 6.5, 6.5, 2.5, 0.0, 0.0])
        replay.skip(6.7)
        replay.to_marker(False)
        self.assertEqual(replay.recorded, 2.5)  # just after a marker, the one before it is meant
        replay.skip(4.2)
        replay.pause()
        replay.to_marker(False)
        self.assertEqual(replay.recorded, 6.5)

    def test_the_size_in_force_comes_back(self) -> None:
        replay = Replay(
            cast(
                CastEvent(1.0, size=(20, 4)),
                CastEvent(2.0, output="\x1bc"),
                CastEvent(3.0, output="\x1b[9;9H"),
                CastEvent(4.0, output="x"),
            )
        )
        replay.begin()
        replay.advance(4.0)
        self.assertTrue(replay.skip(-1.0).endswith("\x1b[1;4r\x1b[4;9H"))


STEPS = st.one_of(
    st.tuples(st.just("advance"), st.floats(0, 3)),
    st.tuples(st.just("skip"), st.floats(-8, 8)),
    st.tuples(st.just("begin"), st.floats(0, 12)),
    st.tuples(st.just("to_marker"), st.booleans()),
    st.tuples(st.sampled_from(("step", "pause", "again"))),
)
OUTPUT = st.one_of(
    st.text("abc", min_size=1, max_size=40),
    st.sampled_from(
        ("\r\n", "\x1b[H", "\x1b[J", "\x1bc", "\x1b[3;3H", "\x1b[2;4r", "\x1b[4", "2m", "\n\n\n", "\x1b]0;a")
    ),
)
EVENTS = st.lists(
    st.tuples(st.floats(0, 4), st.one_of(OUTPUT.map(lambda text: (text, "")), st.just(("", "mark")))), max_size=20
)


class AnyOrderTests(SynchronousTestCase):
    """Whatever a person does, the screen is as if the recording had been played up to there."""

    @settings(deadline=None)
    @given(EVENTS, st.lists(STEPS, max_size=12), st.one_of(st.none(), st.floats(0, 2)))
    def test_the_screen(
        self, events: list[tuple[float, tuple[str, str]]], steps: list[tuple[object, ...]], limit: float | None
    ) -> None:
        now, listed = 0.0, []
        for pause, (output, marker) in events:
            now += pause
            listed.append(CastEvent(now, output=output, marker=marker))
        recording = cast(*listed)
        replay = Replay(recording, idle_limit=limit)
        screen = pyte.Screen(COLUMNS, ROWS)
        stream = pyte.Stream(screen)
        stream.feed(replay.begin())
        for name, *arguments in steps:
            stream.feed(getattr(replay, str(name))(*arguments) or "")
        fresh = pyte.Screen(COLUMNS, ROWS)
        straight = Replay(recording, idle_limit=0.0)
        drawn = straight.begin(-1.0)
        for _ in range(replay._next):
            drawn += straight._draw(straight._next + 1)
        pyte.Stream(fresh).feed(drawn)
        self.assertEqual(list(screen.display), list(fresh.display))
        self.assertEqual((screen.cursor.x, screen.cursor.y), (fresh.cursor.x, fresh.cursor.y))
        self.assertTrue(replay.recorded >= 0.0)


class TimeTests(SynchronousTestCase):
    def test_as_people_write_them(self) -> None:
        for written, seconds in (("90", 90.0), ("1:30", 90.0), ("1:02:03", 3723.0), ("0:01.5", 1.5), ("90:00", 5400.0)):
            self.assertEqual(read_time(written), seconds)

    def test_what_is_no_time(self) -> None:
        for written in ("", "x", "-1", "1:2:3:4", "1:", ":30", "1e3", "inf"):
            self.assertRaises(UsageError, read_time, written)

    @given(st.floats(0, 1e6))
    def test_what_is_shown_can_be_given_again(self, seconds: float) -> None:
        self.assertEqual(read_time(show_time(seconds)), float(int(seconds)))
