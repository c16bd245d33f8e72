"""Check directories for use as a workspace."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import ironcurtain
from ironcurtain.errors import UsageError
from ironcurtain.files.links import link_chain
from ironcurtain.home.layout import Home
from ironcurtain.home.user_paths import absolute_path, account_home, check_encodable
from ironcurtain.mcp_proxy.workspace_guard import ADVICE
from ironcurtain.process.search_path import keep_out
from ironcurtain.sandbox.pieces import all_names, existing, names_in
from ironcurtain.session.elsewhere import workspaces

NAMED_LIMIT = 10
"""Maximum number of protected paths named in a refusal."""


def usable_workspace(path: Path, user_home: Path, ironcurtain_home: Path, protected: Sequence[str]) -> Path:
    """
    Check a directory for use as a workspace.

    :param protected: absolute paths that no agent may touch.
    :returns: its real path.
    :raises UsageError: it is not a directory, or gives access to more than a project: the whole machine, the user's
        home, IronCurtain's home, IronCurtain's own program, or a protected path.
    """
    try:
        real = absolute_path(path).resolve(strict=True)
    except (OSError, RuntimeError) as e:
        why = getattr(e, "strerror", None) or "its symbolic links lead in a circle"
        raise UsageError(f"the workspace {path} cannot be used: {why}") from None
    check_encodable(str(real))  # a link can lead to any name
    if not real.is_dir():
        raise UsageError(f"the workspace {path} is not a directory")
    # For root, $HOME may belong to another user; the agent runs as the owner of the workspace.
    homes = [user_home, *(Path(account_home(uid)) for uid in _accounts(real))]
    if real == Path("/") or any(home.resolve().is_relative_to(real) for home in homes):
        raise UsageError(f"the workspace {real} contains a whole home directory: choose a project's directory")
    own = ironcurtain_home.resolve()
    if real.is_relative_to(own) or own.is_relative_to(real):
        raise UsageError(f"the workspace {real} and IronCurtain's home {own} must not contain each other")
    if (program := next((place for place in _program_places() if Path(place).is_relative_to(real)), None)) is not None:
        raise UsageError(
            f"the workspace {real} contains {program}, from where IronCurtain itself runs: an agent could replace it. "
            "Install IronCurtain with pipx, or in a virtual environment outside of every workspace"
        )
    for forbidden in map(Path, protected):
        if real.is_relative_to(forbidden):
            raise UsageError(f"the workspace {real} is in {forbidden}, which is protected: choose another one")
    if inside := existing(real, names_in(str(real), all_names(protected))):
        names = ", ".join(inside[:NAMED_LIMIT]) + (" and more" if len(inside) > NAMED_LIMIT else "")
        raise UsageError(f"the workspace {real} contains protected paths: {names}: {ADVICE}")
    keep_out(str(real))
    return real


def keep_out_workspaces(home: Home) -> None:
    """Take no program of this machine from the home, or from a workspace of its sessions, also of ended ones."""
    keep_out(str(home.path.resolve()))
    for workspace in workspaces(home):
        keep_out(os.path.realpath(workspace))


def _program_places() -> Iterator[str]:
    """:returns: the paths, link by link, from which this program and all that it imports comes."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(ironcurtain.__file__)))
    for place in (sys.prefix, sys.base_prefix, sys.executable, package, *sys.path):
        if os.path.isabs(place):
            yield from link_chain(os.path.normpath(place))


def _accounts(workspace: Path) -> tuple[int, ...]:
    own = os.geteuid()
    return (own,) if own else (own, workspace.stat().st_uid)
