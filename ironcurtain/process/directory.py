"""Start a program in another directory, without a copy of this process."""

from __future__ import annotations

from collections.abc import Sequence

_CHANGE = 'cd -- "$1" && unset OLDPWD && shift && exec "$@"'


def in_directory(directory: str, line: Sequence[str]) -> list[str]:
    """
    To start a program elsewhere, Twisted forks this process, which takes 10 ms and more where it is large. Programs of
    the same directory are started by posix_spawn(3), so a shell changes it.

    :param directory: its absolute path.
    :returns: a command line that runs another one there.
    """
    return ["/bin/sh", "-c", _CHANGE, "sh", directory, *line]
