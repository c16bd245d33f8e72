"""Start a program in another directory, without a copy of this process."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ironcurtain.platform.processes import ENV_CHANGES_DIRECTORIES
from ironcurtain.process.search_path import host_program


def in_directory(directory: str, line: Sequence[str]) -> tuple[list[str], str | None]:
    """
    To start a program elsewhere, Twisted forks this process, which takes 10 ms and more where it is large. Programs of
    the same directory are started by posix_spawn(3), so env(1) changes it, where it can. A shell could everywhere, but
    hands on only variables that it could have itself.

    :param directory: its absolute path.
    :returns: a command line, and the directory that Twisted has to change to before, if it has to.
    """
    env = _env()
    if env is None or "=" in line[0]:  # it would be a variable
        return list(line), directory
    return [env, "-C", directory, *line], None


def _env() -> str | None:
    found = host_program("env") if ENV_CHANGES_DIRECTORIES else None
    # GNU's and that of uutils know the option; busybox, one program of many names, does not.
    return found if found is not None and os.path.basename(os.path.realpath(found)) in ("env", "coreutils") else None
