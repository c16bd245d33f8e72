"""The sandboxes in which git runs: one for the agent's repository, one with the network."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.network_section import Network
from ironcurtain.http.hosts import parse_host
from ironcurtain.http.proxies import read_proxies
from ironcurtain.http.upstream_proxies import PROXY_AUTH
from ironcurtain.http.urls import Authority
from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds, Finished, Unfinished
from ironcurtain.process.search_path import host_environment, host_program
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.handover import Handover
from ironcurtain.sandbox.linked_repository import linked_repository
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.git_remote import ssh_settings
from ironcurtain.servers.git_remote.addresses import authority_of
from ironcurtain.servers.git_remote.credentials import helper_files, helper_settings, question
from ironcurtain.servers.git_remote.destinations import PORTS, Destination, lookup_by_proxy, proxy_destination
from ironcurtain.servers.git_remote.relay import relayed
from ironcurtain.servers.git_remote.ssh_settings import SshSettings, read_settings
from ironcurtain.text.display import one_line

GIT_SECONDS = 600.0
"""Time limit in seconds of a git command (a large repository on a slow line)."""

CREDENTIAL_SECONDS = 60.0
"""Time limit in seconds of the user's credential helper; some open a window."""

SAID_LIMIT = 4000
"""Maximum length in characters of git's output in an answer."""

SSH = "ssh -oBatchMode=yes -oClearAllForwardings=yes -oForwardAgent=no -oPermitLocalCommand=no -oAddressFamily=any"

JUMPS = 5
"""Most hosts whose settings are read in order to find the first of them that ssh connects to."""

REDIRECTED = "The server redirects to another address, which git-remote does not follow: call it with that address"

_REDIRECT = re.compile(r"returned error: 30[1278]\b")

_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.file.allow=always", "gc.auto=0",
             "maintenance.auto=false", "submodule.recurse=false", "fetch.recurseSubmodules=false",
             "core.askPass=", "http.followRedirects=false", "advice.detachedHead=false")  # fmt: skip


class GitFailed(FileError):
    """Git failed. The message contains its last output."""

    code = "GIT_FAILED"


class _Needs(msgspec.Struct, frozen=True):
    """
    What git needs for one address.

    :param destination: what it connects to.
    """

    destination: Destination
    read: Sequence[str]
    files: Sequence[tuple[str, bytes]] = ()
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)


