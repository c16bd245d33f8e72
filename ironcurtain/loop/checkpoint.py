"""
Commit what an iteration changed.

The agent may have changed the repository itself. So git is run without hooks and with nothing of the repository's own
settings that would start a program; where it has such settings, no checkpoint is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.display import one_line
from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.policy.repositories import TooManyNested, open_repository, with_nested
from ironcurtain.terminal.pty import find_program

GIT_SECONDS = 120.0
"""How long one git command may take (our choice: large trees on slow disks)."""

OUTPUT_LIMIT = 64 * 1024

_SAFE = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.pager=cat", "-c", "submodule.recurse=false"),
)
"""Settings that win over those of the repository and of the user."""


class Checkpoints:
    """
    :param directory: the workspace.
    :param environ: of git.
    :param home: the user's, where git's settings are.
    """

    def __init__(self, reactor: Any, directory: str, environ: Mapping[str, str], home: str) -> None:
        self._reactor, self._directory, self._home = reactor, directory, home
        self._environ = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
        self._environ |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_EDITOR": "false"}

    async def check(self) -> None:
        """
        :raises UsageError: the workspace is no repository in which checkpoints can be made.
        """
        find_program("git", self._environ, self._directory)
        if problem := self._problem():
            raise UsageError(f"--git-checkpoint: {problem}")

    async def commit(self, message: str) -> tuple[str, str]:
        """
        :returns: the commit, empty if nothing had changed; and why there is none, if that is something else.
        """
        if problem := self._problem():
            return "", problem
        try:
            await self._git("add", "--all")
            if not await self._git("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"):
                return "", ""
            await self._git("commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", message)
            return (await self._git("rev-parse", "HEAD")).strip(), ""
        except Unavailable as e:
            return "", str(e)

    def _problem(self) -> str:
        found = open_repository(self._directory, self._home)
        if not found.git_directories:
            return f"{self._directory} is in no git repository: make one with 'git init'"
        try:
            programs = [program for each in with_nested(found, self._home) for program in each.programs()]
        except TooManyNested as e:
            return str(e)
        if programs:
            return f"the repository's own settings start programs ({', '.join(programs[:5])}): remove them"
        return ""

    async def _git(self, *words: str) -> str:
        git = find_program("git", self._environ, self._directory)
        command = _Git()
        process = self._reactor.spawnProcess(
            command, git, [git, *_SAFE, *words], self._environ, self._directory, childFDs={0: "w", 1: "r", 2: "r"}
        )
        process.closeStdin()
        late = self._reactor.callLater(GIT_SECONDS, process.signalProcess, "KILL")
        try:
            status = await command.ended
        finally:
            if late.active():
                late.cancel()
        if status:
            raise Unavailable(f"git {words[0]} failed: {one_line(command.output(2), 300)}")
        return command.output(1)


class _Git(ProcessProtocol):
    def __init__(self) -> None:
        self.ended: Deferred[int] = Deferred()
        self._said: dict[int, bytes] = {1: b"", 2: b""}

    def output(self, descriptor: int) -> str:
        return self._said[descriptor].decode("utf-8", "replace")

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        self._said[childFD] = (self._said[childFD] + data)[:OUTPUT_LIMIT]

    def processEnded(self, reason: Failure) -> None:
        status = getattr(reason.value, "exitCode", None)
        self.ended.callback(-1 if status is None else status)
