"""What is imported before the user's shell starts: a person waits for all of it."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.audit.doubles import scratch

LISTS = """
import os, sys

def at_fork(event, args):
    if event == "os.fork":
        with open(os.environ["FOUND"], "w") as file:
            file.write("\\n".join(sys.modules))
        os._exit(0)

sys.addaudithook(at_fork)
from ironcurtain.cli import main
main()
"""

OWN = {
    "",
    ".cli",
    ".cli.backends",
    ".cli.paths",
    ".cli.shell",
    ".errors",
    ".home",
    ".home.account_sections",
    ".home.container_section",
    ".home.fleet_section",
    ".home.github_section",
    ".home.layout",
    ".home.network_section",
    ".home.registry_sections",
    ".home.sections",
    ".home.session_paths",
    ".home.settings",
    ".home.structured",
    ".home.user_paths",
    ".http",
    ".http.addresses",
    ".process",
    ".process.programs",
    ".shell",
    ".shell.early",
    ".shell.inheritance",
    ".shell.starting",
    ".shell_integration",
    ".shell_integration.preparation",
    ".terminal",
    ".terminal.forked",
    ".terminal.model",
    ".text",
    ".text.decoding",
    ".text.quantities",
    ".traces",
    ".traces.context",
}
"""Ours, without the package's name."""

SLOW = {"asyncio", "hashlib", "json", "subprocess", "tomllib", "twisted"}


class EarlyImportTests(SynchronousTestCase):
    """In a terminal, with a home that has no files."""

    def test_nothing_more_is_imported(self) -> None:
        place = scratch(self)
        found = place / "modules"
        environ = {"HOME": os.fspath(place), "PATH": os.environ["PATH"], "SHELL": "/bin/sh", "FOUND": str(found)}
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(sys.executable, [sys.executable, "-c", LISTS, "shell"], environ)
        self.addCleanup(os.close, terminal)
        os.waitpid(pid, 0)
        modules = set(Path(found).read_text().splitlines())
        own = {name.removeprefix("ironcurtain") for name in modules if name.partition(".")[0] == "ironcurtain"}
        self.assertEqual(own, OWN)
        self.assertEqual(modules & SLOW, set())
