"""What is said, and what ends the tests, where a program is missing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from tests import programs

TOP = Path(__file__).resolve().parents[1]
NEEDS_TWO = """
import unittest
from tests.programs import program

class Tests(unittest.TestCase):
    def test_one(self):
        program("tmux")

    def test_other(self):
        program("tmux")

    def test_nothing(self):
        pass
"""


class ProgramTestCase(SynchronousTestCase):
    """A machine in our directory, and the only programs there are."""

    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.place)
        self.bin = self.place / "bin"
        self.bin.mkdir()

    def write(self, path: Path, text: str) -> Path:
        path.write_text(text)
        path.chmod(0o755)
        return path

    def as_root(self) -> None:
        """Let the module take itself for root."""
        self.patch(os, "geteuid", lambda: 0)
        self.patch(os, "environ", {"PATH": str(self.bin)})
        self.patch(programs, "POLICY", str(self.place / "policy-rc.d"))
        self.patch(programs, "UNITS", str(self.place / "units"))


class ProgramTests(ProgramTestCase):
    def run_it(self, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the module with a command, where no programs are but those in our directory."""
        given = {"PATH": str(self.bin), "HOME": str(self.place), **environ}
        line = [sys.executable, str(TOP / "tests" / "programs.py"), *command]
        return subprocess.run(line, cwd=TOP, env=given, capture_output=True, text=True, timeout=120, check=False)

    def test_one_that_is_not_installed_skips_with_its_package(self) -> None:
        self.patch(os, "environ", {"PATH": str(self.bin)})
        wanted = self.write(self.bin / "tmux", "#!/bin/sh\n")
        self.assertEqual(programs.program("tmux"), str(wanted))
        wanted.unlink()
        skipped = self.assertRaises(SkipTest, programs.program, "tmux")
        self.assertIn("tmux is not installed (Debian and Ubuntu: apt install tmux)", str(skipped))

    def test_the_summary_counts_tests_by_reason_and_ends_with_what_to_install(self) -> None:
        reason = "node is not installed (Debian and Ubuntu: apt install nodejs)"
        said = programs.summary({reason: ["a", "b", "a"], "only root can": ["c"]})
        self.assertEqual(said[1:3], [f"     2 tests: {reason}", "     1 test: only root can"])
        self.assertEqual(said[3], "To run those without a program on Debian or Ubuntu: sudo apt install nodejs")
        self.assertEqual(programs.summary({}), [])

    def test_the_last_lines_are_about_all_runs_of_pytest(self) -> None:
        tests = self.write(self.place / "test_two.py", NEEDS_TWO)
        line = f"-m pytest -q -p no:cacheprovider -p tests.conftest --rootdir {self.place} {tests}"
        runs = self.write(self.place / "runs", f"#!/bin/sh\nfor number in 1 2; do {sys.executable} {line}; done\n")
        done = self.run_it(str(runs), PYTHONPATH=str(TOP))
        self.assertEqual((done.returncode, done.stdout.count("1 passed, 2 skipped")), (0, 2), done.stdout + done.stderr)
        last = done.stdout.splitlines()[-3:]
        self.assertEqual(last[1].split(":")[0].strip(), "2 tests", last)
        self.assertIn("sudo apt install tmux", last[2])

    def test_a_missing_program_fails_under_ci(self) -> None:
        tests = self.write(self.place / "test_two.py", NEEDS_TWO)
        words = f"-q -p no:cacheprovider -p tests.conftest --rootdir {self.place} {tests}".split()
        done = self.run_it(sys.executable, "-m", "pytest", *words, PYTHONPATH=str(TOP), CI="1")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("skipped, which CI does not allow", done.stdout)

    def test_its_status_is_the_commands(self) -> None:
        self.assertEqual(self.run_it("/bin/sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.run_it("/bin/sh", "-c", "kill -9 $$").returncode, 128 + 9)

    def test_termination_is_passed_on(self) -> None:
        line = [sys.executable, str(TOP / "tests" / "programs.py")]
        script = "trap 'echo ended; exit 3' TERM; echo ready; while :; do /bin/sleep 0.1; done"
        process = subprocess.Popen(
            [*line, "/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True, env={"PATH": str(self.bin)}
        )
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.communicate(timeout=60)[0], process.returncode), ("ended\n", 3))

    def test_root_installs_what_is_missing_and_says_so_before(self) -> None:
        self.as_root()
        asked = self.place / "asked"
        self.write(self.bin / programs.APT[0], f'#!/bin/sh\necho "$@" >>{asked}\n')
        self.write(self.bin / "apt-cache", '#!/bin/sh\ntest "$2" != cargo-web || echo Package: cargo-web\n')
        programs.install()
        update, install = asked.read_text().splitlines()
        self.assertTrue(update.endswith(" update"))
        self.assertIn(" tmux", install)
        self.assertIn(" cargo-web ", install)

    def test_nobody_else_installs_anything(self) -> None:
        self.patch(os, "geteuid", lambda: 4242)
        self.write(self.bin / programs.APT[0], f"#!/bin/sh\necho asked >{self.place}/asked\n")
        self.patch(os, "environ", {"PATH": str(self.bin)})
        programs.install()
        self.assertFalse((self.place / "asked").exists())


INSTALLS = """#!/bin/sh
case "$*" in *update) exit 0;; esac
for unit in squid.service old.service; do
    {place}/policy-rc.d $unit start
    echo "$unit $?" >>{place}/started
done
/bin/ln -s /lib/systemd/system/squid.service {place}/units/multi-user.target.wants/squid.service
/bin/ln -s /lib/systemd/system/docker.socket {place}/units/sockets.target.wants/docker.socket
exit {status}
"""
"""What packages do: they ask the policy before they start a service, and enable it for the next start."""

SYSTEMCTL = """#!/bin/sh
case "$*" in
*"is-active old.service") ;;
*is-active*) exit 3 ;;
*) echo "$@" >>{place}/asked ;;
esac
"""


class ServiceTests(ProgramTestCase):
    """Installed programs are not started as services of the machine."""

    def setUp(self) -> None:
        super().setUp()
        self.as_root()
        for name in ("multi-user", "sockets"):
            (self.place / "units" / f"{name}.target.wants").mkdir(parents=True)
        (self.place / "units/multi-user.target.wants/old.service").symlink_to("/lib/systemd/system/old.service")
        self.policy = self.place / "policy-rc.d"
        self.write(self.bin / "systemctl", SYSTEMCTL.format(place=self.place))

    def install(self, status: int = 0) -> list[str]:
        """:returns: which services the policy let start (0) or not, as the packages of a new installation ask."""
        self.write(self.bin / programs.APT[0], INSTALLS.format(place=self.place, status=status))
        programs.install()
        return (self.place / "started").read_text().splitlines()

    def test_only_services_that_run_already_are_started(self) -> None:
        self.assertEqual(self.install(), ["squid.service 101", "old.service 0"])

    def test_machine_is_without_policy_afterwards(self) -> None:
        self.install()
        self.assertFalse(self.policy.exists())

    def test_policy_is_removed_after_a_failure(self) -> None:
        self.install(status=100)
        self.assertFalse(self.policy.exists())

    def test_policy_that_a_killed_run_left_is_removed(self) -> None:
        self.policy.write_text(programs.NOT_STARTED)
        self.assertEqual(self.install()[0], "squid.service 101")
        self.assertFalse(self.policy.exists())

    def test_policy_of_the_machine_decides_and_stays(self) -> None:
        self.write(self.policy, "#!/bin/sh\nexit 104\n")
        self.assertEqual(self.install()[0], "squid.service 104")
        self.assertEqual(self.policy.read_text(), "#!/bin/sh\nexit 104\n")

    def test_only_added_services_are_disabled(self) -> None:
        self.install()
        self.assertEqual((self.place / "asked").read_text(), "--quiet disable docker.socket squid.service\n")
