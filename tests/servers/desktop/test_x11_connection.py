"""Displays that hang, or end in the middle."""

from __future__ import annotations

import signal

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.desktop.model import DesktopError, Unsupported
from ironcurtain.servers.desktop.x11_connection import opened
from tests.desktop.desktops import XDesktop

PATIENCE = 3.0
"""Seconds, far more than an answer takes."""


class OpenedTests(SynchronousTestCase):
    def test_display_that_hangs_or_ends_is_given_up(self) -> None:
        desktop = XDesktop()
        self.addCleanup(desktop.close)
        name, display = desktop.environ["DISPLAY"], desktop.display
        with self.assertRaisesRegex(DesktopError, "does not answer"), opened(name, PATIENCE) as connection:
            display.send_signal(signal.SIGSTOP)
            connection.screen().root.get_geometry()
        with self.assertRaisesRegex(Unsupported, "does not answer within 0.3 seconds"), opened(name, 0.3):
            pass
        display.send_signal(signal.SIGCONT)
        with self.assertRaisesRegex(DesktopError, "was lost"), opened(name) as connection:
            display.kill()
            display.wait()
            connection.screen().root.get_geometry()
