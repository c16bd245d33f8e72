"""What ``ironcurtain doctor`` says of this installation: its interpreter for programs, and how to start the daemon."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ironcurtain.cli.findings import OK, WRONG, Finding
from ironcurtain.process.own_programs import daemon_command

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home

PLUGIN = "ironcurtain_plugin.py"
"""The file by which twistd knows the daemon."""

EDITABLE = (
    "Install IronCurtain anew; a checkout whose changes take effect at once with: "
    "pip install --config-settings editable_mode=compat --editable PATH"
)
"""What to do if twistd does not know the daemon: Twisted looks only into directories, not where importers lead."""


def interpreter(where: Home) -> Iterator[Finding]:
    """:raises Unavailable: the interpreter is missing."""
    from ironcurtain.codemode.pool import interpreter_path

    yield Finding("interpreter", OK, interpreter_path())


def daemon(where: Home) -> Iterator[Finding]:
    """:returns: whether it runs, or could."""
    from ironcurtain.files.locks import is_held
    from twisted import plugins

    if where.path.exists() and is_held(where.daemon_lock):
        yield Finding("daemon", OK, "runs")
    elif not any(os.path.exists(os.path.join(directory, PLUGIN)) for directory in plugins.__path__):
        yield Finding("daemon", WRONG, f"twistd does not know it: no directory with its plugins has {PLUGIN}", EDITABLE)
    else:
        start = f"start it with: {daemon_command()}"
        yield Finding("daemon", OK, f"is not running; commands work without it ({start})")
