"""Commands that are forked, as most tests run them, do the same as those that are started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.commands import ForkServer
from tests.product import LIMIT, Product


class ForkServerTests(SynchronousTestCase):
    def test_forked_command_ends_like_a_started_one(self) -> None:
        product = Product()
        self.addCleanup(lambda: self.assertEqual(product.close(), []))
        script = product.script({"text": "All done."})
        for words, given in (
            (("sessions",), None),
            (("nonsense",), None),
            (("start", "--backend", script), "Read it"),
            (("start", "--backend", script), "x" * 100_000),  # more than a pipe holds
            (("loop", "-n", "1", "--", "sh", "-c", "kill -9 $PPID"), None),
        ):
            (product.project / "PROMPT.md").write_text("Go on.")
            forked = product.run(*words, stdin=given)
            started = subprocess.run(
                product.command(*words), input=given or "", env=product.environ, cwd=product.project,
                text=True, capture_output=True, timeout=LIMIT, check=False,
            )  # fmt: skip
            self.assertEqual((forked.returncode, forked.stdout), (started.returncode, started.stdout), forked.stderr)

    def test_command_is_started_where_that_makes_a_difference(self) -> None:
        environ = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        server = ForkServer(environ)
        self.addCleanup(server.end)
        here = Path(sys.executable).parent
        started: tuple[tuple[str, str, dict[str, str]], ...] = (
            ("ironcurtain", "prove", {}),
            ("ironcurtain", "sessions", {"LD_PRELOAD": "shift.so"}),
            ("ironcurtain", "sessions", {"LC_ALL": "C"}),
            ("python", "sessions", {}),
        )
        for program, word, more in started:
            self.assertFalse(server.can_run([str(here / program), word], {**environ, **more}), (program, word, more))
        command = [str(here / "ironcurtain"), "sessions"]
        self.assertTrue(server.can_run(command, {**environ, "IRONCURTAIN_RUN_AS": "0"}))
        self.patch(sys, "executable", "/usr/bin/another-python")
        self.assertFalse(server.can_run(command, environ))
