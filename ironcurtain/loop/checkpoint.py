"""
Commit the changes of an iteration.

The agent can change the repository so that git runs the agent's programs. So git runs in a sandbox that contains only
the repository.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from twisted.internet.threads import deferToThread

from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.process.piped import command_output
from ironcurtain.process.programs import find_program
from ironcurtain.process.search_path import host_path
from ironcurtain.sandbox import cgroups, programs
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.linked_repository import linked_repository
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.text.display import one_line, shorten

GIT_SECONDS = 120.0
"""Time limit in seconds of one git command: enough for large trees on slow disks."""

SHOWN = 5
"""Most names of changed files in a message."""

OUTPUT_LIMIT = 64 * 1024
"""Most bytes of git's output that are kept: whether there is any matters, its first lines, or the id of a commit."""

_SAFE = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.pager=cat", "-c", "submodule.recurse=false"),
)
"""Settings that override the repository's: a checkpoint commits the files, and runs nothing."""


class Checkpoints:
    """
    :param directory: real path of the workspace.
    :param environ: environment of the repeated command; git inherits a little of it.
    :param home: the user's home, which is empty for git.
    :param settings: content of ``.gitconfig``: the author of the commits.
    :param protected: absolute paths that no agent may touch.
    :param kind: what implements git's sandbox; ``None``: the strongest kind that works.
    """

    def __init__(
        self,
        reactor: Any,
        directory: str,
        environ: Mapping[str, str],
        home: str,
        settings: bytes,
        protected: Sequence[str] = (),
        kind: Kind | None = None,
    ) -> None:
        self._kind = kind
        self._reactor, self._directory, self._home, self._settings = reactor, directory, home, settings
        self._protected = protected
        self._environ = {name: value for name, value in environ.items() if name in ("PATH", "LANG", "TZ")}
        self._environ |= {
            "PATH": host_path(environ.get("PATH"), directory),
            "HOME": home,
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_EDITOR": "false",
        }

    async def check(self, *, is_new: bool) -> None:
        """
        :param is_new: whether no iteration ran yet; later ones can have been killed before their commit.
        :raises UsageError: checkpoints cannot be made in the workspace.
        """
        find_program("git", self._environ, self._directory)
        top = self._top()
        if not top:
            raise UsageError(
                f"--git-checkpoint: {self._directory} is not in a git repository: create one with 'git init'"
            )
        if PurePath(self._home).is_relative_to(top):
            raise UsageError(f"--git-checkpoint: the repository {top} contains a whole home directory")
        try:
            programs.kind_of(self._sandbox())
        except Unavailable as e:
            raise UsageError(f"--git-checkpoint runs git in a sandbox, and {e}") from None
        await self._check_author()
        if is_new:
            await self._check_changes()

    async def _check_author(self) -> None:
        try:
            for role in ("AUTHOR", "COMMITTER"):
                await self._git("var", f"GIT_{role}_IDENT")
        except Unavailable as e:
            raise UsageError(
                f"--git-checkpoint: git does not know who commits ({e}): set it with 'git config --global user.name "
                "NAME' and 'git config --global user.email ADDRESS'"
            ) from None

    async def _check_changes(self) -> None:
        try:
            found = await self._git("status", "--porcelain", "--ignore-submodules=all", "--", ".")
        except Unavailable as e:
            raise UsageError(f"--git-checkpoint: {e}") from None
        if lines := found.splitlines():
            files = ", ".join([*(line[3:] for line in lines[:SHOWN]), *(["..."] if len(lines) > SHOWN else [])])
            raise UsageError(
                "--git-checkpoint: the workspace has changes that are not committed, and a checkpoint shall have only "
                f"those of an iteration: commit or stash them first ({one_line(files, 300)})"
            )

    async def commit(self, message: str) -> tuple[str, str]:
        """:returns: the commit, empty if nothing had changed; and the problem, if there is one."""
        try:
            await self._git("add", "--all", "--", ".")
            if not await self._git("status", "--porcelain", "-uno", "--ignore-submodules=all", "--", "."):
                return "", ""
            # In a whole repository without paths: with them, git would conclude no merge that an iteration began.
            paths = () if self._top() == self._directory else ("--", ".")
            await self._git("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message, *paths)
            return (await self._git("rev-parse", "HEAD")).strip(), ""
        except Unavailable as e:
            return "", str(e)

    def _top(self) -> str:
        """:returns: the nearest directory with ``.git``, empty if there is none."""
        places = (PurePath(self._directory), *PurePath(self._directory).parents)
        return next((str(place) for place in places if os.path.lexists(place / ".git")), "")

    def _sandbox(self) -> Sandbox:
        """:raises UsageError: the repository is elsewhere and may not be used."""
        top, files = self._top(), ((f"{self._home}/.gitconfig", self._settings),)
        found = linked_repository(top, self._protected)
        read, write = ((), ()) if found is None else found.mounts(writable=True)
        return Sandbox(read, (top, *write), home=self._home, cwd=self._directory, files=files, kind=self._kind)

    async def _git(self, *words: str) -> str:
        git = find_program("git", self._environ, self._directory)
        try:
            sandbox = self._sandbox()
        except UsageError as e:
            raise Unavailable(str(e)) from None
        with opened(programs.inputs(sandbox)) as inputs:
            line = programs.command(sandbox, [git, *_SAFE, *words], {number: number for number in inputs})
            ended = await command_output(
                self._reactor,
                [find_program(line[0], self._environ, self._directory), *line[1:]],
                self._environ,
                f"git {words[0]}",
                seconds=GIT_SECONDS,
                limit=OUTPUT_LIMIT,
                directory="/",
                descriptors=inputs,
                whole=False,
                keep_errors=True,
            )
        await deferToThread(cgroups.settle)
        if ended.status != 0:
            raise Unavailable(f"git {words[0]} failed: {shorten(ended.errors.decode('utf-8', 'replace'), 300)}")
        return ended.output.decode("utf-8", "replace")
