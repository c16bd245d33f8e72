"""Each test sees the warnings that an earlier one has already seen (``conftest.py``)."""

from __future__ import annotations

import unittest
import warnings

from twisted.trial.unittest import SynchronousTestCase


class WarningTests(SynchronousTestCase):
    def test_warning_comes_in_every_test(self) -> None:
        class Warned(SynchronousTestCase):
            def runTest(self) -> None:
                warnings.warn("that is old", stacklevel=1)
                found.extend(warning["message"] for warning in self.flushWarnings([self.runTest]))

        found = list[object]()
        for count in (1, 2, 3):
            Warned().run(unittest.TestResult())
            self.assertEqual(found, ["that is old"] * count)
