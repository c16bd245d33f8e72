"""The sandboxes in which git runs: one for the agent's repository, one with the network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.network_section import Network
from ironcurtain.http.proxies import read_proxies
from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds, Finished, Unfinished
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.linked_repository import linked_repository
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.git_remote.credentials import helper_files, helper_settings, question
from ironcurtain.text.display import one_line

GIT_SECONDS = 600.0
"""Time limit in seconds of a git command (a large repository on a slow line)."""

CREDENTIAL_SECONDS = 60.0
"""Time limit in seconds of the user's credential helper; some open a window."""

SAID_LIMIT = 4000
"""Maximum length in characters of git's output in an answer."""

SSH = "ssh -oBatchMode=yes -oClearAllForwardings=yes -oForwardAgent=no -oPermitLocalCommand=no"

_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.file.allow=always", "gc.auto=0",
             "maintenance.auto=false", "submodule.recurse=false", "fetch.recurseSubmodules=false",
             "core.askPass=", "http.followRedirects=false", "advice.detachedHead=false")  # fmt: skip


class GitFailed(FileError):
    """Git failed. The message contains its last output."""

    code = "GIT_FAILED"


@dataclass(frozen=True, slots=True)
class Runner:
    """
    Runs git.

    :param workspace: real path of the agent's workspace.
    :param environ: the environment of this process.
    :param repository: real path of the workspace's repository if that may be elsewhere; empty: it may not.
    """

    workspace: str
    environ: Mapping[str, str]
    repository: str = ""

    @property
    def _home(self) -> str:
        return self.environ.get("HOME", "/").rstrip("/")

    def in_workspace(
        self, words: Sequence[str], cwd: str, *, writes: bool, read: str = "", out: Path | None = None
    ) -> str:
        """
        Run git on the agent's files: without network and credentials.

        :param read: another directory that it may read.
        :param out: a file for its output.
        :returns: its output.
        :raises GitFailed: it failed.
        """
        return self._git(words, self.workspace_sandbox(cwd, writes=writes, read=read), out)

    def workspace_sandbox(self, cwd: str, *, writes: bool, read: str = "") -> Sandbox:
        """
        :returns: the sandbox of :meth:`in_workspace`.
        :raises GitFailed: the workspace's repository has moved.
        """
        found = linked_repository(self.workspace) if self.repository else None
        if found is not None and found.directory != self.repository:
            raise GitFailed(f"{self.workspace}/.git names another repository than when the session began")
        elsewhere = ((), ()) if found is None else found.mounts(writes)
        also = (*((read,) if read else ()), *elsewhere[0])
        identity = self._settings(("user.name", "user.email"))
        files = ((f"{self._home}/.gitconfig", _config("user", identity)),) if self._home and identity else ()
        return Sandbox(
            read=also if writes else (self.workspace, *also),
            write=((self.workspace,) if writes else ()) + elsewhere[1],
            cwd=cwd,
            home=self._home,
            files=files,
        )

    def in_private(self, words: Sequence[str], directory: str, read: str = "") -> str:
        """Run git in a private directory, without anything else; see :meth:`in_workspace`."""
        return self._git(words, Sandbox((read,) if read else (), (directory,), cwd=directory, home=self._home))

    def in_network(self, words: Sequence[str], directory: str, url: str) -> str:
        """Run git in a private directory with the network, and with the credentials for one address only."""
        home, extra = self._home, dict[str, str]()
        files, read = list[tuple[str, bytes]](), list[str]()
        if urlsplit(url).scheme == "https":
            files, read = self._for_https(url)
        else:
            read = [path for path in (f"{home}/.ssh",) if home and os.path.isdir(path)]
            if (socket := self.environ.get("SSH_AUTH_SOCK")) and os.path.exists(socket):  # not of an agent that ended
                read.append(socket)
                extra["SSH_AUTH_SOCK"] = socket
        return self._git(words, self.network_sandbox(directory, read, files), extra=extra)

    def network_sandbox(
        self, directory: str, read: Sequence[str] = (), files: Sequence[tuple[str, bytes]] = ()
    ) -> Sandbox:
        """
        :param read: what the credentials for one address need.
        :param files: its settings, with the credentials for one address.
        :returns: the sandbox of :meth:`in_network`.
        """
        return Sandbox(tuple(read), (directory,), network=True, cwd=directory, home=self._home, files=tuple(files))

    def _for_https(self, url: str) -> tuple[list[tuple[str, bytes]], list[str]]:
        settings = self._settings(("http.proxy", "http.sslcainfo"), url)
        settings.setdefault("http.proxy", self._proxy(url))
        files = list[tuple[str, bytes]]()
        if self._home:
            done = self._ask(["credential", "fill"], question(url), CREDENTIAL_SECONDS)
            answer = helper_files(url, done.output) if done.status == 0 else ()
            config = _config("http", settings) + (helper_settings() if answer else b"")
            files = [(f"{self._home}/.gitconfig", config), *answer]
        authority = settings.get("http.sslcainfo", "")
        return files, [authority] if authority.startswith("/") and os.path.isfile(authority) else []

    def _proxy(self, url: str) -> str:
        """:returns: the upstream proxy for an address; empty for none. The user's ``http.proxy`` takes precedence."""
        parts = urlsplit(url)
        try:
            proxy = read_proxies(Network(), self.environ).choose("https", parts.hostname or "", parts.port or 443)
        except ConfigurationError as e:
            raise GitFailed(str(e)) from None
        return "" if proxy is None else proxy.url_for("" if proxy.password is None else proxy.password.reveal())

    def _settings(self, names: Sequence[str], url: str = "") -> dict[str, str]:
        """:returns: the given settings of the user; no repository's settings apply."""
        found = {}
        for name in names:
            how = ["--get-urlmatch", name, url] if url else ["--get", name]
            done = self._ask(["config", "--global", *how], b"", GIT_SECONDS)
            if done.status == 0:
                found[name] = done.output.decode(errors="surrogateescape").rstrip("\n")
        return found

    def _ask(self, words: Sequence[str], asked: bytes, seconds: float) -> Finished:
        environment = {**self.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_DIR": "/dev/null", "LC_ALL": "C.UTF-8"}
        command = [self._program(), "-c", "core.askPass=", *words]
        try:
            return bounded.run(command, Bounds(seconds, whole=True), environment=environment, cwd="/", stdin=asked)
        except Unfinished as e:
            raise GitFailed(f"git {words[0]} {e.why} and was ended") from None

    def _program(self) -> str:
        if (git := shutil.which("git", path=self.environ.get("PATH", os.defpath))) is None:
            raise GitFailed("the program git is missing: install it (Debian: apt-get install git)")
        return git

    def variables(self, sandbox: Sandbox) -> dict[str, str]:
        """:returns: the environment of git in a sandbox."""
        return {
            "PATH": self.environ.get("PATH", os.defpath),
            "HOME": sandbox.home or "/tmp",
            "GIT_ALLOW_PROTOCOL": "https:ssh" if sandbox.network else "file",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_SSH_COMMAND": SSH,
            "GIT_SSH_VARIANT": "ssh",
            "LC_ALL": "C.UTF-8",
        }

    def _git(
        self, words: Sequence[str], sandbox: Sandbox, out: Path | None = None, extra: Mapping[str, str] = {}
    ) -> str:
        kind = self.environ.get("IRONCURTAIN_SANDBOX_KIND", "")
        sandbox = replace(sandbox, kind=Kind(kind) if kind else None)
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        line, environment = [self._program(), *settings, *words], {**self.variables(sandbox), **extra}
        try:
            done = programs.run(sandbox, line, environment, Bounds(GIT_SECONDS), out)
        except Unfinished as e:
            raise GitFailed(f"git {words[0]} {e.why} and was ended") from None
        except Unavailable as e:
            raise GitFailed(f"git runs in a sandbox, and {e}") from None
        said = (done.errors if out is not None else done.output + done.errors).decode(errors="replace")
        if done.status:
            lines = [line for line in said.splitlines() if line.strip()]
            raise GitFailed(f"git failed: {one_line(' '.join(lines[-5:]), 1000) or f'status {done.status}'}")
        return said[-SAID_LIMIT:].strip()


def _config(section: str, values: Mapping[str, str]) -> bytes:
    quoted = {
        name.rpartition(".")[2]: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, value in values.items()
    }
    lines = "".join(f'\t{name} = "{value}"\n' for name, value in quoted.items())
    return f"[{section}]\n{lines}".encode(errors="surrogateescape")
