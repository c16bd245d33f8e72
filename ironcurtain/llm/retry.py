"""When to try a request again, and how long to wait before. Randomness and the server's words are arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    Limits of patience.

    :ivar attempts: tries in all, the first included.
    :ivar first_delay: seconds before the second try; each further wait is twice as long.
    :ivar longest_delay: most seconds of a wait that we choose ourselves.
    :ivar longest_asked: most seconds of a wait that the server asks for; where it asks for more, we give up at once.
    """

    attempts: int = 5
    first_delay: float = 1.0
    longest_delay: float = 30.0
    longest_asked: float = 120.0

    def delay(self, failed: int, asked: float | None, random: Callable[[], float]) -> float | None:
        """
        Choose the wait before the next try.

        :param failed: how many tries have failed, at least 1.
        :param asked: seconds that the server asked for, if it did.
        :param random: gives numbers from 0 to 1; spreads our own waits over the upper half of their length, so that
            many clients do not come back at the same moment.
        :returns: seconds, or ``None`` to give up.
        """
        if failed >= self.attempts:
            return None
        if asked is not None:
            return asked if asked <= self.longest_asked else None
        longest = min(self.first_delay * 2.0 ** (failed - 1), self.longest_delay)
        return longest * (1 + random()) / 2


def worth_retrying(status: int) -> bool:
    """:returns: whether a response with this status is a passing failure: 429, or any of the server's own (5xx)."""
    return status == 429 or 500 <= status <= 599


def asked_delay(retry_after: str | None, date: str | None) -> float | None:
    """
    Read a Retry-After header (RFC 9110 section 10.2.3).

    A date in it is compared with the response's own Date header, so that our clock may be wrong.

    :param retry_after: the header's value: seconds, or a date.
    :param date: the Date header's value.
    :returns: seconds, at least 0; ``None`` when nothing usable was said.
    """
    if retry_after is None:
        return None
    value = retry_after.strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value)
    until, now = _moment(value), _moment(date or "")
    return None if until is None or now is None else max(0.0, (until - now).total_seconds())


def _moment(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
