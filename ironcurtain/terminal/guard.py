"""Restore this process's terminal if it is killed."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

from ironcurtain.errors import Unavailable
from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.search_path import host_path, required_program
from ironcurtain.terminal.sequences import RESTORE

_SCRIPT = """
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
read -r word
test "$word" = done && exit
stty "$1" <&1
printf %s "$2"
"""
"""
A shell script that waits for a word on standard input. If this process dies, the word is missing and the terminal is
restored, which is its standard output.
"""

_DONE = b"done\n"

STTY_SECONDS = 5.0
"""Time limit in seconds for reading the terminal's state (it takes 1 ms)."""


class Guard:
    """Restores the terminal if this process is killed, using a small process that waits for that."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, descriptor: int) -> None:
        """
        From now on, the terminal will be restored to its current state. If the process cannot be started, nothing is
        done.

        :param descriptor: descriptor of the terminal, before it is changed.
        """
        with suppress(OSError, Unavailable, Unfinished):
            saved = bounded.run(
                [required_program("stty", "coreutils"), "-g"], Bounds(STTY_SECONDS, whole=True), stdin=descriptor
            )
            if saved.status:
                return
            with open(_opened(descriptor), "wb") as terminal:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT, "sh", saved.output.decode().strip(), RESTORE.decode()],
                    stdin=subprocess.PIPE,
                    stdout=terminal,
                    stderr=subprocess.DEVNULL,
                    env={"PATH": host_path()},
                    start_new_session=True,
                )

    def end(self) -> None:
        """The terminal was restored, or will not be changed again. Can be called twice."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate(_DONE)


def _opened(descriptor: int) -> int:
    """:returns: a new descriptor of a terminal, for writing if possible: the given one may be for reading only."""
    try:
        return os.open(os.ttyname(descriptor), os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except PermissionError:  # it is another account's, as after `su`
        return os.dup(descriptor)
