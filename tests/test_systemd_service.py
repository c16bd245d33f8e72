"""The printed unit under a real systemd."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.product import Product
from tests.systemd_machine import SystemdMachine, demand

UNIT = "ironcurtain.service"


class ServiceTests(SynchronousTestCase):
    def setUp(self) -> None:
        demand()
        self.product = Product()
        self.addCleanup(self.finish)
        self.machine = SystemdMachine(self.product.environ)
        self.addCleanup(self.machine.close)
        self.assertEqual(self.product.run("init").returncode, 0)
        self.install(UNIT, self.product.run("systemd-unit").stdout)
        self.install(f"{UNIT}.d/here.conf", "[Service]\nEnvironment=IRONCURTAIN_SSH_PORT=0\nRestartSec=0\n")

    def finish(self) -> None:
        self.assertEqual(self.product.close(), [])

    def install(self, name: str, text: str) -> None:
        """Put a file where systemd finds units."""
        self.machine.install(name, text)
        self.do("daemon-reload")

    def do(self, *words: str, status: int = 0) -> None:
        done = self.machine.run("systemctl", *words)
        self.assertEqual(done.returncode, status, (words, done.stderr))

    def show(self, name: str) -> str:
        return self.machine.show(UNIT, name)

    def test_it_serves_when_start_returns(self) -> None:
        self.do("start", UNIT)
        self.assertEqual(self.show("ActiveState"), "active")
        self.assertIn("serves sessions", self.show("StatusText"))
        control = self.product.home / "run" / "daemon.sock"
        self.assertEqual(control.stat().st_mode & 0o777, 0o600)
        self.do("stop", UNIT)
        self.assertEqual((self.show("ActiveState"), self.show("Result")), ("inactive", "success"))
        self.assertFalse(control.exists())

    def test_a_reload_is_done_or_fails_with_its_reason(self) -> None:
        self.do("start", UNIT)
        pid = self.show("MainPID")
        self.do("reload", UNIT)
        file = self.product.home / "config.toml"
        good = file.read_text()
        file.write_text(f"{good}\nnonsense =\n")
        self.do("reload", UNIT, status=1)
        self.assertIn("nothing was reloaded: ", self.show("StatusText"))
        self.assertEqual((self.show("MainPID"), self.show("ActiveState")), (pid, "active"))
        self.do("restart", UNIT, status=1)
        self.machine.until(UNIT, ActiveState="failed", ExecMainStatus="78", NRestarts="0")
        file.write_text(good)
        self.do("start", UNIT)

    def test_it_comes_back_when_it_was_killed(self) -> None:
        self.do("start", UNIT)
        self.do("kill", "--kill-who=main", "--signal=KILL", UNIT)
        self.machine.until(UNIT, ActiveState="active", SubState="running", NRestarts="1")

    def test_it_comes_back_when_it_is_stuck(self) -> None:
        self.install(f"{UNIT}.d/watchdog.conf", "[Service]\nWatchdogSec=10\n")
        self.do("start", UNIT)
        self.do("kill", "--kill-who=main", "--signal=STOP", UNIT)
        self.machine.until(UNIT, ActiveState="active", SubState="running", NRestarts="1")
