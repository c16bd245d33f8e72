"""``ironcurtain demo``, as people run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.cases import ProductCase


class DemoTests(ProductCase):
    def test_yes_and_no_play_it_to_the_end(self) -> None:
        self.product.environ["TMPDIR"] = str(self.product.person)
        # By a path, which may be long, it would name its own commands.
        self.product.environ["PATH"] = f"{Path(sys.executable).parent}:{self.product.environ['PATH']}"
        for word, decision in (("--yes", "approved"), ("--no", "denied")):
            done = self.product.run("demo", word)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("I mended the typo", done.stdout)
            introduction, _, rest = done.stderr.partition("Step 1")
            introduction = introduction.partition("MCP servers run as")[0]  # one line, for root
            lines = [*introduction.splitlines(), *rest.partition("The record of all")[2].splitlines()]
            self.assertEqual([line for line in lines if line[80:] and " " in line.strip()], [])
            self.assertIn(f"{decision:<9} escalation 1", done.stderr)
            self.assertIn("structural-protected-path", done.stderr)
            self.assertIn("intact", done.stderr)
            self.assertIn('print("Hello, world")', done.stderr)

    def test_command_that_shows_the_record_works_in_a_shell(self) -> None:
        directory = self.product.person / "Größe & 日本語"
        directory.mkdir()
        self.product.environ["TMPDIR"] = str(directory)
        done = self.product.run("demo", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        command = re.findall(r"^  IRONCURTAIN_HOME=.*\\\n.*$", done.stderr, re.MULTILINE)
        shown = subprocess.run(
            ["/bin/sh", "-c", *command],
            env=self.product.environ, cwd=self.product.project, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertIn("filesystem.edit_file", shown.stdout, shown.stderr)
