"""What a hostile program leaves in a workspace for the programs outside that work there."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds
from ironcurtain.process.search_path import host_path, host_program, required_program
from ironcurtain.prove.outside import Outside

LINK, DIRECTORY_LINK, ROOT_LINK, PIPE, HARD_LINK = (f"prove-{name}" for name in ("link", "dir", "root", "pipe", "hard"))
"""Names of a link to the file outside, links to its directory and to the root directory, a FIFO, and a hard link."""

INNOCENT = "prove-file"
"""An ordinary file."""

CONTENT = "nothing\n"
"""Its first line."""

SECONDS = 20.0
"""Time limit of git."""


def begin(workspace: Path) -> None:
    """
    Make a repository with a commit in an empty workspace, as an agent finds one. Needs no git.

    :raises OSError: it cannot be written.
    """
    from dulwich.config import ConfigFile, StackedConfig  # takes 100 ms to load
    from dulwich.repo import Repo

    (workspace / INNOCENT).write_text(CONTENT)
    nobodys = StackedConfig([ConfigFile()])  # without the settings of whoever runs this, which may ask for a signature
    with closing(Repo.init(workspace, config=nobodys)) as repository:
        tree = repository.get_worktree()
        tree.stage([INNOCENT])
        tree.commit(b"x", committer=b"x <x@x>", author=b"x <x@x>", config=nobodys, no_verify=True, sign=False)


def plant(workspace: Path, outside: Outside) -> None:
    """
    Leave what leads out: links, a FIFO, settings and a hook with which git runs a command.

    :param workspace: as :func:`begin` made it.
    :raises OSError: it cannot be written.
    """
    (workspace / LINK).symlink_to(outside.file)
    (workspace / DIRECTORY_LINK).symlink_to(outside.file.parent)
    (workspace / ROOT_LINK).symlink_to("/")
    os.mkfifo(workspace / PIPE)
    with (workspace / ".git" / "config").open("a") as settings:
        settings.write(_settings(f"cat {outside.file}; echo planted >>{outside.file}; false"))
    (workspace / ".gitattributes").write_text("* filter=planted diff=planted\n")
    (workspace / INNOCENT).write_text(f"{CONTENT}more\n")
    hook = workspace / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho planted >>{outside.file}\n")
    hook.chmod(0o755)


def has_git() -> bool:
    """:returns: whether this machine has git, for which something may be planted."""
    return host_program("git") is not None


def git(where: Path, *words: str) -> bytes:
    """:returns: what git prints for the owner of the directory."""
    environment = {
        "PATH": host_path(),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    line = [required_program("git", "git"), "-c", f"safe.directory={where}", *words]
    done = bounded.run(line, Bounds(SECONDS), environment=environment, cwd=str(where))
    return done.output + done.errors


def _settings(command: str) -> str:
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    return (
        f'[filter "planted"]\n\tclean = "{quoted}"\n\tsmudge = "{quoted}"\n'
        f'[diff "planted"]\n\ttextconv = "{quoted}"\n'
        f'[core]\n\tfsmonitor = "{quoted}"\n\tpager = "{quoted}"\n\thooksPath = .git/hooks\n'
    )
