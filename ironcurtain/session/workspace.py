"""Check directories for use as a workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ironcurtain.errors import UsageError
from ironcurtain.home.layout import account_home
from ironcurtain.home.user_paths import absolute_path
from ironcurtain.mcp_proxy.workspace_guard import ADVICE
from ironcurtain.sandbox.pieces import all_names, existing, names_in

NAMED_LIMIT = 10
"""Maximum number of protected paths named in a refusal."""


def usable_workspace(path: Path, user_home: Path, ironcurtain_home: Path, protected: Sequence[str]) -> Path:
    """
    Check a directory for use as a workspace.

    :param protected: absolute paths that no agent may touch.
    :returns: its real path.
    :raises UsageError: it is not a directory, or gives access to more than a project: the whole machine, the user's
        home, IronCurtain's home, or a protected path.
    """
    try:
        real = absolute_path(path).resolve(strict=True)
    except (OSError, RuntimeError) as e:
        why = getattr(e, "strerror", None) or "its symbolic links lead in a circle"
        raise UsageError(f"the workspace {path} cannot be used: {why}") from None
    if not real.is_dir():
        raise UsageError(f"the workspace {path} is not a directory")
    # For root, $HOME may belong to another user; the agent runs as the owner of the workspace.
    homes = [user_home, *(Path(account_home(uid)) for uid in _accounts(real))]
    if real == Path("/") or any(home.resolve().is_relative_to(real) for home in homes):
        raise UsageError(f"the workspace {real} contains a whole home directory: choose a project's directory")
    own = ironcurtain_home.resolve()
    if real.is_relative_to(own) or own.is_relative_to(real):
        raise UsageError(f"the workspace {real} and IronCurtain's home {own} must not contain each other")
    for forbidden in map(Path, protected):
        if real.is_relative_to(forbidden):
            raise UsageError(f"the workspace {real} is in {forbidden}, which is protected: choose another one")
    if inside := existing(real, names_in(str(real), all_names(protected))):
        names = ", ".join(inside[:NAMED_LIMIT]) + (" and more" if len(inside) > NAMED_LIMIT else "")
        raise UsageError(f"the workspace {real} contains protected paths: {names}: {ADVICE}")
    return real


def _accounts(workspace: Path) -> tuple[int, ...]:
    own = os.geteuid()
    return (own,) if own else (own, workspace.stat().st_uid)
