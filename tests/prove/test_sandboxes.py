"""The hostile program, in sandboxes as they are made, and in some with a hole, where it has to say so."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.prove.outside import Outside
from ironcurtain.prove.report import Attempt, Report, parse
from ironcurtain.prove.sandboxes import NETWORK, prove_sandbox
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.spec import MEBIBYTE, Kind, Sandbox, SandboxLimits

LIMITS = SandboxLimits(memory=1024 * MEBIBYTE)
"""Less than sandboxes have, as filling it takes time; ``test_command.py`` tests those as they are."""


class SandboxTests(SynchronousTestCase):
    timeout = 300
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

    def test_network_that_the_configuration_opens_is_told(self) -> None:
        with Outside(self.home) as outside:
            opened = replace(self.sandbox, network=True)
            report = prove_sandbox("trial", opened, str(self.workspace), outside, opened="it may")
        self.assertTrue(report.held, list(report.lines()))
        told = {attempt.what for attempt in report.attempts if attempt.detail == "it may"}
        self.assertEqual(told, set(NETWORK))
        self.assertIn("the network of trial (it may)", report.lacks)

    def test_holes_are_found(self) -> None:
        hole = replace(self.sandbox, write=(str(self.top),), network=True, home="")
        report, out = self.prove(hole)
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

    def test_network_that_the_configuration_opens_is_told(self) -> None:
        with Outside(self.home) as outside:
            opened = replace(self.sandbox, network=True)
            self.assertRaises(Unavailable, prove_sandbox, "trial", opened, str(self.workspace), outside)

    def test_holes_are_found(self) -> None:
        report, out = self.prove(replace(self.sandbox, write=(str(self.top),)))
        for what in ("read a file outside by its path", "write the file outside through a hook"):
            self.assertIn(what, out)
        self.assertFalse(report.held)


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
