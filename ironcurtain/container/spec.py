"""
What a container is: a value, the Engine's request made from it, where things are inside, and the labels of its owner.

Everything that keeps an agent inside is written down here, in :meth:`ContainerSpec.create_request`, and none of it is
an option. What an image asks for (volumes, user, health checks, stop signal) is overridden or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironcurtain.errors import UsageError
from ironcurtain.process.identity import ProcessIdentity
from ironcurtain.sandbox.container_calls import profile

MIB = 1024 * 1024

OPEN_FILES = 16384
"""
Most open files of a process inside (enough for bundlers and language servers). An Engine without all rights
cannot give more than it has itself, which was 20000 at the least.
"""

SHARED_MEMORY_MB = 64
"""MiB of ``/dev/shm``: the Engine's own default, which counts as memory."""

LOG_OPTIONS = {"max-size": "256k", "max-file": "1"}
"""What the Engine keeps of the main program's output, so that a failed start can be explained."""

MIRRORED = ("/", "/dev", "/proc", "/sys", "/tmp")
"""Places that are the container's own; nothing of this machine may be mounted at or below them, but below ``/``."""


WORKSPACE = "/workspace"
"""What the agent works on, writable."""

HOME = "/home/agent"
"""The agent's own home directory, writable and kept between containers of one session."""

SOCKETS = "/run/ironcurtain"
"""The sockets of the two proxies; read-only, since connecting needs no more."""

ORIENTATION = "/etc/ironcurtain"
"""Files that we made for the agent, read-only."""

SOCKET_NAMES = frozenset(("proxy.sock", "mitm-proxy.sock"))
"""The only sockets below :data:`SOCKETS`: the MCP proxy's and the MITM proxy's."""

USER = "agent"
"""The user's name inside, whatever the account is called outside."""

SESSION_LABEL, HOME_LABEL = "ironcurtain.session", "ironcurtain.home"
PID_LABEL, PID_START_LABEL, BOOT_ID_LABEL = "ironcurtain.pid", "ironcurtain.pid-start", "ironcurtain.boot-id"
"""
The labels that say whose a container is: the session, the home, and the process that owns it, so precisely that no
later process is taken for it.
"""


@dataclass(frozen=True, slots=True)
class Mount:
    """
    A file or directory of this machine inside the container.

    :param source: absolute path here; must exist.
    :param target: absolute path there.
    """

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """
    One container.

    :param command: the main program, given to the image's entry point; the container lives as long as it does.
    :param uid: never 0.
    :param tmpfs_mb: MiB of ``/tmp``, which count as memory.
    :param cpus: how many processors' worth of time.
    :param pids: most processes and threads.
    :param tty: whether the main program has a terminal, to be reached by attaching.
    :raises UsageError: the user is root, or a mount is none that we make.
    """

    name: str
    image: str
    command: tuple[str, ...]
    uid: int
    gid: int
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    tmpfs_mb: int
    memory_mb: int
    cpus: float
    pids: int
    labels: Mapping[str, str]
    tty: bool = False

    def __post_init__(self) -> None:
        if self.uid <= 0 or self.gid < 0:
            raise UsageError("an agent never runs as root: set run_as in config.toml to another account")
        if self.tmpfs_mb + SHARED_MEMORY_MB >= self.memory_mb:
            raise UsageError(f"{self.memory_mb} MiB of memory cannot hold {self.tmpfs_mb} MiB of /tmp: give it more")
        targets = [mount.target for mount in self.mounts]
        for mount in self.mounts:
            if not mount.source.startswith("/") or not _mountable(mount.target) or targets.count(mount.target) > 1:
                raise UsageError(f"{mount.source!r} cannot be mounted at {mount.target!r} in a container")

    def create_request(self) -> dict[str, Any]:
        """:returns: the body of ``POST /containers/create``."""
        return {
            "Image": self.image,
            "Cmd": list(self.command),
            "User": f"{self.uid}:{self.gid}",
            "Env": [f"{name}={value}" for name, value in self.environment.items()],
            "Labels": dict(self.labels),
            "Hostname": "ironcurtain",
            "WorkingDir": "/workspace",
            "Tty": self.tty,
            "OpenStdin": self.tty,
            "StopSignal": "SIGTERM",
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": {
                "NetworkMode": "none",
                "IpcMode": "private",
                "CgroupnsMode": "private",
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges", f"seccomp={profile()}"],
                "Privileged": False,
                "ReadonlyRootfs": True,
                "Init": True,
                "RestartPolicy": {"Name": "no"},
                "Memory": self.memory_mb * MIB,
                "MemorySwap": self.memory_mb * MIB,  # memory and swap together: so no swap
                "NanoCpus": round(self.cpus * 1e9),
                "PidsLimit": self.pids,
                "ShmSize": SHARED_MEMORY_MB * MIB,
                "Ulimits": [
                    {"Name": "core", "Soft": 0, "Hard": 0},
                    {"Name": "nofile", "Soft": OPEN_FILES, "Hard": OPEN_FILES},
                ],
                "Tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={self.tmpfs_mb}m"},
                "Mounts": [_bind(mount) for mount in self.mounts],
                "LogConfig": {"Type": "none"} if self.tty else {"Type": "json-file", "Config": LOG_OPTIONS},
            },
        }


