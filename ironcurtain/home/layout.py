"""
Where everything lies: the one module that knows the paths under the home directory.

Directories are 0700 and files 0600; ``publication`` puts files there.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ironcurtain.errors import ConfigurationError, UsageError

SOCKET_PATH_LIMIT = 103
"""Most bytes of a UNIX socket's path that works everywhere (sun_path is 104 bytes on BSD and macOS, 108 on Linux)."""

RUN_LIMIT = 60
"""Most bytes of the ``run`` directory's path, so that every socket below it stays within :data:`SOCKET_PATH_LIMIT`."""

PROBE_SIZE = 4096
"""Bytes by which :meth:`Home.check_writable` tries whether there is room: a block of the usual file systems."""


@dataclass(frozen=True, slots=True)
class SessionPaths:
    """The files of one session. Only ``sandbox`` and ``home`` are ever the agent's."""

    directory: Path

    @property
    def sandbox(self) -> Path:
        """The workspace, unless the user gave another one."""
        return self.directory / "sandbox"

    @property
    def escalations(self) -> Path:
        """Requests and responses for other programs."""
        return self.directory / "escalations"

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self.directory / "audit.jsonl"

    @property
    def log(self) -> Path:
        """What happened, for people."""
        return self.directory / "session.log"

    @property
    def history(self) -> Path:
        """The conversation, one turn a line."""
        return self.directory / "history.jsonl"

    @property
    def snapshot(self) -> Path:
        """What the session is and was: kind, label, state, workspace."""
        return self.directory / "session.json"

    @property
    def lock(self) -> Path:
        """Held by the process in which the session runs."""
        return self.directory / "session.lock"

    @property
    def agent_home(self) -> Path:
        """The home directory of an agent in a container, kept between containers."""
        return self.directory / "home"

    @property
    def recording(self) -> Path:
        """What the agent's terminal showed, to be played again."""
        return self.directory / "recording.cast"

    @property
    def loop(self) -> Path:
        """How far a loop has come."""
        return self.directory / "loop.json"

    @property
    def iterations(self) -> Path:
        """What each iteration of a loop said, and the events for the next one."""
        return self.directory / "iterations"

    @property
    def orientation(self) -> Path:
        """What an agent in a container is told, and cannot change."""
        return self.directory / "orientation"

    @property
    def users(self) -> Path:
        """The ``passwd`` and ``group`` of a container."""
        return self.directory / "users"

    @property
    def manifest(self) -> Path:
        """What was in the workspace when the session first started."""
        return self.directory / "manifest.jsonl"

    @property
    def originals(self) -> Path:
        """Copies of files of the workspace as they were then."""
        return self.directory / "originals"

    @property
    def findings(self) -> Path:
        """What a person should look at in the workspace, found when the session last ended."""
        return self.directory / "findings.json"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The sockets of one session with a container; they go when it ends."""

    directory: Path

    @property
    def agent(self) -> Path:
        """What the container sees of it: the sockets of the two proxies."""
        return self.directory / "agent"

    @property
    def host(self) -> Path:
        """What the container must never see."""
        return self.directory / "host"

    @property
    def stream_socket(self) -> Path:
        """The terminal's, for viewers in other processes."""
        return self.host / "stream.sock"

    @property
    def proxy_socket(self) -> Path:
        """The MCP proxy's."""
        return self.agent / "proxy.sock"

    @property
    def mitm_socket(self) -> Path:
        """The MITM proxy's."""
        return self.agent / "mitm-proxy.sock"


