from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import container
from ironcurtain.sandbox.bubblewrap import available, command, inputs, opened, tried
from ironcurtain.sandbox.landlock import implementation as landlock
from ironcurtain.sandbox.spec import Bound, Sandbox
from tests.machine import UID

ACCOUNT = Account(UID, UID) if os.geteuid() == 0 else None


class BoundTests(SynchronousTestCase):
    """Files and directories that have other paths in a sandbox."""

    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.top.chmod(0o755)
        for name in ("project", "more"):
            (self.top / name).mkdir()
            (self.top / name).chmod(0o777)
        (self.top / "project" / "file").write_text("of the project\n")
        (self.top / "other").write_text("another\n")
        self.sandbox = Sandbox(
            bound=(
                Bound(str(self.top / "project"), "/workspace", writable=True),
                Bound(str(self.top / "more"), "/srv/more"),
                Bound(str(self.top / "other"), "/etc/passwd"),
            ),
            cwd="/workspace",
            account=ACCOUNT,
        )

    def run_inside(self, sandbox: Sandbox, script: str) -> str:
        if reason := available(ACCOUNT):
            raise SkipTest(reason)
        with opened(inputs(sandbox)) as given:
            line = command(sandbox, ["sh", "-c", f"exec 2>&1; {script}"], given)
            return subprocess.run(
                line, pass_fds=list(given.values()), capture_output=True, text=True, check=False, timeout=60
            ).stdout

    def test_are_there_under_their_other_paths_only(self) -> None:
        said = self.run_inside(self.sandbox, f"pwd; cat file /etc/passwd; touch made /srv/more/x; ls {self.top}")
        self.assertTrue(said.startswith("/workspace\nof the project\nanother\n"), said)
        self.assertIn("/srv/more/x': Read-only file system", said)
        self.assertIn("No such file or directory", said)
        self.assertTrue((self.top / "project" / "made").exists())
        self.assertEqual((self.top / "more" / "x").exists(), False)

    def test_file_can_replace_one_in_a_directory_that_is_written(self) -> None:
        inner = Bound(str(self.top / "other"), "/workspace/file")
        sandbox = replace(self.sandbox, bound=(*self.sandbox.bound, inner))
        said = self.run_inside(sandbox, "cat file; echo x >file; hostname")
        self.assertTrue(said.startswith("another\n"), said)
        self.assertIn("Read-only file system", said)
        self.assertTrue(said.endswith("ironcurtain\n"), said)
        program = tried(ACCOUNT).program
        assert program is not None
        self.assertEqual(len(program.inputs(sandbox)) > len(program.inputs(self.sandbox)), not program.safe())

    def test_other_kinds_cannot_make_them(self) -> None:
        self.assertIn("its own path", container.inexpressible(self.sandbox) or "")
        self.assertIn("another path", landlock.inexpressible(self.sandbox) or "")

    def test_data_is_limited_only_if_wanted(self) -> None:
        script = "grep 'Max data size' /proc/self/limits"
        limited = self.run_inside(self.sandbox, script)
        free = replace(self.sandbox, limits=replace(self.sandbox.limits, data=False))
        self.assertNotEqual(limited, self.run_inside(free, script))
