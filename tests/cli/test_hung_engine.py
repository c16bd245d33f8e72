"""A Docker Engine that accepts connections and never answers."""

from __future__ import annotations

import contextlib
import os
import socket

from tests.cli.cases import ProductCase
from tests.product import until

# Asked for, since the program may be installed here.
IN_A_CONTAINER = ("start", "--agent", "claude-code", "--sandbox", "container", "do it")


class HungEngineTests(ProductCase):
    def setUp(self) -> None:
        super().setUp()
        path = self.product.person / "docker.sock"
        self.hung = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.hung.close)
        self.hung.bind(str(path))
        self.hung.listen(64)
        self.product.environ |= {"DOCKER_HOST": f"unix://{path}", "ANTHROPIC_API_KEY": "sk-ant-api03-of-nobody"}
        if os.geteuid() == 0:
            self.product.environ["IRONCURTAIN_RUN_AS"] = "4242"

    def test_it_is_said_that_it_is_waited_for_and_that_it_is_silent(self) -> None:
        started = [(self.product.start(*words), status) for words, status in ((IN_A_CONTAINER, 69), (("doctor",), 0))]
        for process, status in started:
            until(process.stderr, "waiting for the Docker Engine at unix:///")
            out, said = process.communicate()
            self.assertEqual(process.returncode, status, said)
            self.assertIn("silent for 10 seconds", out + said)
            self.assertNotIn("Traceback", said)
        self.hung.setblocking(False)
        tried = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self.hung.accept()[0].close()
                tried += 1
        self.assertLessEqual(tried, 2 * len(started), "those seconds are waited for again and again")
