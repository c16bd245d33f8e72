"""When commands look for garbage."""

from __future__ import annotations

import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

PROGRAM = """
import gc, ironcurtain.cli
before = gc.get_threshold()[0], gc.get_freeze_count()
kept = [[] for _ in range(before[0] + 1000)]
print(before[0] > 120_000, before[1], gc.get_threshold()[0], gc.get_freeze_count() > 100_000)
"""


class GarbageTests(SynchronousTestCase):
    def test_start_looks_for_none_and_what_survives_the_first_look_is_not_looked_at_again(self) -> None:
        done = subprocess.run([sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.split(), ["True", "0", "20000", "True"])
