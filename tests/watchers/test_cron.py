from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.watchers.cron import Cron

BERLIN = ZoneInfo("Europe/Berlin")


def utc(moment: float) -> time.struct_time:
    """As ``time.gmtime``."""
    return time.gmtime(moment)


def berlin(moment: float) -> time.struct_time:
    """:returns: the time in Berlin."""
    return datetime.fromtimestamp(moment, BERLIN).timetuple()


def at(*parts: int) -> float:
    """:returns: a time in UTC, in seconds since the epoch."""
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]  # mypy counts positions


class CronTests(SynchronousTestCase):
    def after(self, text: str, *parts: int) -> str:
        found = Cron.read(text).after(at(*parts), utc)
        assert found is not None
        return datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%d %H:%M")

    def test_next_time(self) -> None:
        cases = {
            "* * * * *": "2026-11-27 13:42",
            "*/15 * * * *": "2026-11-27 13:45",
            "0 9 * * *": "2026-11-28 09:00",
            "0 9 * * 1-5": "2026-11-30 09:00",
            "0 9 * * mon-fri": "2026-11-30 09:00",
            "30 6 1 jan *": "2027-01-01 06:30",
            "0 0 29 2 *": "2028-02-29 00:00",
            "0 0 * * 7": "2026-11-29 00:00",
            "5,7 13 * * *": "2026-11-28 13:05",
            "0 0 13 * 5": "2026-12-04 00:00",  # either kind of day
            "59 23 31 12 *": "2026-12-31 23:59",
            "50/5 13 * * *": "2026-11-27 13:50",
        }
        self.assertEqual({text: self.after(text, 2026, 11, 27, 13, 41, 30) for text in cases}, cases)

    def test_time_itself_is_not_after_it(self) -> None:
        self.assertEqual(self.after("0 9 * * *", 2026, 11, 27, 9), "2026-11-28 09:00")

    def test_hour_that_comes_twice_counts_once(self) -> None:
        cron = Cron.read("30 2 * * *")
        first = cron.after(at(2026, 10, 25, 0, 0), berlin)
        assert first is not None
        self.assertEqual(first, at(2026, 10, 25, 0, 30))
        self.assertEqual(cron.after(first, berlin), at(2026, 10, 26, 1, 30))

    def test_hour_that_is_left_out_does_not_come(self) -> None:
        self.assertEqual(Cron.read("30 2 * * *").after(at(2026, 3, 29, 0, 0), berlin), at(2026, 3, 30, 0, 30))

    def test_wrong_fields_are_refused(self) -> None:
        for text in ("", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8",
                     "a * * * *", "*/0 * * * *", "5-2 * * * *", "1- * * * *", "\u0661 * * * *", "* * 30 2 *",
                     "* * 31 4,6 *", "-1 * * * *", "*/ * * * *", "1//2 * * * *", ", * * * *"):  # fmt: skip
            self.assertRaises(ValueError, Cron.read, text)

    @given(st.text("0123456789*/,- janmofri", max_size=30) | st.text(max_size=30))
    def test_anything_is_read_or_refused(self, text: str) -> None:
        try:
            cron = Cron.read(text)
        except ValueError:
            return
        self.assertTrue(cron.minutes and cron.hours and cron.days and cron.months and cron.weekdays)

    @settings(max_examples=30)
    @given(
        st.integers(0, 59), st.integers(0, 23), st.integers(1, 31), st.sampled_from((1, 3, 5, 7, 8, 10, 12)),
        st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)),
    )  # fmt: skip
    def test_date_comes_within_a_year(self, minute: int, hour: int, day: int, month: int, start: datetime) -> None:
        since = start.replace(tzinfo=UTC)
        found = Cron.read(f"{minute} {hour} {day} {month} *").after(since.timestamp(), utc)
        assert found is not None
        date = datetime.fromtimestamp(found, UTC)
        self.assertEqual((date.minute, date.hour, date.day, date.month), (minute, hour, day, month))
        self.assertTrue(since < date <= since + timedelta(days=367))
