"""What systemd hears, over a socket as it makes one."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import time
from pathlib import Path

from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.services.systemd import STATUS_LIMIT, Systemd


class SystemdTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ic-"), "notify")
        self.addCleanup(shutil.rmtree, self.path.parent)

    def listen(self, address: str) -> None:
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.end.close)
        self.end.bind(address)
        self.end.setblocking(False)

    def heard(self) -> list[str]:
        return self.end.recv(4096).decode().split("\n")

    def test_each_message(self) -> None:
        self.listen(str(self.path))
        systemd = Systemd(str(self.path))
        systemd.ready("SSH on port 2222")
        self.assertEqual(self.heard(), ["READY=1", "STATUS=SSH on port 2222"])
        systemd.stopping("bye")
        self.assertEqual(self.heard(), ["STOPPING=1", "STATUS=bye"])
        systemd.alive()
        self.assertEqual(self.heard(), ["WATCHDOG=1"])

    def test_a_reload_says_when_it_began(self) -> None:
        self.listen(str(self.path))
        before = time.monotonic()
        Systemd(str(self.path)).reloading()
        first, second = self.heard()
        name, _, usec = second.partition("=")
        self.assertEqual((first, name), ("RELOADING=1", "MONOTONIC_USEC"))
        self.assertTrue(before - 0.001 <= int(usec) / 1e6 <= time.monotonic(), usec)

    def test_an_abstract_socket(self) -> None:
        name = f"ironcurtain-{secrets.token_hex(8)}"
        self.listen(f"\0{name}")
        Systemd(f"@{name}").alive()
        self.assertEqual(self.heard(), ["WATCHDOG=1"])

    def test_a_status_is_one_short_line(self) -> None:
        self.listen(str(self.path))
        Systemd(str(self.path)).ready("wrong\nREADY=0 " + "x" * 1000)
        first, second = self.heard()
        self.assertEqual(first, "READY=1")
        self.assertTrue(second.startswith("STATUS=wrong READY=0 x"))
        self.assertEqual(len(second), len("STATUS=") + STATUS_LIMIT)

    def test_nobody_asked(self) -> None:
        systemd = Systemd.taken_from({"WATCHDOG_USEC": "1000000"})
        systemd.ready("all is well")
        self.assertEqual((systemd, systemd.watchdog_seconds), (Systemd(watchdog_usec=1_000_000), 0.0))

    def test_nobody_listens_any_more(self) -> None:
        with capturedLogs() as logged:
            Systemd(str(self.path)).stopping("bye")
        self.assertEqual([event["what"] for event in logged], ["STOPPING=1"])

    def test_children_inherit_nothing_of_it(self) -> None:
        environ = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1", "PATH": "/bin"}
        self.assertEqual(Systemd.taken_from(environ), Systemd("/run/x", 30_000_000, 1))
        self.assertEqual(environ, {"PATH": "/bin"})

    def test_the_watchdog_is_fed_at_half_of_its_time(self) -> None:
        for pid in ("", str(os.getpid())):
            systemd = Systemd.taken_from({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": pid})
            self.assertEqual(systemd.watchdog_seconds, 15.0)

    def test_the_watchdog_is_another_process_s_or_makes_no_sense(self) -> None:
        for usec, pid in (("30000000", "1"), ("-1", ""), ("a", ""), ("", ""), ("9" * 30, "")):
            systemd = Systemd.taken_from({"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid})
            self.assertEqual(systemd.watchdog_seconds, 0.0, (usec, pid))
