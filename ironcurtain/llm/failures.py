"""Explain failed requests to a provider, and decide when to retry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec
from twisted.internet.defer import CancelledError

from ironcurtain.http.failures import explain, is_cancelled
from ironcurtain.llm.model import ModelError


def network_error(error: Exception, host: str, ca_file: str = "ca_file in the provider's settings") -> Exception:
    """
    Convert an exception of Twisted to one for the provider's caller.

    :param host: the server.
    :param ca_file: the setting for further certificate authorities, in words.
    :returns: a :class:`ModelError`; a ``CancelledError`` if the request was cancelled; unchanged if it is unrelated to
        the network.
    """
    if is_cancelled(error):
        return CancelledError()
    failure = explain(error, host, setting="base_url", ca_file=ca_file)
    return error if failure is None else ModelError("network", failure.message, retryable=not failure.lasting)


class RetryPolicy(msgspec.Struct, frozen=True):
    """
    Limits of retries.

    :ivar attempts: maximum number of attempts, including the first.
    :ivar first_delay: seconds before the second attempt; each further delay is doubled.
    :ivar longest_delay: maximum seconds of a delay that the client chooses.
    :ivar longest_asked: maximum seconds of a delay that the server requests; if it requests more, the request fails at
        once.
    """

    attempts: int = 5
    first_delay: float = 1.0
    longest_delay: float = 30.0
    longest_asked: float = 120.0

    def delay(self, failed: int, asked: float | None, random: Callable[[], float]) -> float | None:
        """
        Choose the delay before the next attempt.

        :param failed: number of failed attempts, at least 1.
        :param asked: seconds that the server requested, if any.
        :param random: returns numbers from 0 to 1. It spreads delays over the upper half of their length, so that many
            clients do not retry at the same moment.
        :returns: seconds, or ``None`` to give up.
        """
        if failed >= self.attempts:
            return None
        if asked is not None:
            return asked if asked <= self.longest_asked else None
        longest = min(self.first_delay * 2.0 ** (failed - 1), self.longest_delay)
        return longest * (1 + random()) / 2


def asked_delay(retry_after: str | None, date: str | None) -> float | None:
    """
    Parse a Retry-After header (RFC 9110 section 10.2.3).

    A date in it is compared with the response's own Date header, so that this machine's clock may be wrong.

    :param retry_after: the header's value: seconds, or a date.
    :param date: the Date header's value.
    :returns: seconds, at least 0; ``None`` if there is no valid value.
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
