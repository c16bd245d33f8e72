"""
The programs of this installation. They need not be on anybody's PATH, as pipx and uv put only one of them there; nor in
reach: a server that root started, and that has another account now, may not enter where root has installed it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

TWISTD = "twistd"
"""The program that runs the daemon."""

PACKAGE = Path(__file__).resolve().parents[1]


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


def unreached() -> str | None:
    """:returns: whether Python or this package is out of reach, and what to do, in words; ``None`` if neither is."""
    needed = ((sys.executable, os.X_OK), (os.__file__, os.R_OK), (str(PACKAGE / "__init__.py"), os.R_OK))
    if (path := next((path for path, access in needed if not os.access(path, access)), None)) is None:
        return None
    return (
        f"uid {os.geteuid()} cannot reach {path}: install Python and IronCurtain where every account enters, such as "
        "below /opt"
    )
