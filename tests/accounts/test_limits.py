"""Tests for what is known of accounts that have reached a limit."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.limits import AccountLimits
from ironcurtain.container_agent.paying import note_limit
from ironcurtain.mitm_proxy.recording import ProxiedResponse


class AccountLimitsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.limits = AccountLimits(self.clock.seconds)

    def test_account_cannot_be_used_until_its_limit_ends(self) -> None:
        self.limits.reached("one", 60.0)
        self.assertEqual([self.limits.left(names) for names in (["one"], ["two"], [], ["two", "one"])], [60, 0, 0, 60])
        self.clock.advance(61.0)
        self.assertEqual(self.limits.left(["one"]), 0.0)

    def test_answer_shows_that_there_is_no_limit_any_more(self) -> None:
        def response(status: int, wait: float | None) -> ProxiedResponse:
            known: dict[str, Any] = dict.fromkeys(ProxiedResponse._fields)
            return ProxiedResponse(**{**known, "status": status, "wait": wait})

        for status, wait, left in ((429, 90.0, 90.0), (500, None, 90.0), (0, None, 90.0), (200, None, 0.0)):
            note_limit(self.limits, "one", response(status, wait))
            self.assertEqual(self.limits.left(["one"]), left, status)
