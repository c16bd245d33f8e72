"""The five fields of cron (crontab(5)), in local time."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

LONGEST_SEARCH = 9 * 366 * 86400
"""Seconds after which no time is searched any more: 29 February can be eight years away."""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

LocalTime = Callable[[float], time.struct_time]
"""As ``time.localtime``."""


class Cron(msgspec.Struct, frozen=True):
    """
    Minutes, hours, days of the month, months and days of the week (Sunday is 0) at which something is due.

    :param any_day: whether a day has to match both kinds of days, because one of them is ``*``; else either.
    :param hourly: whether the hours are ``*`` or ``*/N``, so that an hour that comes twice counts twice.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    hourly: bool

    @classmethod
    def read(cls, text: str) -> Cron:
        """
        :param text: such as ``*/5 9-17 * * mon-fri``.
        :raises ValueError: it is something else, or no date matches it. The message says what is wrong.
        """
        fields = text.split()
        if len(fields) != 5:
            raise ValueError("must have five fields: minute, hour, day of the month, month, day of the week")
        minute, hour, day, month, weekday = (field.lower() for field in fields)
        made = cls(
            _field(minute, 0, 59, "minute"),
            _field(hour, 0, 23, "hour"),
            _field(day, 1, 31, "day of the month"),
            _field(month, 1, 12, "month", _MONTHS),
            frozenset(number % 7 for number in _field(weekday, 0, 7, "day of the week", _DAYS)),
            any_day=day.startswith("*") or weekday.startswith("*"),
            hourly=hour.startswith("*"),
        )
        # Without days of the week, one of the months needs one of the days.
        if weekday.startswith("*") and min(made.days) > max(map(_longest, made.months)):
            raise ValueError("no such month has such a day")
        return made

    def after(self, moment: float, local: LocalTime = time.localtime) -> float | None:
        """
        :param moment: seconds since the epoch.
        :param local: converts them to local time. An hour that daylight saving leaves out does not come; one that comes
            twice counts once, unless the hours are ``*``.
        :returns: the next time after it, in seconds since the epoch; ``None``: there is none within nine years.
        """
        candidate = (int(moment) // 60 + 1) * 60
        while candidate <= moment + LONGEST_SEARCH:
            found = local(candidate)
            if not self._is_day(found) or found.tm_hour not in self.hours or self._is_repeated(candidate, local):
                candidate += (60 - found.tm_min) * 60
            elif found.tm_min not in self.minutes:
                candidate += 60
            else:
                return float(candidate)
        return None

    def _is_day(self, found: time.struct_time) -> bool:
        if found.tm_mon not in self.months:
            return False
        day, weekday = found.tm_mday in self.days, (found.tm_wday + 1) % 7 in self.weekdays
        return day and weekday if self.any_day else day or weekday

    def _is_repeated(self, candidate: int, local: LocalTime) -> bool:
        """:returns: whether the clock was set back, and has shown this hour of the day before."""
        if self.hourly:
            return False
        now, before = local(candidate), local(candidate - 3600)
        return (before.tm_mday, before.tm_hour) == (now.tm_mday, now.tm_hour)


def _longest(month: int) -> int:
    return 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31


def _field(text: str, least: int, most: int, what: str, names: list[str] | None = None) -> frozenset[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        if slash and not (step.isascii() and step.isdigit() and 1 <= int(step[:4]) <= most):
            raise ValueError(f"{what} {part!r}: after / comes a number from 1 to {most}")
        if span == "*":
            first, last = least, most
        else:
            begin, dash, end = span.partition("-")
            first = _number(begin, part, least, most, what, names)
            last = _number(end, part, least, most, what, names) if dash else most if slash else first
        if first > last:
            raise ValueError(f"{what} {part!r}: the first number must not be greater than the last one")
        numbers.update(range(first, last + 1, int(step) if slash else 1))
    return frozenset(numbers)


def _number(text: str, part: str, least: int, most: int, what: str, names: list[str] | None) -> int:
    if names is not None and text in names:
        return names.index(text) + least
    if not (text.isascii() and text.isdigit() and len(text) <= 2 and least <= int(text) <= most):
        allowed = f"a number from {least} to {most}" + (f", or {names[0]} to {names[-1]}" if names else "")
        raise ValueError(f"{what} {part!r}: must be {allowed}")
    return int(text)
