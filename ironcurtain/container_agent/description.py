"""What the container of a session is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ironcurtain.container.layout import WORKSPACE, mounts
from ironcurtain.container.owners import owner_labels
from ironcurtain.container.spec import ContainerSpec, Mount
from ironcurtain.home.layout import RunPaths, SessionPaths
from ironcurtain.home.settings import Resources
from ironcurtain.process.accounts import Account
from ironcurtain.process.identity import ProcessIdentity

SCRATCH_SHARE = 4
"""``/tmp`` may hold a quarter of the memory (compilers and package managers need hundreds of MiB)."""

SCRATCH_MOST_MB = 1024
"""And never more than this many MiB."""

COMMAND = ("sleep", "infinity")
"""Keeps the container alive between messages."""


def container_name(session_id: str) -> str:
    """:returns: what the container of a session is called."""
    return f"ironcurtain-{session_id.replace('-', '')[:12]}"


def passwd_file(paths: SessionPaths) -> Path:
    """:returns: the container's ``/etc/passwd``."""
    return paths.users / "passwd"


def group_file(paths: SessionPaths) -> Path:
    """:returns: the container's ``/etc/group``."""
    return paths.users / "group"


def empty_file(paths: SessionPaths) -> Path:
    """:returns: what covers a file that the agent must not see."""
    return paths.users / "empty"


def empty_directory(paths: SessionPaths) -> Path:
    """:returns: what covers a directory that the agent must not see."""
    return paths.users / "nothing"


def _mask(path: str, workspace: Path, paths: SessionPaths) -> Mount:
    cover = empty_directory(paths) if Path(path).is_dir() else empty_file(paths)
    return Mount(str(cover), f"{WORKSPACE}/{Path(path).relative_to(workspace)}")


def describe(
    *,
    session_id: str,
    image: str,
    command: tuple[str, ...],
    tty: bool,
    account: Account,
    environment: Mapping[str, str],
    workspace: Path,
    hidden: Sequence[str],
    paths: SessionPaths,
    run: RunPaths,
    resources: Resources,
    processors: float,
    home: Path,
    owner: ProcessIdentity,
) -> ContainerSpec:
    """
    :param command: the main program; :data:`COMMAND` where programs are run in it one by one.
    :param tty: whether that program has a terminal.
    :param environment: of everything inside.
    :param hidden: absolute paths in the workspace that the agent must not see.
    :param processors: how many this machine has; an Engine refuses to give more.
    :param home: our own.
    :param owner: this process.
    :raises UsageError: it cannot be had so.
    """
    return ContainerSpec(
        name=container_name(session_id),
        image=image,
        command=command,
        uid=account.uid,
        gid=account.gid,
        environment=environment,
        mounts=(
            *mounts(
                workspace=str(workspace),
                home=str(paths.agent_home),
                sockets=str(run.agent),
                orientation=str(paths.orientation),
                passwd=str(passwd_file(paths)),
                group=str(group_file(paths)),
            ),
            *(_mask(path, workspace, paths) for path in hidden),
        ),
        tmpfs_mb=min(SCRATCH_MOST_MB, resources.memory_mb // SCRATCH_SHARE),
        memory_mb=resources.memory_mb,
        cpus=min(resources.cpus, processors),
        pids=resources.pids,
        labels=owner_labels(session_id, str(home), owner),
        tty=tty,
    )
