"""The hostile program, in sandboxes as they are made, and in some with a hole, where it has to say so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.process.accounts import Account
from ironcurtain.prove.outside import Isolation, Outside, Room
from ironcurtain.prove.report import Attempt, Report, parse
from ironcurtain.prove.sandboxes import prove_sandbox
from ironcurtain.sandbox import bubblewrap, programs
from ironcurtain.sandbox.spec import MEBIBYTE, Kind, Sandbox, SandboxLimits

LIMITS = SandboxLimits(memory=512 * MEBIBYTE, temporary=64 * MEBIBYTE)
"""Less than sandboxes have, as filling it takes time; ``test_command.py`` tests those as they are."""

WITH_THE_HOSTS_NETWORK = """#!/usr/bin/python3
import os, sys
words = sys.argv[1:]
if words[0] == "--args":
    with open(int(words[1]), "rb") as options:
        kept = options.read().replace(b"--unshare-net\\0", b"")
    number = os.memfd_create("options")
    os.write(number, kept)
    os.lseek(number, 0, os.SEEK_SET)
    os.set_inheritable(number, True)
    words[1] = str(number)
os.execv({!r}, ["bwrap", *words])
"""
"""A bubblewrap that gives its programs the host's network; format it with the path of the real one."""


class SandboxTests(SynchronousTestCase):
    kind = Kind.BUBBLEWRAP

    def setUp(self) -> None:
        # Root's own limits of processes are none, so it proves the sandboxes of another account.
        account = Account(4242, 4243, home="/home/prove") if os.geteuid() == 0 else None
        if (problem := programs.unavailable(account, self.kind)) is not None:
            raise SkipTest(problem)
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.top.chmod(0o755)
        self.home, self.workspace = self.top / "home", self.top / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        if account is not None:
            os.chown(self.workspace, 4242, 4243)
        self.sandbox = Sandbox(
            write=(str(self.workspace),), home=str(self.home), account=account, kind=self.kind, limits=LIMITS
        )

    def prove(self, sandbox: Sandbox) -> tuple[Report, set[str]]:
        """:returns: the report, and what got out, by its words."""
        with Outside(self.home) as outside:
            report = prove_sandbox("trial", sandbox, str(self.workspace), outside)
        self.assertEqual(list(self.home.iterdir()), [])
        out = {attempt.what for attempt in report.attempts if attempt.outcome not in ("failed", "not limited")}
        return report, out | set(report.seen)

    def test_a_sandbox_holds(self) -> None:
        report, out = self.prove(self.sandbox)
        self.assertEqual((out, report.complete, report.held), (set(), True, True))
        self.assertGreater(len(report.attempts), 100)
        self.assertEqual(list(self.workspace.iterdir()), [])

    def test_holes_are_found(self) -> None:
        program = bubblewrap.tried(self.sandbox.account).program
        assert program is not None
        (self.top / "bwrap").write_text(WITH_THE_HOSTS_NETWORK.format(program.path))
        (self.top / "bwrap").chmod(0o755)
        self.patch(os, "environ", {**os.environ, "PATH": f"{self.top}:{os.environ['PATH']}"})
        report, out = self.prove(replace(self.sandbox, write=(str(self.top),), home=""))
        for what in (
            "read a file outside by its path",
            "read it through a symbolic link in the workspace",
            "read the file outside through blame.ignoreRevsFile",
            "connect to a server of this machine by IPv4",
            "connect to a UNIX socket outside",
            "connect to a socket without a file (abstract)",
            "a connection came by IPv4",
            "a datagram came",
        ):
            self.assertIn(what, out)
        self.assertFalse(report.held)


class LandlockTests(SandboxTests):
    """The same in sandboxes without namespaces."""

    kind = Kind.LANDLOCK

    def test_holes_are_found(self) -> None:
        report, out = self.prove(replace(self.sandbox, write=(str(self.top),)))
        for what in ("read a file outside by its path", "write the file outside through a hook"):
            self.assertIn(what, out)
        self.assertFalse(report.held)


class TargetTests(SynchronousTestCase):
    """What the hostile program is to reach, without a sandbox between."""

    def test_socket_in_a_home_with_a_long_name_can_be_reached(self) -> None:
        top = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, top)
        home = Path(top, "Größe 日本語 " * 12)
        home.mkdir()
        common = resources.files("ironcurtain.prove").joinpath("data/hostile/common.py").read_text()
        program = f"{common}\nconnect(socket.AF_UNIX, TARGETS['socket'])\nprint(os.getcwd())"
        with Outside(home) as outside:
            targets = outside.targets("", Room(1, 1), Isolation())
            done = subprocess.run(
                [sys.executable, "-I", "-X", "utf8", "-c", program, targets],
                cwd=top, capture_output=True, text=True, check=False,
            )  # fmt: skip
            self.assertEqual(done.stdout.strip(), os.path.realpath(top), done.stderr)
            self.assertEqual(list(outside.seen()), ["a connection came to a UNIX socket"])


class ReportTests(SynchronousTestCase):
    def test_what_is_cut_off_does_not_hold(self) -> None:
        line = b'{"group": "files", "what": "x", "outcome": "failed", "detail": ""}\n'
        for output, complete in (
            (line + b'{"end": 1}\n', True),
            (line, False),
            (line + b'{"end": 2}\n', False),
            (b"", False),
        ):
            attempts, ended = parse(output)
            self.assertEqual(ended, complete, output)
            self.assertEqual(Report("x", attempts, ended).held, complete)

    def test_what_is_seen_outside_counts_whatever_the_program_says(self) -> None:
        self.assertFalse(Report("x", (), complete=True, seen=("the file outside was changed",)).held)

    def test_attempt_that_is_not_limited_counts_unless_people_are_told(self) -> None:
        attempt = Attempt("limits", "fill", "not limited")
        self.assertFalse(Report("x", (attempt,), complete=True).held)
        told = Report("x", (attempt,), complete=True, unlimited={"fill": "here it does not"})
        self.assertTrue(told.held)
        self.assertIn("1 not limited", list(told.lines())[-1])
        self.assertFalse(any("held" in line for line in told.lines()))
