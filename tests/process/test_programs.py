"""Where programs are found."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound
from ironcurtain.process.programs import find_program

ENVIRON = {"PATH": os.environ.get("PATH", os.defpath)}


class ProgramTests(SynchronousTestCase):
    """By path, and by name."""

    def test_in_the_path_and_by_name(self) -> None:
        found = find_program("sh", ENVIRON, "/")
        self.assertTrue(os.access(found, os.X_OK))
        self.assertEqual(
            find_program(os.path.basename(found), {"PATH": f"/nowhere:{os.path.dirname(found)}"}, "/"), found
        )
        self.assertEqual(find_program(f".{found}", {}, "/"), f"/.{found}")
        for name, directory in (("no-such-command", "/"), ("/dev/null", "/"), ("/etc", "/"), ("sh", "/nowhere")):
            self.assertRaises(NotFound, find_program, name, ENVIRON, directory)
