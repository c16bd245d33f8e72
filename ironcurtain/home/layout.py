"""
The layout of the home directory. Only this module and :mod:`~ironcurtain.home.session_paths` know the paths below it.

Directories have mode 0700 and files 0600; :mod:`~ironcurtain.files.atomic` writes files there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import msgspec

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.session_paths import RunPaths, SessionPaths
from ironcurtain.home.user_paths import absolute_path, check_encodable
from ironcurtain.text.decoding import decode_text

SOCKET_PATH_LIMIT = 103
"""Maximum length in bytes of a UNIX socket's path on all systems (sun_path: 104 bytes on BSD and macOS)."""

RUN_LIMIT = 60
"""Maximum length in bytes of the ``run`` directory's path: sockets below it fit into :data:`SOCKET_PATH_LIMIT`."""

PROBE_SIZE = 4096
"""Number of bytes with which :meth:`Home.check_writable` tests for free space: a block of common file systems."""


class Home(msgspec.Struct, frozen=True):
    """
    The home directory.

    :param path: absolute.
    :param runtime: where to put sockets if the home's path is too long for them.
    """

    path: Path
    runtime: Path

    @property
    def config(self) -> Path:
        """Settings."""
        return self.path / "config.toml"

    @property
    def policy(self) -> Path:
        """The user's policy; without the file, the default policy applies."""
        return self.path / "policy.toml"

    @property
    def compiled(self) -> Path:
        """Answers of models to constitutions."""
        return self.path / "compiled"

    @property
    def mcp_servers(self) -> Path:
        """The MCP servers; without the file, there is only IronCurtain's file server."""
        return self.path / "mcp-servers.json"

    @property
    def watchers(self) -> Path:
        """The watchers; without the file, there are none."""
        return self.path / "watchers.toml"

    @property
    def watcher_records(self) -> Path:
        """What is remembered of watchers, one file each."""
        return self.path / "watchers"

    @property
    def traces(self) -> Path:
        """What agents of shells did, unless the settings name another file."""
        return self.path / "traces.jsonl"

    @property
    def sessions(self) -> Path:
        """One directory per session."""
        return self.path / "sessions"

    @property
    def downloads(self) -> Path:
        """Programs of MCP servers that were downloaded."""
        return self.path / "downloads"

    @property
    def compiled_programs(self) -> Path:
        """What Node.js compiled of agents' programs, one directory for each agent."""
        return self.path / "compiled-programs"

    @property
    def hooks(self) -> Path:
        """Of the user's programs that are asked before and after commands of a shell's agent."""
        return self.path / "hooks"

    @property
    def tool_definitions(self) -> Path:
        """Pinned definitions of MCP servers' tools, one file per server."""
        return self.path / "tool-definitions"

    @property
    def oauth(self) -> Path:
        """Logins at MCP servers behind HTTP, one file per server."""
        return self.path / "oauth"

    @property
    def accounts(self) -> Path:
        """Logins at model providers, one file per account."""
        return self.path / "accounts"

    @property
    def logins(self) -> Path:
        """One directory for each login in progress."""
        return self.accounts / "working"

    @property
    def logins_lock(self) -> Path:
        """Held while such a directory is made, or those of dead processes are removed."""
        return self.accounts / "working.lock"

    @property
    def registry(self) -> Path:
        """One file per live session, for consoles of every process."""
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
        """The daemon's log file, unless ``twistd --logfile`` names another."""
        return self.logs / "ironcurtain.log"

    @property
    def daemon_pid(self) -> Path:
        """The daemon's pid file, unless ``twistd --pidfile`` names another."""
        return self.path / "twistd.pid"

    @property
    def run(self) -> Path:
        """Sockets, in one directory per session."""
        inside = self.path / "run"
        return inside if len(os.fsencode(inside)) <= RUN_LIMIT else self.runtime

    @property
    def daemon_socket(self) -> Path:
        """The daemon's control API."""
        return self.run / "daemon.sock"

    def owner_socket(self, pid: int) -> Path:
        """:returns: the control socket of a process that owns sessions and is not the daemon."""
        return self.run / f"owner-{pid}.sock"

    def owner_sockets(self) -> Iterator[tuple[Path, int]]:
        """:returns: the sockets of all such processes, with their pids, including killed ones."""
        for path in self.run.glob("owner-*.sock"):
            if (pid := path.stem.removeprefix("owner-")).isdigit():
                yield path, int(pid)

    @property
    def fleet(self) -> Path:
        """Sockets to other hosts' processes, while the daemon is a member of a fleet."""
        return self.run / "fleet"

    def fleet_socket(self, host: str, process: str) -> Path:
        """:returns: the socket to a process of another host, in a directory with a short name: paths are limited."""
        return self.fleet / f"{crc32(host.encode()):08x}" / f"{process}.sock"

    @property
    def fleet_members(self) -> Path:
        """What is known of the members now, written by the daemon."""
        return self.fleet / "members.json"

    @property
    def fleet_server(self) -> Path:
        """The files of the fleet's server, on the host that has them."""
        return self.path / "fleet"

    @property
    def fleet_credentials(self) -> Path:
        """What this host needs to reach the fleet's server."""
        return self.path / "fleet.credentials"

    @property
    def fleet_trust(self) -> Path:
        """The hosts that this one believes, and for whom they may speak."""
        return self.path / "fleet.trust"

    @property
    def records(self) -> Path:
        """The key that signs audit logs."""
        return self.path / "audit"

    @property
    def unsent_heads(self) -> Path:
        """The heads of audit logs that witnesses lack."""
        return self.records / "unsent"

    @property
    def removed_sessions(self) -> Path:
        """Which sessions were removed together with their audit logs."""
        return self.records / "removed.jsonl"

    @property
    def authority(self) -> Path:
        """The certificate authority of the MITM proxy."""
        return self.path / "ca"

    @property
    def slots(self) -> Path:
        """One locked file per session with a container."""
        return self.run / "slots"

    def session_run(self, session_id: str) -> RunPaths:
        """:returns: the sockets of a session, in a directory named by the first 12 hexadecimal digits of its id."""
        return RunPaths(self.run / session_id.replace("-", "")[:12])

    def numbers(self, name: str) -> Path:
        """:returns: the file of a counter, which only increases."""
        return self.path / f"{name}.number"

    def session(self, session_id: str) -> SessionPaths:
        """:returns: the files of a session, whether it exists or not."""
        return SessionPaths(self.sessions / session_id)

    def prepare(self) -> None:
        """
        Create the directories that every process needs.

        :raises UsageError: the home or the socket directory belongs to somebody else, or is a link.
        """
        for directory in (self.path, self.sessions, self.registry, self.logs, self.run):
            private_directory(directory)

    def check_writable(self) -> None:
        """
        Write a file to the home and remove it.

        :raises UsageError: that fails, because the disk is full or the file system is read-only.
        """
        tried = self.path / f".writable-{os.getpid()}"
        try:
            tried.write_bytes(b"x" * PROBE_SIZE)
        except OSError as e:
            raise UsageError(f"cannot write to the home {self.path}: {e.strerror}") from None
        finally:
            with suppress(OSError):
                tried.unlink()


