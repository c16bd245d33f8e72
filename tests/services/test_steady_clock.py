"""Tests for the clock of the reactor."""

from __future__ import annotations

import time
from typing import Any

from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.internet.base import ReactorBase
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.services.steady_clock import CLOCK, use_steady_clock


class SteadyClockTests(SynchronousTestCase):
    def test_delayed_calls_are_due_by_a_clock_that_nobody_sets(self) -> None:
        made: Any = AsyncioSelectorReactor.__new__(AsyncioSelectorReactor)
        made.seconds = lambda: 0.0
        use_steady_clock(made)
        self.assertLess(abs(made.seconds() - time.clock_gettime(CLOCK)), 60.0)
        self.assertGreater(abs(ReactorBase.seconds() - made.seconds()), 86_400.0)

    def test_reactor_of_the_tests_has_it_as_that_of_the_product(self) -> None:
        from twisted.internet import reactor

        self.assertLess(abs(reactor.seconds() - time.clock_gettime(CLOCK)), 60.0)
