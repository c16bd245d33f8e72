"""
The specification of a container, the Engine's request for it, paths inside, and the labels that name its owner.

:meth:`ContainerSpec.create_request` contains all settings that confine an agent; none of them is an option. Requests of
an image (volumes, user, health checks, stop signal) are overridden or refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.process.identity import ProcessIdentity
from ironcurtain.sandbox.container_calls import profile
from ironcurtain.sandbox.linked_repository import LinkedRepository

MIB = 1024 * 1024

OPEN_FILES = 16384
"""
Maximum number of open files of a process (enough for bundlers and language servers). A rootless Engine cannot give more
than its own limit, which was at least 20000.
"""

SHARED_MEMORY_MB = 64
"""Size of ``/dev/shm`` in MiB: the Engine's default. It counts as memory."""

LOG_OPTIONS = {"max-size": "256k", "max-file": "1"}
"""How much of the main program's output the Engine keeps, to explain a failed start."""

NO_NETWORK = "none"
"""The Engine's network with nothing but loopback."""

MIRRORED = ("/", "/dev", "/proc", "/sys", "/tmp")
"""Directories that belong to the container: no mounts at them, nor below any of them but ``/``."""


WORKSPACE = "/workspace"
"""The workspace, writable."""

HOME = "/home/agent"
"""The agent's home directory, writable and kept for all containers of a session."""

SOCKETS = "/run/ironcurtain"
"""The sockets of the two proxies; read-only, since connecting needs no more."""

ORIENTATION = "/etc/ironcurtain"
"""Files that IronCurtain writes for the agent, read-only."""

SOCKET_NAMES = frozenset(("proxy.sock", "mitm-proxy.sock"))
"""The only sockets below :data:`SOCKETS`: the MCP proxy's and the MITM proxy's."""

USER = "agent"
"""The user's name inside, whatever the account is called outside."""

SESSION_LABEL, HOME_LABEL = "ironcurtain.session", "ironcurtain.home"
ROLE_LABEL, SIDECAR = "ironcurtain.role", "sidecar"
PID_LABEL, PID_START_LABEL, BOOT_ID_LABEL = "ironcurtain.pid", "ironcurtain.pid-start", "ironcurtain.boot-id"
"""
Labels for a container's session, home, role (an agent's has none) and owning process. They identify the process so
exactly that no later process can be mistaken for it.
"""


class Mount(msgspec.Struct, frozen=True):
    """
    A file or directory of this machine to mount in a container.

    :param source: absolute path on this machine; must exist.
    :param target: absolute path in the container.
    :param volume: the source is the name of a volume of the Engine instead.
    """

    source: str
    target: str
    read_only: bool = True
    volume: bool = False