def find_home(environ: Mapping[str, str], uid: int) -> Home:
    """
    The home that the environment selects: ``IRONCURTAIN_HOME``, else ``~/.ironcurtain``.

    :raises UsageError: neither it nor ``HOME`` is set, or it is not a directory that can be reached, or begins with
        ``~`` or a variable.
    """
    chosen = environ.get("IRONCURTAIN_HOME", "")
    if not chosen and not environ.get("HOME"):
        raise UsageError("neither IRONCURTAIN_HOME nor HOME is set: set one of them")
    path = Path(os.path.normpath(absolute_path(chosen or "~/.ironcurtain", environ)))
    if chosen.startswith(("~", "$")):  # other programs that use the variable, such as a unit's, would take it literally
        raise UsageError(f"IRONCURTAIN_HOME is {chosen}, which no shell has expanded: write {path}")
    try:
        nearest = next(place for place in (path, *path.parents) if _exists(place))
    except OSError as e:
        advice = "set IRONCURTAIN_HOME to another directory"
        raise UsageError(f"the home {path} cannot be used: {e.strerror}: {advice}") from None
    if not nearest.is_dir():
        what = f"the home {path}" if nearest == path else f"the home {path} cannot be made: {nearest}"
        raise UsageError(f"{what} is not a directory: move that file away, or set IRONCURTAIN_HOME")
    if not chosen and not path.parent.is_dir():
        raise UsageError(
            f"HOME is {path.parent}, which does not exist: set IRONCURTAIN_HOME to a directory for the home"
        )
    mark = f"{crc32(os.fsencode(path)):08x}"
    runtime = Path(environ.get("XDG_RUNTIME_DIR", ""), f"ironcurtain-{mark}")
    return Home(path, runtime if _is_usable(runtime, uid) else Path(f"/tmp/ironcurtain-{uid}-{mark}"))


def _is_usable(runtime: Path, uid: int) -> bool:
    """Whether the directory above is the user's own: ``su`` and containers keep the variable of another login."""
    if not runtime.is_absolute() or len(os.fsencode(runtime)) > RUN_LIMIT:
        return False
    try:
        check_encodable(str(runtime))
        status = runtime.parent.stat()
    except (OSError, UsageError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid and os.access(runtime.parent, os.W_OK | os.X_OK)


def _exists(path: Path) -> bool:
    """:raises OSError: it cannot be known, such as in a directory that may not be searched."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def private_directory(path: Path) -> Path:
    """
    Create a directory that only its owner can enter, with its parents, or check an existing one.

    :raises UsageError: it is a link, not a directory, or somebody else's; or this account may not make it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    except PermissionError as e:
        raise UsageError(f"{path} cannot be made: {e.strerror}: set IRONCURTAIN_HOME to a directory of yours") from None
    except FileExistsError:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise UsageError(f"{path} must be a directory of your own, not a link: move it away") from None
        if stat.S_IMODE(status.st_mode) != 0o700:
            path.chmod(0o700)
    return path


def account_directory(path: Path, uid: int, gid: int) -> Path:
    """
    Create a directory that only an account can enter, or check an existing one.

    :param uid: uid of the account; the directory belongs to it if this process is root.
    :raises UsageError: it is a link, not a directory, or somebody else's.
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


def read_configuration(path: Path, limit: int | None = None) -> str | None:
    """
    Read a configuration file.

    :param limit: most bytes of a file that others can write.
    :returns: its text, decoded by :mod:`~ironcurtain.text.decoding`; ``None`` if it does not exist.
    :raises ConfigurationError: it is not a regular file, cannot be read, is too large, or is not UTF-8.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a FIFO would block
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ConfigurationError(str(path), "is not a regular file")
        with os.fdopen(fd, "rb") as file:
            data = file.read() if limit is None else file.read(limit + 1)
        if limit is not None and len(data) > limit:
            raise ConfigurationError(str(path), f"is larger than {limit} bytes")
        return decode_text(str(path), data)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise ConfigurationError(str(path), f"cannot be read: {e.strerror}") from None
