"""The programs of this installation, which need not be on anybody's PATH: pipx and uv put only one of them there."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

TWISTD = "twistd"
"""The program that runs the daemon."""


def own_program(name: str) -> Path | None:
    """:returns: absolute path of a program that is installed beside this Python, as in every virtual environment."""
    path = Path(sys.executable).parent / name
    return path if path.exists() else None


def is_on_path(name: str) -> bool:
    """:returns: whether a shell with this process's PATH finds the program of this installation under its name."""
    usual, own = shutil.which(name), own_program(name)
    return usual is not None and (own is None or os.path.samefile(usual, own))


def daemon_command(words: str = "ironcurtain") -> str:
    """
    :param words: those after ``twistd``.
    :returns: the command that starts the daemon from a shell here, for people.
    """
    own = own_program(TWISTD)
    return f"{TWISTD if own is None or is_on_path(TWISTD) else shlex.quote(str(own))} {words}"
