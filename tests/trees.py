"""Directories such as an agent may leave, and an account that they can stop."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

DEEP = 1100
"""Levels: more than Python's stack, and than the descriptors that a process may usually have open."""

ACCOUNT = 54321
"""An account that nobody has."""


def nest(top: Path) -> None:
    """Make :data:`DEEP` directories in each other; the path of the last is too long for any call."""
    above = os.open(top, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("directory", dir_fd=above)
        below = os.open("directory", os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)


def unprivileged(test: SynchronousTestCase, *paths: Path) -> None:
    """
    Let permissions hold until the end of the test: for root they do not.

    :param paths: directories; they and all in them belong to whom the test runs as from now on.
    """
    if os.geteuid():
        return
    for path in paths:
        for _, _, files, opened in os.fwalk(path):
            os.fchown(opened, ACCOUNT, ACCOUNT)
            for name in files:
                os.chown(name, ACCOUNT, ACCOUNT, dir_fd=opened, follow_symlinks=False)
    os.seteuid(ACCOUNT)
    test.addCleanup(os.seteuid, 0)
