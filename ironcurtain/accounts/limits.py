"""Accounts that have reached a limit at their provider, as the sessions of this process have learnt it."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class AccountLimits:
    """
    Until when which accounts cannot be used.

    :param now: a monotonic clock, in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ends: dict[str, float] = {}

    def reached(self, account: str, seconds: float) -> None:
        """
        A provider refused a request.

        :param account: in words, as :attr:`~ironcurtain.accounts.payers.Payer.words` has it.
        :param seconds: until the limit ends, as the provider said last.
        """
        self._ends[account] = self._now() + seconds

    def answered(self, account: str) -> None:
        """A provider answered a request: there is no limit any more."""
        self._ends.pop(account, None)

    def left(self, accounts: Iterable[str]) -> float:
        """:returns: the seconds until all of these accounts can be used; 0: now."""
        return max([0.0, *(self._ends[account] - self._now() for account in accounts if account in self._ends)])
