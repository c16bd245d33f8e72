"""What a call would change in a file that is there, for the person who is asked about the call."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from ironcurtain.text.diffs import unified

READ_LIMIT = 256 * 1024
"""Maximum size in bytes of a file that is read."""

_PATHS = ("path", "file_path", "filePath", "filename")
_CONTENTS = ("content", "contents", "new_content", "text")


def change(arguments: Mapping[str, Any]) -> str:
    """
    :param arguments: exactly those that will be forwarded.
    :returns: how a call that writes a whole file changes the file that is there now, as a unified diff; empty if the
        call is no such call, or the file is none that this user may show: another user's, or no text.
    """
    path = next((value for name in _PATHS if isinstance(value := arguments.get(name), str)), "")
    content = next((value for name in _CONTENTS if isinstance(value := arguments.get(name), str)), None)
    if content is None or not os.path.isabs(path) or (before := _current(path)) is None:
        return ""
    return unified(path, before, content)


def _current(path: str) -> str | None:
    user = os.geteuid()
    if user == 0:  # root reads everything, and those who are asked may not
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != user or found.st_size > READ_LIMIT:
            return None
        return os.read(descriptor, READ_LIMIT).decode()
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(descriptor)
