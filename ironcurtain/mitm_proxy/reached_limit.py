"""When an account that has reached a limit can be used again, as its provider says it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ironcurtain.http.fields import Fields
from ironcurtain.llm.failures import asked_delay

BODY_LIMIT: Final = 64 * 1024
"""Maximum size in bytes of an error that is read; usual ones have less than 2 KiB."""

LONGEST: Final = 32 * 86_400.0
"""Later ends, in seconds from now, are not believed: limits are by month at most."""

_EPOCH_HEADERS: Final = ("anthropic-ratelimit-unified-reset",)
_DELAY: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")
"""A duration in JSON of Google's APIs (google.protobuf.Duration)."""


class ReachedLimit:
    """
    Reads the response to a request that was refused because of a limit (429).

    :param fields: its headers.
    """

    def __init__(self, fields: Fields) -> None:
        self._fields: dict[str, str] = dict(fields)
        self._body = b""

    def feed(self, data: bytes) -> None:
        """Process the next bytes of the body."""
        self._body += data[: BODY_LIMIT - len(self._body)]

    def seconds(self, now: float) -> float | None:
        """
        :param now: seconds since the epoch.
        :returns: after how many seconds requests may be made again; ``None`` if the provider does not say.
        """
        found = [*self._in_body(now), *self._in_headers(now)]
        return next((wait for wait in found if 0 < wait <= LONGEST), None)

    def _in_headers(self, now: float) -> list[float]:
        moments = [_number(self._fields.get(name, "")) for name in _EPOCH_HEADERS]
        asked = asked_delay(self._fields.get("retry-after"), self._fields.get("date"))
        return [moment - now for moment in moments if moment is not None] + ([] if asked is None else [asked])

    def _in_body(self, now: float) -> list[float]:
        try:
            body: Any = msgspec.json.decode(self._body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return []
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict):
            return []
        found = []
        if (left := _number(error.get("resets_in_seconds"))) is not None:  # ChatGPT
            found.append(left)
        if (moment := _number(error.get("resets_at"))) is not None:
            found.append(moment - now)
        details = error.get("details")
        for detail in details if isinstance(details, list) else ():  # Google: RetryInfo
            text = detail.get("retryDelay") if isinstance(detail, dict) else None
            if isinstance(text, str) and (delay := _DELAY.fullmatch(text)):
                found.append(float(delay[1]))
        return found


def wait_words(seconds: float, now: float) -> str:
    """
    :param now: seconds since the epoch.
    :returns: until when, and how long that is, for people: "until 14:05 UTC (2 h 10 min)".
    """
    end = datetime.fromtimestamp(now + seconds, UTC)
    form = "%H:%M UTC" if seconds < 86_400 / 2 else "%Y-%m-%d %H:%M UTC"
    minutes = max(1, round(seconds / 60))
    days, hours = minutes // 1440, minutes % 1440 // 60
    parts = [f"{days} d"] if days else []
    parts += [f"{hours} h"] if hours else []
    parts += [f"{minutes % 60} min"] if minutes % 60 and not days else []
    return f"until {end.strftime(form)} ({' '.join(parts)})"


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,9})?", value) else None
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if usable else None
