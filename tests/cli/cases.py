"""Tests of the installed product: what each of them begins with, and what must not be left."""

from __future__ import annotations

import os
import signal
import socket
import time

from twisted.trial.unittest import SynchronousTestCase

from tests.product import Product


class ProductCase(SynchronousTestCase):
    """Gives each test a product, and fails it if processes are left over."""

    def setUp(self) -> None:
        self.product = Product()
        (self.product.person / "secret.txt").write_text("the moon is far")
        self.addCleanup(self.finish)

    def finish(self) -> None:
        self.assertEqual(self.product.close(), [])


class DaemonCase(ProductCase):
    """With a daemon, which has to end as it should."""

    def setUp(self) -> None:
        super().setUp()
        done = self.product.twistd("ironcurtain")
        self.assertEqual(done.returncode, 0, done.stderr)
        with socket.socket(socket.AF_UNIX) as asking:  # it listens when twistd returns
            asking.connect(str(self.product.home / "run" / "daemon.sock"))
        self.pid = int((self.product.home / "twistd.pid").read_text())
        self.addCleanup(self.end)
        self.serving()

    def end(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        _, status = os.waitpid(self.pid, 0)
        self.assertEqual(os.WTERMSIG(status), signal.SIGTERM)  # twistd ends by the signal, after shutting down
        self.assertIn("Server Shut Down", (self.product.home / "logs" / "ironcurtain.log").read_text())
        self.assertEqual(list((self.product.home / "run").iterdir()), [])

    def serving(self) -> None:
        """Wait until the daemon answers; from then on it handles signals, too."""
        with socket.socket(socket.AF_UNIX) as asking:
            while asking.connect_ex(str(self.product.home / "run" / "daemon.sock")):
                time.sleep(0.02)
            asking.sendall(b"GET /v1/sessions HTTP/1.0\r\n\r\n")
            self.assertTrue(asking.recv(1))
