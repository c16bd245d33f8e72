"""Check the places below mounted directories where something else is to be mounted."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePath

from ironcurtain.errors import Unavailable
from ironcurtain.platform.files import LINK_ITSELF, PATH_ONLY
from ironcurtain.sandbox.spec import Sandbox


def check_mount_points(sandbox: Sandbox) -> None:
    """
    Sandboxing programs create what they mount something on, and follow links on the way. So all of it must exist.

    :raises Unavailable: one does not exist, or a part of its path is a symbolic link.
    """
    for path in sandbox.inner_mount_points():
        above = next(place for place in sandbox.outermost() if PurePath(path).is_relative_to(place))
        try:
            _walk(sandbox.source(above), PurePath(path).relative_to(above).parts)
        except OSError as e:
            raise Unavailable(
                f"no sandbox can be made: {path} would be mounted below {above}, and is not there or is behind a "
                f"symbolic link ({e.strerror})"
            ) from None


def _walk(top: str, parts: tuple[str, ...]) -> None:
    """:raises OSError: one of the parts below a directory does not exist, or is a link."""
    descriptor = os.open(top, PATH_ONLY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            flags = PATH_ONLY | LINK_ITSELF | os.O_CLOEXEC | (0 if last else os.O_DIRECTORY)
            below = os.open(part, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
            if stat.S_ISLNK(os.stat(descriptor).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    finally:
        os.close(descriptor)
