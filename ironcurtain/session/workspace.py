"""Check directories for use as a workspace, and find the author's name for commits there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ironcurtain.errors import UsageError
from ironcurtain.home.layout import account_home
from ironcurtain.home.user_paths import absolute_path
from ironcurtain.mcp_proxy.workspace_guard import ADVICE
from ironcurtain.process import bounded
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Unfinished
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


GIT_SECONDS = 5.0
"""Time limit in seconds for git to read its settings (it takes 2 ms)."""


def git_identity(environ: Mapping[str, str], account: Account | None) -> bytes:
    """
    :param account: the account whose settings to read, if not that of this process, which is root then.
    :returns: content for a ``.gitconfig``; empty if git has no user name.
    """
    if (git := shutil.which("git", path=environ.get("PATH", os.defpath))) is None:
        return b""
    home = environ.get("HOME", "/") if account is None else account.home
    command = [git, "config", "--global", "--null", "--get-regexp", r"^user\.(name|email)$"]
    try:
        done = bounded.run(
            command if account is None else account.command(command),
            Bounds(GIT_SECONDS, whole=True),
            environment={"HOME": home, "PATH": environ.get("PATH", os.defpath)},
            cwd="/",
        )
    except (OSError, Unfinished):
        return b""
    found = dict(entry.split(b"\n", 1) for entry in done.output.split(b"\0") if b"\n" in entry)
    lines = [b"\t%s = %s\n" % (key.removeprefix(b"user."), _quoted(value)) for key, value in found.items()]
    return b"[user]\n" + b"".join(lines) if lines else b""


def _quoted(value: bytes) -> bytes:
    """:returns: a value, quoted for git's settings (git-config(1), "Values")."""
    escaped = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t")
    return b'"' + escaped + b'"'
