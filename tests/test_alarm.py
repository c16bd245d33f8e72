"""A timer that is a descriptor."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from time import monotonic

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.alarm import Alarm

PATIENCE = 60.0


def rings(alarm: Alarm, seconds: float) -> bool:
    """:returns: whether it can be read by then."""
    waits = select.poll()
    waits.register(alarm.descriptor, select.POLLIN)
    return bool(waits.poll(seconds * 1000))


class AlarmTests(SynchronousTestCase):
    """The kernel's own."""

    def setUp(self) -> None:
        self.alarm = Alarm()
        self.addCleanup(self.alarm.close)

    def test_it_rings_not_before_its_time(self) -> None:
        at = monotonic() + 0.05
        self.alarm.by(at)
        self.assertTrue(rings(self.alarm, PATIENCE))
        self.assertGreaterEqual(monotonic(), at)

    def test_what_has_passed_rings_at_once(self) -> None:
        for at in (monotonic() - 1, 0.0, -5.0):
            self.alarm.by(at)
            self.assertTrue(rings(self.alarm, PATIENCE))
            self.alarm.rang()

    def test_the_earliest_time_counts(self) -> None:
        soon = monotonic() + 0.01
        for at in (soon + 1000, soon, soon + 2000):
            self.alarm.by(at)
        self.assertTrue(rings(self.alarm, PATIENCE))

    def test_it_rings_once(self) -> None:
        self.assertFalse(rings(self.alarm, 0))
        self.alarm.by(monotonic())
        self.assertTrue(rings(self.alarm, PATIENCE))
        self.alarm.rang()
        self.assertFalse(rings(self.alarm, 0))

    def test_no_child_has_it(self) -> None:
        self.assertFalse(os.get_inheritable(self.alarm.descriptor))

    def test_too_many_descriptors(self) -> None:
        program = (
            "import resource; from ironcurtain.alarm import Alarm\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
            "try: Alarm()\n"
            "except OSError as e: print(e.strerror)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.stdout, "Too many open files\n", done.stderr)
