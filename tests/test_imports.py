"""Every module can be imported, which other versions of Python may refuse: modules go, and syntax is warned of."""

from __future__ import annotations

import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from tests.test_rules import module_name, modules

PROGRAM = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"


class ImportTests(SynchronousTestCase):
    def test_every_module_is_imported_without_a_warning(self) -> None:
        names = [module_name(path) for path in modules() if path.name != "__main__.py"]
        self.assertGreater(len(names), 800)
        done = subprocess.run(
            [sys.executable, "-I", "-W", "error", "-c", PROGRAM, *names], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