class Runner(msgspec.Struct, frozen=True):
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
        """Run git in a private directory with the way to one address only, and with the credentials for it."""
        scheme, authority = authority_of(url)
        needs = self._for_https(url, authority) if scheme == "https" else self._for_ssh(authority)
        sandbox = self.network_sandbox(directory, needs.destination, needs.read, needs.files)
        with relayed(needs.destination) as relay:
            try:
                return self._git(words, sandbox, extra=needs.variables, handover=relay.handover)
            except GitFailed as e:
                raise GitFailed("; ".join((str(e), *dict.fromkeys(relay.problems)))) from None

    def network_sandbox(
        self,
        directory: str,
        destination: Destination,
        read: Sequence[str] = (),
        files: Sequence[tuple[str, bytes]] = (),
    ) -> Sandbox:
        """
        :param destination: all that it can connect to.
        :param read: what the credentials for one address need.
        :param files: its settings, with the credentials for one address.
        :returns: the sandbox of :meth:`in_network`.
        """
        places = Sandbox(tuple(read), (directory,), cwd=directory, home=self._home)
        return replace(places, listeners=(destination.listener,), files=(*destination.files(), *files))

    def _for_https(self, url: str, authority: Authority) -> _Needs:
        settings = self._settings(("http.proxy", "http.sslcainfo"), url)
        negotiates = "http.proxy" not in settings and self.environ.get(PROXY_AUTH) == "negotiate"
        settings.setdefault("http.proxy", self._proxy(url))
        proxy = settings["http.proxy"] = lookup_by_proxy(settings["http.proxy"])
        files = list[tuple[str, bytes]]()
        if self._home:
            done = self._ask(["credential", "fill"], question(url), CREDENTIAL_SECONDS)
            answer = helper_files(url, done.output) if done.status == 0 else ()
            config = _config("http", settings) + (helper_settings() if answer else b"")
            files = [(f"{self._home}/.gitconfig", config), *answer]
        own = settings.get("http.sslcainfo", "")
        read = [own] if own.startswith("/") and os.path.isfile(own) else []
        if not proxy or not self._home:
            return _Needs(Destination(authority.host.name, authority.port or PORTS["https"]), read, files)
        try:
            destination = replace(proxy_destination(proxy), negotiates=negotiates)
        except ValueError as e:
            raise GitFailed(str(e)) from None
        if negotiates and proxy.startswith("https:"):
            raise GitFailed("git-remote sends no Kerberos ticket to a proxy at https://: set git's own http.proxy")
        return _Needs(destination, read, files)

    def _for_ssh(self, authority: Authority) -> _Needs:
        home, variables = self._home, dict[str, str]()
        read = [path for path in (f"{home}/.ssh",) if home and os.path.isdir(path)]
        destination = self._ssh_destination(authority, read)
        if not destination.is_local:
            # Inside, every host has an address of this machine.
            variables["GIT_SSH_COMMAND"] = f"{SSH} -oNoHostAuthenticationForLocalhost=no"
        if (socket := self.environ.get("SSH_AUTH_SOCK")) and os.path.exists(socket):  # not of an agent that ended
            read.append(socket)
            variables["SSH_AUTH_SOCK"] = socket
        return _Needs(destination, read, (), variables)

    def _ssh_destination(self, authority: Authority, read: Sequence[str]) -> Destination:
        """:returns: the host that ssh connects to first, by the user's settings."""
        host, port, user = authority.host.name, authority.port or 0, authority.user
        settled = False
        for _ in range(JUMPS):
            found = self._ssh_settings(ssh_settings.question(host, port, user), read)
            if found.runs:
                raise GitFailed(
                    f"ProxyCommand in {self._home}/.ssh/config makes the connection to {host}, and git-remote lets no "
                    "program do that: use ProxyJump, or give the host itself"
                )
            if found.jump is None:
                reached = parse_host(f"[{found.host}]" if ":" in found.host else found.host)
                if reached is None:
                    raise GitFailed(f"ssh connects to {one_line(found.host, 100)}, which is no host")
                return Destination(reached.name, found.port, settled or reached != authority.host)
            if found.trusts_local:
                raise GitFailed(
                    f"{self._home}/.ssh/config has NoHostAuthenticationForLocalhost and ProxyJump for {host}: "
                    "git-remote needs the host key of the jump to be checked, so leave the first out"
                )
            (host, port), user, settled = found.jump, "", True
        raise GitFailed(f"{self._home}/.ssh/config leads {authority.host.name} through more than {JUMPS} hosts")

    def _ssh_settings(self, words: Sequence[str], read: Sequence[str]) -> SshSettings:
        if (ssh := host_program("ssh", self.environ.get("PATH"), self.workspace)) is None:
            raise GitFailed("the program ssh is missing: install it (Debian: apt-get install openssh-client)")
        done = self._run([ssh, *words], Sandbox(tuple(read), home=self._home))
        try:
            if done.status:
                raise ValueError(done.errors.decode(errors="replace").strip() or f"status {done.status}")
            return read_settings(done.output.decode(errors="replace"))
        except ValueError as e:
            raise GitFailed(f"ssh does not say where it connects to: {one_line(str(e), 500)}") from None

    @property
    def _kind(self) -> Kind | None:
        kind = self.environ.get("IRONCURTAIN_SANDBOX_KIND", "")
        return Kind(kind) if kind else None

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
        environment = {
            **host_environment(self.environ, self.workspace),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_DIR": "/dev/null",
            "LC_ALL": "C.UTF-8",
        }
        command = [self._program(), "-c", "core.askPass=", *words]
        try:
            return bounded.run(command, Bounds(seconds, whole=True), environment=environment, cwd="/", stdin=asked)
        except Unfinished as e:
            raise GitFailed(f"git {words[0]} {e.why} and was ended") from None

    def _program(self) -> str:
        if (git := host_program("git", self.environ.get("PATH"), self.workspace)) is None:
            raise GitFailed("the program git is missing: install it (Debian: apt-get install git)")
        return git

    def variables(self, sandbox: Sandbox) -> dict[str, str]:
        """:returns: the environment of git in a sandbox."""
        return {
            "PATH": self.environ.get("PATH", os.defpath),
            "HOME": sandbox.home or "/tmp",
            "GIT_ALLOW_PROTOCOL": "https:ssh" if sandbox.listeners else "file",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_SSH_COMMAND": SSH,
            "GIT_SSH_VARIANT": "ssh",
            "LC_ALL": "C.UTF-8",
        }

    def _git(
        self,
        words: Sequence[str],
        sandbox: Sandbox,
        out: Path | None = None,
        extra: Mapping[str, str] = {},
        handover: Handover | None = None,
    ) -> str:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        done = self._run([self._program(), *settings, *words], sandbox, out, extra, handover)
        said = (done.errors if out is not None else done.output + done.errors).decode(errors="replace")
        if done.status:
            lines = [line for line in said.splitlines() if line.strip()]
            why = f"git failed: {one_line(' '.join(lines[-5:]), 1000) or f'status {done.status}'}"
            raise GitFailed(f"{why}. {REDIRECTED}" if _REDIRECT.search(said) else why)
        return said[-SAID_LIMIT:].strip()

    def _run(
        self,
        line: Sequence[str],
        sandbox: Sandbox,
        out: Path | None = None,
        extra: Mapping[str, str] = {},
        handover: Handover | None = None,
    ) -> Finished:
        sandbox, name = replace(sandbox, kind=self._kind), os.path.basename(line[0])
        try:
            environment = {**self.variables(sandbox), **extra}
            return programs.run(sandbox, line, environment, Bounds(GIT_SECONDS), out, handover)
        except Unfinished as e:
            raise GitFailed(f"{name} {e.why} and was ended") from None
        except Unavailable as e:
            raise GitFailed(f"{name} runs in a sandbox, and {e}") from None


def _config(section: str, values: Mapping[str, str]) -> bytes:
    quoted = {
        name.rpartition(".")[2]: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, value in values.items()
    }
    lines = "".join(f'\t{name} = "{value}"\n' for name, value in quoted.items())
    return f"[{section}]\n{lines}".encode(errors="surrogateescape")
