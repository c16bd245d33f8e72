"""
Find the programs that IronCurtain runs outside every sandbox, where no agent may have put another one.

A ``PATH`` often has directories of a project, such as ``.venv/bin`` or ``node_modules/.bin``, where an agent writes.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence

from ironcurtain.errors import Unavailable
from ironcurtain.files.links import directories_above, link_chain

KEPT_SECONDS = 1.0
"""For how long a path is not examined again that only root may change. Root itself may do so meanwhile."""

_ROOT = 0

_OTHERS = stat.S_IWOTH

_workspaces: set[str] = set()

_kept: dict[tuple[str, bool], tuple[float, list[str]]] = {}
"""When paths that only root may change were examined last, and where they led. A session asks for a hundred."""


def keep_out(workspace: str) -> None:
    """
    From now on, take no program of this machine from a directory where an agent writes, or wrote.

    :param workspace: its real path.
    """
    _workspaces.add(workspace)


def host_path(search: str | None = None, workspace: str = "") -> str:
    """
    :param search: a ``PATH``; ``None``: this process's.
    :param workspace: real path of one more directory where an agent writes; empty: there is none.
    :returns: the ``PATH`` without relative directories, those in a workspace, and those that other accounts may change.
    """
    return os.pathsep.join(_safe_entries(search, {*_workspaces, *filter(None, (workspace,))}))


def host_program(name: str, search: str | None = None, workspace: str = "") -> str | None:
    """
    Find a program that runs outside every sandbox.

    :param name: its file name.
    :param search: see :func:`host_path`, also for ``workspace``.
    :returns: its absolute path; ``None`` if there is none that only this account or root may change.
    """
    apart = {*_workspaces, *filter(None, (workspace,))}
    for directory in _safe_entries(search, apart):
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and _is_safe(path, apart):
            return path
    return None


def required_program(name: str, package: str = "util-linux") -> str:
    """
    Find a program as :func:`host_program` does.

    :param package: of Debian, which has it.
    :raises Unavailable: it is missing.
    """
    if (found := host_program(name)) is None:
        raise Unavailable(f"the program {name} is missing (Debian: apt-get install {package})")
    return found


def host_environment(environ: Mapping[str, str], workspace: str = "") -> dict[str, str]:
    """
    :param environ: an environment.
    :returns: the same, for a program that runs outside every sandbox and looks for others: see :func:`host_path`.
    """
    return {**environ, "PATH": host_path(environ.get("PATH", os.defpath), workspace)}


def _safe_entries(search: str | None, apart: set[str]) -> Iterator[str]:
    entries = (os.environ.get("PATH", os.defpath) if search is None else search).split(os.pathsep)
    return (entry for entry in entries if _is_safe(entry, apart, directory=True))


def _is_safe(path: str, workspaces: set[str], directory: bool = False) -> bool:
    """:param directory: whether it is one, in which nobody else may make a file."""
    if not os.path.isabs(path):
        return False
    try:
        places = _safe_places(path, directory)
    except OSError:  # somebody is changing a link
        return False
    apart = [f"{each.rstrip('/')}/" for each in workspaces]
    return bool(places) and not any(f"{place}/".startswith(each) for each in apart for place in places)


def _safe_places(path: str, directory: bool) -> list[str]:
    """
    :returns: the path and where its links lead; empty: others may change one of them.
    :raises OSError: somebody is changing a link.
    """
    now = time.monotonic()
    since, places = _kept.get((path, directory), (now - KEPT_SECONDS, []))
    if now - since < KEPT_SECONDS:
        return places
    places = list(link_chain(os.path.normpath(path)))
    ours = (_ROOT, os.geteuid(), os.stat("/").st_uid)  # in a user namespace, root's own number is another one
    above = dict.fromkeys(parent for place in places for parent in directories_above(place))
    statuses = [_status(path), *map(_status, above)]
    if not all(_is_ours(status, directory and not number, ours) for number, status in enumerate(statuses)):
        return []
    if all(map(_is_roots, statuses)):
        _kept[path, directory] = (now, places)
    return places


def _status(path: str) -> os.stat_result | None:
    """:returns: ``None`` if it does not exist."""
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_ours(status: os.stat_result | None, is_target: bool, ours: Sequence[int]) -> bool:
    """
    :param is_target: whether others may not even make files of their own in it, as they may in ``/tmp``.
    :param ours: the uids of root and this account.
    :returns: whether only root and this account may change it; true if it does not exist.
    """
    if status is None:
        return True
    shared = status.st_mode & _OTHERS and (is_target or not status.st_mode & stat.S_ISVTX)
    return status.st_uid in ours and not shared


def _is_roots(status: os.stat_result | None) -> bool:
    """:returns: whether it exists, and only root may change it: an access list shows in the bits of the group."""
    return status is not None and status.st_uid == _ROOT and not status.st_mode & (_OTHERS | stat.S_IWGRP)
