"""
Ask version managers which program a shim starts: a small program by the name of another one, which starts the version
that the manager's own settings name. A sandbox has other settings, so shims do not run there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial

from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.search_path import host_path, host_program
from ironcurtain.sandbox.linked_packages import head_of

PLACES = (".local/bin", ".volta/bin", ".asdf/bin", "go/bin")
"""Directories in a home where managers are installed."""

SHIM_BYTES = 4096
"""Number of bytes read of a shim; those of asdf name each version that it has, one a line."""

SECONDS = 5.0
"""Time limit in seconds for a version manager to name a program."""

_LINKED = {"mise": "mise", "volta-shim": "volta"}
"""Managers by the program that their shims are links to."""

_SCRIPT = re.compile(r"^exec \"?(?:/\S*/)?(asdf)\"? exec ", re.MULTILINE)
"""How a shim that is a script starts its manager."""

Ask = Callable[[Sequence[str]], str]
"""Runs a command, and returns what it prints; empty if it fails."""


class VersionManagers:
    """
    :param search: the ``PATH``.
    :param homes: home directories.
    :param workspace: real path of the project, where no version manager is run; empty: there is none.
    :param ask: runs the command of a version manager.
    """

    def __init__(self, search: str, homes: Sequence[str], workspace: str = "", ask: Ask | None = None) -> None:
        self._search = ":".join((search, *(f"{home}/{place}" for home in homes for place in PLACES)))
        self._workspace = workspace
        self._ask = ask or partial(_output, self._search, workspace)

    def started(self, path: str) -> tuple[str, str]:
        """
        :param path: absolute path of a program.
        :returns: the program that it starts, and the manager's name; the program itself and nothing if it is no shim.
            Two empty texts: it is the shim of a version that is not installed, or of a manager that is not there.
        """
        if (shim := _shim(path)) is None:
            return path, ""
        # Not where the shim says: an agent may have written it, and what its text or link leads to.
        tool = host_program(shim, self._search, self._workspace)
        real = "" if tool is None else self._ask([tool, "which", os.path.basename(path)]).strip()
        return (real, shim) if os.path.isabs(real) and os.path.isfile(real) else ("", "")


def is_shim(path: str) -> bool:
    """:returns: whether a version manager chooses what a program starts."""
    return _shim(path) is not None


def _shim(path: str) -> str | None:
    """:returns: the manager of a shim; ``None`` if the program is none."""
    real = os.path.realpath(path)
    name = os.path.basename(real)
    if name in _LINKED and name != os.path.basename(path):
        return _LINKED[name]
    found = _SCRIPT.search(head_of(real, SHIM_BYTES).decode(errors="replace"))
    return None if found is None else found[1]


def _output(search: str, workspace: str, words: Sequence[str]) -> str:
    environment = {**os.environ, "PATH": host_path(search, workspace)}
    try:
        done = bounded.run(words, Bounds(SECONDS), environment=environment, cwd="/")
    except (OSError, Unfinished):
        return ""
    return done.output.decode(errors="replace") if done.status == 0 else ""
