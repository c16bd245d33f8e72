"""Tests for the server of NATS with which a fleet is tried: the real one, on this machine."""

from __future__ import annotations

import signal
import stat
import subprocess

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.fleet.joining import ServerFiles
from ironcurtain.fleet.trial_server import TrialServer, find_server
from tests.audit.doubles import scratch
from tests.ports import free_port
from tests.product import Command, Product, until, wait_until


class TrialServerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.files = ServerFiles(scratch(self) / "fleet")
        self.files.make(f"127.0.0.1:{free_port()}", ("127.0.0.1",))
        self.files.add("laptop", ("laptop", "key"))
        self.server = TrialServer(find_server(), self.files)

    def test_it_runs_and_its_files_are_closed_to_others(self) -> None:
        self.server.start()
        self.addCleanup(self.server.stop)
        self.assertTrue((self.files.directory / "data").is_dir())
        for path in self.files.directory.rglob("*"):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path)

    def test_port_that_is_in_use_is_said(self) -> None:
        self.server.start()
        self.addCleanup(self.server.stop)
        error = self.assertRaises(Unavailable, TrialServer(find_server(), self.files).start)
        self.assertIn("is in use", str(error))

    def test_what_the_server_says_that_does_not_start_is_shown(self) -> None:
        self.files.configuration.write_text("listen: {")
        self.assertIn("Parse error on line 1", str(self.assertRaises(Unavailable, self.server.start)))


class InitTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.words = ("fleet", "init", "laptop", "--try", "--listen", f"127.0.0.1:{free_port()}")

    def begin(self) -> Command:
        trying = self.product.start(*self.words, stdin=subprocess.DEVNULL)
        until(trying.stdout, "until Ctrl-C")
        return trying

    def test_it_runs_until_ctrl_c_and_again(self) -> None:
        self.assertEqual(self.product.run(*self.words[:-1], "0.0.0.0:4222").returncode, 64)
        for _ in range(2):
            trying = self.begin()
            trying.send_signal(signal.SIGINT)
            self.assertEqual((trying.communicate()[1], trying.returncode), ("", 0))

    def test_host_that_is_added_is_let_in_without_more(self) -> None:
        trying = self.begin()
        self.assertEqual(self.product.run("fleet", "add", "build-3").returncode, 0)
        log = self.product.home / "fleet" / "nats-server.log"
        wait_until(lambda: "Reloaded server configuration" in log.read_text())
        trying.send_signal(signal.SIGTERM)
        self.assertEqual(trying.wait(), 143)
