"""The file server and the owner's commands under attack, as they are and damaged."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy import launch
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.process.accounts import Account
from ironcurtain.process.search_path import required_program
from ironcurtain.project.changes import Change, Comparison
from ironcurtain.prove import commands, file_server, places, planted
from ironcurtain.prove.places import Machine, prove_server
from ironcurtain.prove.report import Report
from ironcurtain.prove.verdict import Untested

DAMAGED = """
import os, sys
from ironcurtain.servers.files import walk
walk.SAFE &= ~os.O_NOFOLLOW
walk.DIRECTORY &= ~os.O_NOFOLLOW
from ironcurtain.servers.files.__main__ import main
sys.exit(main([word for word in sys.argv[1:] if not word.startswith("--hide=")]))
"""
"""A file server that follows links, and hides nothing."""


class HelperTests(SynchronousTestCase):
    def setUp(self) -> None:
        home = tempfile.mkdtemp(prefix="ic", dir="/tmp")  # short, for the address of a socket
        self.addCleanup(shutil.rmtree, home)
        self.workspace = Path(home)
        root = os.geteuid() == 0
        account = Account(4242, 4243, home="/home/prove") if root else Account(os.getuid(), os.getgid())
        self.machine = Machine(os.environ, os.path.realpath(home), account, ())

    def reports(self) -> tuple[Report, Report]:
        """:returns: those of the file server and of the commands."""
        own = launch.OWN_SERVERS[0]
        results = list(prove_server(CommandServer("filesystem", sys.executable, own), self.machine))
        self.untested = [result for result in results if isinstance(result, Untested)]
        server, owner = (result for result in results if isinstance(result, Report))
        return server, owner

    def replace_server(self, script: str) -> None:
        own = (("-I", "-c", script), *launch.OWN_SERVERS[1:])
        for module in (launch, file_server, places):
            self.patch(module, "OWN_SERVERS", own)

    def test_both_hold(self) -> None:
        for report in self.reports():
            self.assertTrue(report.held, list(report.lines()))
        self.assertEqual(os.listdir(self.machine.home), [])

    def test_without_git_all_else_is_tested_and_holds(self) -> None:
        programs = Path(tempfile.mkdtemp(dir=Path.home()))  # not where anybody may write
        self.addCleanup(shutil.rmtree, programs)
        for name in ("setpriv", "setsid"):
            (programs / name).symlink_to(required_program(name))
        self.patch(os, "environ", {**os.environ, "PATH": str(programs)})
        for report in self.reports():
            self.assertTrue(report.held, list(report.lines()))
        (git,) = self.untested
        self.assertEqual((git.name, git.could_not), ("git in an exported workspace", False))

    def test_server_for_the_desktop_is_said_to_have_no_sandbox(self) -> None:
        desktop = CommandServer("desktop", sys.executable, launch.OWN_SERVERS[2])
        (report,) = prove_server(desktop, self.machine)
        assert isinstance(report, Report)
        self.assertFalse(report.held)
        self.assertIn("desktop: runs outside any sandbox", report.subject)

    def test_file_server_that_follows_links_and_hides_nothing_is_noticed(self) -> None:
        self.replace_server(DAMAGED)
        report, _ = self.reports()
        out = {attempt.what for attempt in report.attempts if attempt.outcome == "succeeded"}
        for what in (
            "read the file outside by a link to its directory",
            "read the file outside by a link to the root directory",
            "list its directory by prove-dir",
            "write the file outside by a link to its directory",
            "read the file outside while a directory becomes a link",
            "read one as prove-protected",
            "find it, or what is protected, by a search",
        ):
            self.assertIn(what, out)
        self.assertFalse(report.held)
        self.assertIn("the file outside was changed", report.seen)

    def test_file_server_that_ends_does_not_hold(self) -> None:
        self.replace_server("pass")
        report, _ = self.reports()
        self.assertEqual((report.held, report.complete), (False, False))

    def test_commands_that_follow_links_are_noticed(self) -> None:
        def copy_all(comparison: Comparison, to: Path) -> None:
            shutil.copytree(comparison.tree.root.path, to, symlinks=True, dirs_exist_ok=True, copy_function=_copied)

        def follow(change: Change, before: object, after: Callable[[Change], bytes | None]) -> str:
            path = Path(self.workspace, change.path)
            return path.read_text() if path.is_file() else ""

        self.patch(commands, "export", copy_all)
        self.patch(commands, "patch", follow)

        def begin(workspace: Path) -> None:
            self.workspace = workspace
            planted.begin(workspace)

        self.patch(commands, "begin", begin)
        _, report = self.reports()
        self.assertEqual({attempt.outcome for attempt in report.attempts}, {"succeeded"}, report.attempts)


def _copied(source: str, target: str) -> None:
    if os.path.isfile(source):
        shutil.copy2(source, target)