@dataclass(frozen=True, slots=True)
class Home:
    """
    The home directory.

    :param path: absolute.
    :param runtime: where sockets go if the home's path is too long for them.
    """

    path: Path
    runtime: Path

    @property
    def config(self) -> Path:
        """Settings."""
        return self.path / "config.toml"

    @property
    def policy(self) -> Path:
        """The user's policy; the default one holds where it does not exist."""
        return self.path / "policy.toml"

    @property
    def mcp_servers(self) -> Path:
        """The MCP servers; our own file server alone where it does not exist."""
        return self.path / "mcp-servers.json"

    @property
    def traces(self) -> Path:
        """What agents of shells did, unless the settings name another file."""
        return self.path / "traces.jsonl"

    @property
    def sessions(self) -> Path:
        """One directory a session."""
        return self.path / "sessions"

    @property
    def downloads(self) -> Path:
        """Programs of MCP servers that were downloaded once."""
        return self.path / "downloads"

    @property
    def hooks(self) -> Path:
        """Of the user's programs that are asked before and after commands of a shell's agent."""
        return self.path / "hooks"

    @property
    def tool_definitions(self) -> Path:
        """Definitions of MCP servers' tools as they were accepted, a file for each server."""
        return self.path / "tool-definitions"

    @property
    def registry(self) -> Path:
        """One file a live session, for consoles of every process."""
        return self.path / "pty-registry"

    @property
    def listener_lock(self) -> Path:
        """Held by the one local console."""
        return self.path / "escalation-listener.lock"

    @property
    def logs(self) -> Path:
        """The daemon's logs."""
        return self.path / "logs"

    @property
    def daemon_lock(self) -> Path:
        """Held by the daemon."""
        return self.path / "daemon.lock"

    @property
    def daemon_log(self) -> Path:
        """The daemon's log file, unless ``twistd --logfile`` says otherwise."""
        return self.logs / "ironcurtain.log"

    @property
    def daemon_pid(self) -> Path:
        """The daemon's pid file, unless ``twistd --pidfile`` says otherwise."""
        return self.path / "twistd.pid"

    @property
    def run(self) -> Path:
        """Sockets, each session's in a directory of its own."""
        inside = self.path / "run"
        return inside if len(os.fsencode(inside)) <= RUN_LIMIT else self.runtime

    @property
    def daemon_socket(self) -> Path:
        """The daemon's control API."""
        return self.run / "daemon.sock"

    def owner_socket(self, pid: int) -> Path:
        """The control API of a process that owns sessions without being the daemon."""
        return self.run / f"owner-{pid}.sock"

    def owner_sockets(self) -> Iterator[tuple[Path, int]]:
        """:returns: the sockets of all such processes, those that were killed among them, with their pids."""
        for path in self.run.glob("owner-*.sock"):
            if (pid := path.stem.removeprefix("owner-")).isdigit():
                yield path, int(pid)

    @property
    def authority(self) -> Path:
        """The certificate authority of the MITM proxy."""
        return self.path / "ca"

    @property
    def slots(self) -> Path:
        """One locked file for each session with a container."""
        return self.run / "slots"

    def session_run(self, session_id: str) -> RunPaths:
        """The sockets of a session, in a directory called by the first 12 hexadecimal digits of its id."""
        return RunPaths(self.run / session_id.replace("-", "")[:12])

    def numbers(self, name: str) -> Path:
        """The file of a counter that never goes back."""
        return self.path / f"{name}.number"

    def session(self, session_id: str) -> SessionPaths:
        """The files of a session, whether it exists or not."""
        return SessionPaths(self.sessions / session_id)

    def prepare(self) -> None:
        """
        Make the directories that every process needs.

        :raises UsageError: the home or the socket directory belongs to somebody else, or is a link.
        """
        for directory in (self.path, self.sessions, self.registry, self.logs, self.run):
            private_directory(directory)

    def check_writable(self) -> None:
        """
        Write a file to the home and remove it.

        :raises UsageError: that fails: the disk is full, or the file system is read-only.
        """
        tried = self.path / f".writable-{os.getpid()}"
        try:
            tried.write_bytes(b"x" * PROBE_SIZE)
        except OSError as e:
            raise UsageError(f"nothing can be written to the home {self.path}: {e.strerror}") from None
        finally:
            with suppress(OSError):
                tried.unlink()


def find_home(environ: Mapping[str, str], uid: int) -> Home:
    """
    The home that the environment names: ``IRONCURTAIN_HOME``, else ``~/.ironcurtain``.

    :raises UsageError: neither it nor ``HOME`` is set, or it is no directory.
    """
    chosen = environ.get("IRONCURTAIN_HOME", "")
    if not chosen and not environ.get("HOME"):
        raise UsageError("neither IRONCURTAIN_HOME nor HOME is set: set one of them")
    path = Path(os.path.abspath(chosen or os.path.join(environ["HOME"], ".ironcurtain")))
    nearest = next(place for place in (path, *path.parents) if place.exists())
    if not nearest.is_dir():
        what = f"the home {path}" if nearest == path else f"the home {path} cannot be made: {nearest}"
        raise UsageError(f"{what} is no directory: move that file away, or set IRONCURTAIN_HOME")
    mark = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    base = environ.get("XDG_RUNTIME_DIR", "")
    runtime = Path(base, f"ironcurtain-{mark}") if base else Path(f"/tmp/ironcurtain-{uid}-{mark}")
    return Home(path, runtime)


def account_home(uid: int) -> str:
    """:returns: the home directory that the system has for a user, whatever the environment says."""
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"


def person_home(environ: Mapping[str, str], uid: int) -> str:
    """:returns: what ``~`` means: ``HOME``, or where that is not set, the account's home."""
    return environ.get("HOME") or account_home(uid)


def private_directory(path: Path) -> Path:
    """
    Make a directory that only its owner may enter, with its parents, or check the one that is there.

    :raises UsageError: it is a link, no directory, or somebody else's.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise UsageError(f"{path} must be a directory of your own, not a link: move it away") from None
        if stat.S_IMODE(status.st_mode) != 0o700:
            path.chmod(0o700)
    return path


def account_directory(path: Path, uid: int, gid: int) -> Path:
    """
    Make a directory that only an account may enter, or check the one that is there.

    :param uid: of the account; its directory when we are root.
    :raises UsageError: it is a link, no directory, or somebody else's.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), uid):
            raise UsageError(f"{path} must be a directory of the session's account: move it away") from None
    if path.lstat().st_uid != uid:
        os.chown(path, uid, gid, follow_symlinks=False)
    return path


def socket_path(path: Path) -> str:
    """
    :returns: the path as text.
    :raises UsageError: it is too long for a UNIX socket.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise UsageError(f"{path} is over {SOCKET_PATH_LIMIT} bytes, too long for a UNIX socket: choose a shorter one")
    return str(path)


def read_configuration(path: Path) -> str | None:
    """
    Read a file that the user writes.

    :returns: its text; ``None`` if there is none.
    :raises ConfigurationError: it is no regular file, cannot be read, or is not UTF-8.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO would keep us waiting
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ConfigurationError(str(path), "is no regular file")
        with os.fdopen(fd, "rb") as file:
            return file.read().decode()
    except FileNotFoundError:
        return None
    except OSError as e:
        raise ConfigurationError(str(path), f"cannot be read: {e.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(str(path), "is not UTF-8 text") from None
