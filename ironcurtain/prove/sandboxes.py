"""Run the hostile program in the sandbox of an MCP server, or of the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib import resources

from ironcurtain.prove.outside import Outside
from ironcurtain.prove.report import Report, parse
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.spec import Sandbox

SECONDS = 300.0
"""How long the program may take (it takes about ten)."""


PARTS = ("common", "files", "git", "network", "processes", "calls", "rights", "devices", "limits", "main")
"""The files that the hostile program is put together from, below ``data/hostile``."""


def hostile_program() -> str:
    """:returns: its source."""
    place = resources.files("ironcurtain.prove").joinpath("data/hostile")
    return "\n\n".join(place.joinpath(f"{part}.py").read_text() for part in PARTS)


def prove(subject: str, sandbox: Sandbox, workspace: str, outside: Outside) -> Report:
    """
    Run the hostile program in a sandbox, to which only the Python that runs it is added.

    :param workspace: a directory in the sandbox that it may write; empty: its temporary one.
    """
    python = os.path.realpath(sys.executable)
    account = sandbox.account
    needed = Installation([sandbox.home or "/", os.environ.get("HOME", "/")], os.defpath, workspace).of(python, (), "/")
    trial = replace(sandbox, read=(*sandbox.read, *needed), cwd=workspace or "/tmp")
    may_be_root = account is None and os.getuid() == 0
    words = [python, "-I", "-c", hostile_program(), outside.targets(workspace or "/tmp", may_be_root)]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": sandbox.home or "/tmp", "LC_ALL": "C.UTF-8"}
    try:
        output = programs.run(trial, words, environment, SECONDS).stdout
    except subprocess.TimeoutExpired as e:
        output = e.stdout or b""
    attempts, complete = parse(output)
    return Report(subject, attempts, complete, tuple(outside.seen()))
