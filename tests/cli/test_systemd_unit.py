from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.systemd_unit import quoted, unit
from tests.product import LIMIT, Product
from tests.programs import program

PROGRAMS = Path(sys.executable).parent


class UnitTests(SynchronousTestCase):
    """What systemd itself says of the unit."""

    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def verified(self, text: str) -> tuple[int, str]:
        """:returns: the status of systemd-analyze, and what it said."""
        program("systemd-analyze")
        path = self.directory / "ironcurtain.service"
        path.write_text(text)
        # Verifying starts nothing: it reads the unit and looks whether the programs in it can be run.
        done = subprocess.run(
            ["systemd-analyze", "--user", "--man=no", "verify", str(path)],
            env={"PATH": os.environ["PATH"], "HOME": str(self.directory), "XDG_RUNTIME_DIR": str(self.directory)},
            text=True, capture_output=True, timeout=LIMIT, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def test_it_is_one(self) -> None:
        for system in (False, True):
            text = unit(PROGRAMS, {"IRONCURTAIN_HOME": "/home/ada/.ironcurtain"}, system=system)
            self.assertEqual(self.verified(text), (0, ""))

    def test_names_with_a_meaning_for_systemd(self) -> None:
        programs = self.directory / "programs %h here"
        programs.mkdir()
        for name in ("twistd", "ironcurtain"):
            (programs / name).write_text("#!/bin/sh\n")
            (programs / name).chmod(0o700)
        text = unit(programs, {"IRONCURTAIN_HOME": 'x y"%$\\ \n'}, system=False)
        self.assertEqual(self.verified(text), (0, ""))
        (programs / "twistd").unlink()
        status, said = self.verified(text)
        self.assertNotEqual(status, 0)
        self.assertIn("twistd is not executable", said)

    def test_what_is_quoted(self) -> None:
        self.assertEqual(quoted('A=x y"%$\\\n'), '"A=x y\\"%%$\\\\\\n"')

    def test_one_for_a_user_and_one_for_the_system(self) -> None:
        user, system = (unit(PROGRAMS, {}, system=system) for system in (False, True))
        self.assertIn("WantedBy=default.target", user)
        self.assertNotIn("User=", user)
        self.assertIn("WantedBy=multi-user.target", system)
        self.assertIn("User=root", system)
        self.assertLess(system.index("After="), system.index("[Service]"))


class CommandTests(SynchronousTestCase):
    """What the command prints is for this installation, and the programs that it names run."""

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(self.product.close)

    def test_it_is_for_here(self) -> None:
        self.product.environ["DOCKER_HOST"] = "unix:///run/user/1000/docker.sock"
        done = self.product.run("systemd-unit")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f'Environment="IRONCURTAIN_HOME={self.product.home}"', done.stdout)
        self.assertIn('Environment="DOCKER_HOST=unix:///run/user/1000/docker.sock"', done.stdout)
        for line, words in (("ExecStart", ["--help"]), ("ExecReload", ["--help"])):
            command = re.search(rf'^{line}="(.*?)" (.*)$', done.stdout, re.MULTILINE)
            assert command is not None
            ran = subprocess.run(
                [command[1], *command[2].split(), *words], env=self.product.environ, cwd=self.product.person,
                capture_output=True, timeout=LIMIT, check=False,
            )  # fmt: skip
            self.assertEqual(ran.returncode, 0, ran.stderr)
