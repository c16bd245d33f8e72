"""Find the version of an agent's program on this machine."""

from __future__ import annotations

import json
import os
import re
from pathlib import PurePath

from ironcurtain.container_agent.bubblewrapped.programs import AgentProgram, Needed
from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.installation import wrapped_programs
from ironcurtain.sandbox.spec import Bound, Kind, Sandbox, SandboxLimits
from ironcurtain.text.display import one_line

DESCRIPTION_BYTES, VERSION_LIMIT = 256 * 1024, 40
"""Most bytes that are read of a ``package.json``, and most characters of a version."""

SECONDS = 5.0
"""Time limit in seconds for a program to print its version."""

_VERSIONED = re.compile(r"/(?:versions|releases|Cellar/[^/]+|Caskroom/[^/]+)/([^/]+)")
"""A directory that has a version as its name."""

_TARGET = re.compile(r"-(?:x86_64|aarch64)-.*")
"""What Codex's installer appends to a version."""

_PRINTED = re.compile(r"\d+\.\d+\S*")


def version(program: AgentProgram) -> str:
    """:returns: the version of a program as its package or directory names it; empty if none does."""
    real = PurePath(os.path.realpath(next(iter(wrapped_programs(program.path)), program.path)))
    for above in (real, *real.parents):
        try:
            with open(above / "package.json", "rb") as file:
                found = json.loads(file.read(DESCRIPTION_BYTES)).get("version", "")
        except (OSError, ValueError, AttributeError, RecursionError):
            continue
        return one_line(str(found), VERSION_LIMIT)
    named = _VERSIONED.search(str(real))
    return "" if named is None else one_line(_TARGET.sub("", named[1]), VERSION_LIMIT)


def printed_version(needed: Needed, account: Account | None) -> str:
    """
    :param needed: the program, and what it needs.
    :param account: the account that it runs as; ``None``: that of this process.
    :returns: the version that a program prints, run in a sandbox with bubblewrap; empty if it prints none.
    """
    sandbox = Sandbox(
        read=needed.paths,
        account=account,
        bound=tuple(Bound(source, target) for source, target in needed.moved),
        limits=SandboxLimits(data=False),
        kind=Kind.BUBBLEWRAP,
    )
    environment = {**needed.variables, "PATH": needed.search, "HOME": "/tmp"}
    try:
        done = programs.run(sandbox, (needed.program, "--version"), environment, Bounds(SECONDS))
    except (Unavailable, Unfinished, OSError):
        return ""
    found = _PRINTED.search(done.output.decode(errors="replace")) if done.status == 0 else None
    return "" if found is None else one_line(found[0], VERSION_LIMIT)
