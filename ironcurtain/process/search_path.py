"""Search for programs that run outside every sandbox, without what an agent may have put in its workspace."""

from __future__ import annotations

import os


def outside(search: str, workspace: str) -> str:
    """
    :param search: a ``PATH``.
    :param workspace: real path of a directory where an agent writes; empty: there is none.
    :returns: the ``PATH`` without relative directories, and without those in the workspace.
    """
    return os.pathsep.join(entry for entry in search.split(os.pathsep) if _is_outside(entry, workspace))


def _is_outside(entry: str, workspace: str) -> bool:
    if not os.path.isabs(entry):
        return False
    below = f"{workspace.rstrip('/')}/"
    return not workspace or not any(f"{path}/".startswith(below) for path in (entry, os.path.realpath(entry)))
