"""Programs of our own, started by a process that was root and has become an account which does not reach them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

import ironcurtain
from ironcurtain.process.own_programs import unreached

SCRIPT = """
import sys
sys.path[:0] = sys.argv[1:]
from ironcurtain.process.own_programs import unreached
from ironcurtain.sandbox.bubblewrap_options import holding
from ironcurtain.sandbox.landlock import implementation
from ironcurtain.senses.client import SensesWorker
from ironcurtain.servers.server import become
become(61184, 61184, later=())
print(unreached())
print(implementation.unavailable())
print(SensesWorker().available()["pictures"])
print(holding()[0])
"""


class OwnProgramTests(SynchronousTestCase):
    def setUp(self) -> None:
        if os.geteuid() != 0:
            raise SkipTest("only root can become another account")
        top = Path(tempfile.mkdtemp())  # which only root may enter
        self.addCleanup(shutil.rmtree, top)
        self.closed = top / "closed"
        shutil.copytree(Path(ironcurtain.__file__).parent, self.closed / "ironcurtain")
        self.libraries = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]

    def said(self, python: str) -> list[str]:
        """:returns: what is said in a process with a Python, and a copy of the package that only root reaches."""
        line = [python, "-I", "-c", SCRIPT, str(self.closed), *self.libraries]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_everything_is_reached_by_who_installed_it(self) -> None:
        self.assertIsNone(unreached())

    def test_what_is_not_reached_is_named_with_what_to_do(self) -> None:
        linked = self.closed / "python"
        linked.symlink_to(os.path.realpath(sys.executable))
        for python in {str(linked), os.path.realpath(sys.executable)}:
            found, landlock, pictures, holder = self.said(python)
            self.assertIn("uid 61184 cannot reach /", found)
            self.assertIn("install Python and IronCurtain where every account enters", found)
            if "no Landlock" not in landlock and "of version" not in landlock:
                self.assertEqual(landlock, f"Landlock needs a helper of this Python: {found}")
            self.assertEqual(pictures, found)
            self.assertNotEqual(holder, python, "it would not start")