class ContainerSpec(msgspec.Struct, frozen=True):
    """
    One container.

    :param command: the main program, passed to the image's entry point. The container ends with it.
    :param uid: never 0.
    :param tmpfs_mb: size of ``/tmp`` in MiB, which counts as memory.
    :param cpus: processor time, in processors.
    :param pids: maximum number of processes and threads.
    :param tty: whether the main program has a terminal to attach to.
    :param directory: where programs start.
    :param bridge: whether the image's entry point runs first, which makes the MITM proxy's address inside.
    :raises UsageError: the user is root, or a mount is not allowed.
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
    directory: str = WORKSPACE
    bridge: bool = True

    def __post_init__(self) -> None:
        if self.uid <= 0 or self.gid < 0:
            raise UsageError("an agent never runs as root: set run_as in config.toml to another account")
        if self.tmpfs_mb + SHARED_MEMORY_MB >= self.memory_mb:
            raise UsageError(
                f"{self.memory_mb} MiB of memory is too little for a /tmp of {self.tmpfs_mb} MiB: give it more"
            )
        targets = [mount.target for mount in self.mounts]
        for mount in self.mounts:
            if (
                mount.source.startswith("/") == mount.volume
                or not _mountable(mount.target)
                or targets.count(mount.target) > 1
            ):
                raise UsageError(f"{mount.source!r} cannot be mounted at {mount.target!r} in a container")

    @property
    def network(self) -> str:
        """The only network that it is in: the one with nothing but loopback."""
        return NO_NETWORK

    def create_request(self) -> dict[str, Any]:
        """:returns: the body of ``POST /containers/create``."""
        return {
            "Image": self.image,
            "Cmd": list(self.command),
            **({} if self.bridge else {"Entrypoint": [""]}),  # which stands for none
            "User": f"{self.uid}:{self.gid}",
            "Env": [f"{name}={value}" for name, value in self.environment.items()],
            "Labels": dict(self.labels),
            "Hostname": "ironcurtain",
            "WorkingDir": self.directory,
            "Tty": self.tty,
            "OpenStdin": self.tty,
            "StopSignal": "SIGTERM",
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": {
                "NetworkMode": self.network,
                "IpcMode": "private",
                "CgroupnsMode": "private",
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges", f"seccomp={profile()}"],
                "Privileged": False,
                "ReadonlyRootfs": True,
                "Init": True,
                "RestartPolicy": {"Name": "no"},
                "Memory": self.memory_mb * MIB,
                "MemorySwap": self.memory_mb * MIB,  # limit of memory plus swap, so no swap
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
    if mount.volume:
        place = {"Type": "volume", "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}
        return {**place, "VolumeOptions": {"NoCopy": True}}
    # Unlike "Binds", this accepts any character in a path and refuses a missing source.
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": "rprivate"},
    }


def mounts(
    *,
    workspace: str,
    places: Sequence[str],
    home: str,
    sockets: str,
    orientation: str,
    passwd: str,
    group: str,
) -> tuple[Mount, ...]:
    """
    All mounts of a session's container.

    :param places: the paths of the workspace in it.
    :param passwd: a file with the text of :func:`passwd_text`.
    :param group: a file with the text of :func:`group_text`.
    """
    return (
        *(Mount(workspace, place, read_only=False) for place in places),
        Mount(home, HOME, read_only=False),
        Mount(sockets, SOCKETS),
        Mount(orientation, ORIENTATION),
        Mount(passwd, "/etc/passwd"),
        Mount(group, "/etc/group"),
    )


def repository_mounts(repository: LinkedRepository, files: Mapping[str, str]) -> tuple[Mount, ...]:
    """
    The mounts for the git repository of a workspace that is elsewhere, at its own path, which ``.git`` names.

    :param files: for each path of :meth:`LinkedRepository.files_for` a file with that content.
    :raises UsageError: containers have something else at that path.
    """
    read, write = repository.mounts(writable=True)
    place = PurePath(repository.directory)
    others = [PurePath(path) for path in (WORKSPACE, HOME, SOCKETS, ORIENTATION)]
    if not _mountable(str(place)) or any(
        place.is_relative_to(other) or other.is_relative_to(place) for other in others
    ):
        raise UsageError(
            f"git does not work in the container: the workspace's repository {place} is at a path that containers use "
            "for something else"
        )
    access = {**dict.fromkeys(read, True), **dict.fromkeys(write, False), **dict.fromkeys(repository.read, True)}
    replaced = {**access, **dict.fromkeys(files, True)}
    return tuple(Mount(files.get(path, path), path, read_only) for path, read_only in replaced.items())


def passwd_text(uid: int, gid: int) -> str:
    """:returns: an ``/etc/passwd`` with the user, without which Node, git and ssh fail."""
    return f"root:x:0:0:root:/:/bin/false\n{USER}:x:{uid}:{gid}:{USER}:{HOME}:/bin/sh\n"


def group_text(gid: int) -> str:
    """:returns: an ``/etc/group`` with the user's group."""
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


def is_sidecar(labels: Mapping[str, str]) -> bool:
    """:returns: whether a container with these labels is a sidecar."""
    return labels.get(ROLE_LABEL) == SIDECAR


def owner_of(labels: Mapping[str, str]) -> ProcessIdentity | None:
    """:returns: the process that owns a container; ``None`` if the labels do not say."""
    pid, start = labels.get(PID_LABEL, ""), labels.get(PID_START_LABEL, "")
    if not (pid.isascii() and pid.isdigit() and start.isascii() and start.isdigit() and BOOT_ID_LABEL in labels):
        return None
    return ProcessIdentity(int(pid), int(start), labels[BOOT_ID_LABEL])
