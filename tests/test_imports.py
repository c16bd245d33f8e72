"""Every module can be imported, which other versions of Python may refuse: modules go, and syntax is warned of."""

from __future__ import annotations

import contextlib  # trial takes a name `suppress` here for its own
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.test_rules import module_name, modules

PROGRAM = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"

UNNEEDED = (
    "docker",
    "ironcurtain.cli.viewing",
    "ironcurtain.container",
    "ironcurtain.container_agent",
    "ironcurtain.mitm_proxy",
    "mcp",
    "rs_bpe",
    "treq",
    "twisted.web.client",
    "twisted.web.http",
    "urwid",
)
"""Modules that are slow to import, and that a session of the built-in agent needs only later, or never."""


class ImportTests(SynchronousTestCase):
    def test_every_module_is_imported_without_a_warning(self) -> None:
        names = [module_name(path) for path in modules() if path.name != "__main__.py"]
        self.assertGreater(len(names), 800)
        done = subprocess.run(
            [sys.executable, "-I", "-W", "error", "-c", PROGRAM, *names], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_commands_import_no_slow_module_that_they_do_not_use(self) -> None:
        with tempfile.TemporaryDirectory(prefix="ic-") as directory:
            script = Path(directory, "script.toml")
            script.write_text('version = 1\n[[turns]]\ntext = "Done."\n')
            imported = imports_of(directory, "start", "--backend", f"scripted:{script}", "hi")
            self.assertIn("ironcurtain.builtin_agent.agent", imported)
            self.assertEqual(imported.intersection(UNNEEDED), set())
            servers = {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes"]}}}
            Path(directory, "home", "mcp-servers.json").write_text(json.dumps(servers))
            for command, needed in (
                ("config check", "ironcurtain.mcp_proxy.obstacles"),
                ("mcp list", "ironcurtain.mcp_proxy.obstacles"),
                ("audit verify", "ironcurtain.session.verification"),
                ("audit show 1", "ironcurtain.audit.chain"),
            ):
                imported = imports_of(directory, *command.split())
                self.assertIn(needed, imported)
                self.assertEqual(imported.intersection(("asyncio", "twisted", "zope")), set(), command)

    def test_daemon_is_asked_for_a_session_before_an_event_loop_is_imported(self) -> None:
        with tempfile.TemporaryDirectory(prefix="ic-") as directory:
            line, environ = command(directory, "start", "--agent", "claude-code", "--workspace", ".", "hi")
            ours, theirs = os.openpty()  # at a terminal, a project's questions come first
            process = subprocess.Popen(line, env=environ, cwd=directory, stdin=theirs, stderr=theirs)
            os.close(theirs)
            said = b""
            with contextlib.suppress(OSError):  # it ends so once the other side is closed
                while data := os.read(ours, 65536):
                    said += data
            os.close(ours)
            self.assertNotEqual(process.wait(), 0)  # there is no account
            imported = names(said.decode())
            before = imported[: imported.index("ironcurtain.control.early")]
            self.assertIn("ironcurtain.container.project_commands", before)
            self.assertEqual([name for name in before if name.startswith(("OpenSSL", "asyncio", "twisted"))], [])


def command(directory: str, *words: str) -> tuple[list[str], dict[str, str]]:
    """
    :param directory: of a person; a directory ``home`` in it is that of IronCurtain.
    :returns: a command of ours that says what it imports, and its environment, without keys.
    """
    environ = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))}
    line = [sys.executable, "-I", "-X", "importtime", "-m", "ironcurtain.cli", *words]
    return line, {**environ, "HOME": directory, "IRONCURTAIN_HOME": f"{directory}/home"}


def imports_of(directory: str, *words: str) -> set[str]:
    """
    :param directory: as for :func:`command`.
    :returns: the modules that a command of ours imports.
    """
    line, environ = command(directory, *words)
    done = subprocess.run(
        line, env=environ, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    return set(names(done.stderr))


def names(said: str) -> list[str]:
    """:returns: the modules that were imported, in that order, by what Python says about them."""
    return [each.rpartition("|")[2].strip() for each in said.splitlines() if each.startswith("import time")]