def _mountable(target: str) -> bool:
    if not target.startswith("/") or "//" in target or {".", ".."} & set(target.split("/")):
        return False
    return not any(target == place or (place != "/" and target.startswith(f"{place}/")) for place in MIRRORED)


def _bind(mount: Mount) -> dict[str, Any]:
    # This form, unlike "Binds", takes any character in a path and refuses a source that does not exist.
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": "rprivate"},
    }


def mounts(*, workspace: str, home: str, sockets: str, orientation: str, passwd: str, group: str) -> tuple[Mount, ...]:
    """
    All that a session's container sees of this machine.

    :param passwd: a file with the text of :func:`passwd_text`, ``group`` one with that of :func:`group_text`.
    """
    return (
        Mount(workspace, WORKSPACE, read_only=False),
        Mount(home, HOME, read_only=False),
        Mount(sockets, SOCKETS),
        Mount(orientation, ORIENTATION),
        Mount(passwd, "/etc/passwd"),
        Mount(group, "/etc/group"),
    )


def passwd_text(uid: int, gid: int) -> str:
    """:returns: an ``/etc/passwd`` in which the user exists; without it Node, git and ssh fail."""
    return f"root:x:0:0:root:/:/bin/false\n{USER}:x:{uid}:{gid}:{USER}:{HOME}:/bin/sh\n"


def group_text(gid: int) -> str:
    """:returns: an ``/etc/group`` in which the user's group exists."""
    return f"{USER}:x:{gid}:\n" if gid == 0 else f"root:x:0:\n{USER}:x:{gid}:\n"


def owner_labels(session_id: str, home: str, owner: ProcessIdentity) -> dict[str, str]:
    """:returns: the labels of a container of a session."""
    return {
        SESSION_LABEL: session_id,
        HOME_LABEL: home,
        PID_LABEL: str(owner.pid),
        PID_START_LABEL: str(owner.start_time),
        BOOT_ID_LABEL: owner.boot_id,
    }


def owner_of(labels: Mapping[str, str]) -> ProcessIdentity | None:
    """:returns: the process that owns a container; ``None`` if the labels do not say."""
    pid, start = labels.get(PID_LABEL, ""), labels.get(PID_START_LABEL, "")
    if not (pid.isascii() and pid.isdigit() and start.isascii() and start.isdigit() and BOOT_ID_LABEL in labels):
        return None
    return ProcessIdentity(int(pid), int(start), labels[BOOT_ID_LABEL])
