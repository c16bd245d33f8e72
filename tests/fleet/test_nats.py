"""Tests for which servers of NATS are used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.fleet.nats import TooOld, require_version


class VersionTests(SynchronousTestCase):
    def test_server_whose_updates_are_not_safe_is_refused_by_its_version(self) -> None:
        for major, minor, used in ((2, 9, False), (2, 10, False), (1, 99, False), (2, 11, True), (3, 0, True)):
            client: Any = SimpleNamespace(connected_server_version=SimpleNamespace(major=major, minor=minor))
            if used:
                require_version(client)
                continue
            error = self.assertRaises(TooOld, require_version, client)
            self.assertIn(f"nats-server {major}.{minor} is too old", str(error))
            self.assertIn("at least 2.11", str(error))
